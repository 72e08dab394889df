package identity

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// setenv sets exactly the variables of env, and unsets the others that belong to an identity.
func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"} {
		t.Setenv(name, "") // restored at the end of the test
		os.Unsetenv(name)
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
}

type resolving struct {
	name   string
	config gitops.Config
	env    map[string]string
	want   string // empty if ErrNoUser is expected
}

// likeGit are identities that plain git resolves in the same way.
var likeGit = []resolving{
	{"user", gitops.Config{"user.name": "U", "user.email": "u@x"}, nil, "U <u@x>"},
	{"author before user", gitops.Config{"user.name": "U", "user.email": "u@x", "author.name": "A", "author.email": "a@x"}, nil, "A <a@x>"},
	{"one half of author", gitops.Config{"user.name": "U", "user.email": "u@x", "author.email": "a@x"}, nil, "U <a@x>"},
	{"empty author", gitops.Config{"user.name": "U", "user.email": "u@x", "author.name": ""}, nil, "U <u@x>"},
	{"user before EMAIL", gitops.Config{"user.name": "U", "user.email": "u@x"}, map[string]string{"EMAIL": "m@x"}, "U <u@x>"},
	{"EMAIL", gitops.Config{"user.name": "U"}, map[string]string{"EMAIL": "m@x"}, "U <m@x>"},
	{"crud", gitops.Config{"user.name": " .,:;<>\"\\'A \"B\" <C>, D.\t", "user.email": "<u@x>"}, nil, `A "B" C, D <u@x>`},
	{"line breaks", gitops.Config{"user.name": "\nA\nB\n", "user.email": "u\n@x"}, nil, "AB <u@x>"},
	{"control characters inside", gitops.Config{"user.name": "\x01A\x01B\x1f", "user.email": "u@x"}, nil, "A\x01B <u@x>"},
	{"not ASCII", gitops.Config{"user.name": "Zoë \u00a0李\u202e", "user.email": "zoë@x"}, nil, "Zoë \u00a0李\u202e <zoë@x>"},
	{"not UTF-8", gitops.Config{"user.name": "Zo\xeb", "user.email": "z@x"}, nil, "Zo\xeb <z@x>"},
	{"empty name", gitops.Config{"user.name": "", "user.email": "u@x"}, nil, ""},
	{"a name of crud", gitops.Config{"user.name": " .<>, ", "user.email": "u@x"}, nil, ""},
	{"no name, no address", nil, nil, ""},
	{"no address", gitops.Config{"user.name": "U"}, nil, ""},
}

// ownRules are identities that git resolves differently.
var ownRules = []resolving{
	{"airlock before all", gitops.Config{"user.name": "U", "user.email": "u@x", "author.name": "A", "airlock.name": "L", "airlock.email": "l@x"},
		map[string]string{"GIT_AUTHOR_NAME": "E", "GIT_AUTHOR_EMAIL": "e@x", "EMAIL": "m@x"}, "L <l@x>"},
	{"half of airlock", gitops.Config{"user.name": "U", "user.email": "u@x", "airlock.email": "l@x"}, nil, "U <l@x>"},
	{"empty airlock", gitops.Config{"user.name": "U", "user.email": "u@x", "airlock.name": ""}, nil, "U <u@x>"},
	{"no name", gitops.Config{"user.email": "u@x"}, nil, ""},
	{"empty address", gitops.Config{"user.name": "U", "user.email": ""}, map[string]string{"EMAIL": "m@x"}, ""},
	{"an address of crud", gitops.Config{"user.name": "U", "user.email": "<>"}, nil, ""},
	{"empty EMAIL", gitops.Config{"user.name": "U"}, map[string]string{"EMAIL": ""}, ""},
	{"another commit's author", gitops.Config{"user.name": "U", "user.email": "u@x", "author.name": "A"},
		map[string]string{"GIT_AUTHOR_NAME": "E", "GIT_AUTHOR_EMAIL": "e@x", "EMAIL": "m@x"}, "A <u@x>"},
	{"an empty variable", gitops.Config{"user.name": "U", "user.email": "u@x"}, map[string]string{"GIT_AUTHOR_NAME": ""}, "U <u@x>"},
	{"only variables", nil, map[string]string{"GIT_AUTHOR_NAME": "E", "GIT_AUTHOR_EMAIL": "e@x"}, ""},
	{"only a committer", gitops.Config{"user.email": "u@x"}, map[string]string{"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@x", "EMAIL": "m@x"}, "C <u@x>"},
	{"no setting", nil, map[string]string{"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@x", "GIT_AUTHOR_NAME": "E", "EMAIL": "m@x"}, "C <c@x>"},
	{"committer is nobody", gitops.Config{"committer.name": "C", "committer.email": "c@x"}, nil, ""},
}

func TestResolveUser(t *testing.T) {
	for _, c := range append(likeGit, ownRules...) {
		t.Run(c.name, func(t *testing.T) {
			setenv(t, c.env)
			u, err := ResolveUser(c.config)
			switch {
			case c.want == "" && (!errors.Is(err, ErrNoUser) || u != User{}):
				t.Errorf("got %q, %v, want ErrNoUser", u, err)
			case c.want != "" && (err != nil || u.String() != c.want):
				t.Errorf("got %q, %v, want %q", u, err, c.want)
			}
		})
	}
}

// TestGiven checks what an airlock keeps of an identity, and that it is all that the files of the configuration lack.
func TestGiven(t *testing.T) {
	file := func(key, value string) gitops.Setting { return gitops.Setting{Scope: "global", Key: key, Value: value} }
	typed := func(key, value string) gitops.Setting {
		return gitops.Setting{Scope: "command", Key: key, Value: value}
	}
	for name, c := range map[string]struct {
		settings []gitops.Setting
		mail     string
		want     gitops.Config
	}{
		"files":              {[]gitops.Setting{file("user.name", "U"), file("user.email", "u@x"), typed("core.pager", "cat")}, "m@x", gitops.Config{}},
		"typed over files":   {[]gitops.Setting{file("user.name", "U"), file("user.email", "u@x"), typed("user.name", "T")}, "", gitops.Config{"airlock.name": "T"}},
		"typed alone":        {[]gitops.Setting{typed("user.name", "T"), typed("author.email", "t@x")}, "", gitops.Config{"airlock.name": "T", "airlock.email": "t@x"}},
		"the same":           {[]gitops.Setting{file("user.name", "U"), file("user.email", "u@x"), typed("user.name", "U")}, "", gitops.Config{}},
		"a file's airlock.*": {[]gitops.Setting{file("airlock.name", "L"), file("user.email", "u@x"), typed("user.name", "T")}, "", gitops.Config{}},
		"EMAIL":              {[]gitops.Setting{file("user.name", "U")}, "m@x", gitops.Config{"airlock.email": "m@x"}},
		"nobody":             {nil, "", gitops.Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, map[string]string{"EMAIL": c.mail})
			got := Given(c.settings)
			if !maps.Equal(got, c.want) {
				t.Errorf("keeps %q, want %q", got, c.want)
			}
			typed, _ := ResolveUser(gitops.ConfigOf(c.settings))
			setenv(t, nil) // the daemon's environment
			if later, _ := ResolveUser(Lasting(c.settings).With(got)); later != typed {
				t.Errorf("lands as %q, want %q", later, typed)
			}
		})
	}
}

// TestLikeGit compares the results with git's own for the same settings.
func TestLikeGit(t *testing.T) {
	noConfig := filepath.Join(t.TempDir(), "config") // not the null device, because git replaces the files that it writes to
	if err := os.WriteFile(noConfig, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	for _, c := range likeGit {
		t.Run(c.name, func(t *testing.T) {
			setenv(t, c.env)
			_, mailed := c.env["EMAIL"]
			// With useConfigOnly git ignores EMAIL. Without it, git guesses a missing value.
			args := []string{"-c", "user.useConfigOnly=" + map[bool]string{true: "false", false: "true"}[mailed]}
			for key, value := range c.config {
				args = append(args, "-c", key+"="+value)
			}
			cmd := exec.Command("git", append(args, "var", "GIT_AUTHOR_IDENT")...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+noConfig, "GIT_CONFIG_NOSYSTEM=1")
			out, err := cmd.Output()
			who, _ := gitops.SplitIdent(strings.TrimSuffix(string(out), "\n"))
			if err != nil {
				who = ""
			}
			if who != c.want {
				t.Errorf("git says %q (%v), the table %q", who, err, c.want)
			}
		})
	}
}

func FuzzWithoutCrud(f *testing.F) {
	for _, c := range likeGit {
		f.Add(c.config["user.name"])
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := withoutCrud(text)
		if strings.ContainsAny(got, "<>\n") || withoutCrud(got) != got {
			t.Errorf("%q becomes %q", text, got)
		}
		if got != "" && (isCrud(rune(got[0])) || isCrud(rune(got[len(got)-1]))) {
			t.Errorf("%q keeps crud: %q", text, got)
		}
	})
}
