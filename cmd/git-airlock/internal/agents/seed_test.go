package agents

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// shell is a prison that runs processes here.
type shell struct {
	prison.Prison
	env []string
}

func (b shell) Exec(ctx context.Context, p prison.Process) (int, error) {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Dir, b.env, p.Stdin, p.Stdout, p.Stderr
	err := cmd.Run()
	return cmd.ProcessState.ExitCode(), err
}

func TestSeed(t *testing.T) {
	home := t.TempDir()
	elsewhere := filepath.Join(home, "elsewhere")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kept", "the user's")
	write("rest.new", "of a killed start")
	for _, link := range []string{"linked", "waiting.new"} {
		if err := os.Symlink(elsewhere, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	const key = "key-0123456789-0123456789.A_z"
	box := shell{env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KEY=" + key, "ODD=a/b$(touch " + elsewhere + ")"}}
	err := Seed(t.Context(), box, Profile{Name: "some", Files: []File{
		{Path: "deep/er/both", Key: "KEY", Content: "1 @KEY@ @KEY@\n2 @KEY-END@ @KEY-END@ \\n $HOME *\n\n"},
		{Path: "deep/er/none", Key: "UNSET", Content: "[@KEY@][@KEY-END@]"},
		{Path: "deep/er/odd", Key: "ODD", Content: "[@KEY@][@KEY-END@]"},
		{Path: "needed", Key: "UNSET", Needs: true, Content: "not written"},
		{Path: "needed", Key: "KEY", Needs: true, Content: "first"},
		{Path: "needed", Content: "not written"},
		{Path: "kept", Content: "not written"},
		{Path: "linked", Content: "not written"},
		{Path: "rest", Content: "all of it"},
		{Path: "waiting", Content: "of two"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"deep/er/both": "1 " + key + " " + key + "\n2 " + strings.Repeat(key[len(key)-20:]+" ", 2) + "\\n $HOME *\n\n",
		"deep/er/none": "[][]", "deep/er/odd": "[][]", "needed": "first", "kept": "the user's", "rest": "all of it", "waiting": "of two",
	} {
		content, err := os.ReadFile(filepath.Join(home, name))
		if err != nil || string(content) != want {
			t.Errorf("%s: %q, %v, want %q", name, content, err, want)
		}
		if info, err := os.Stat(filepath.Join(home, name)); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("a link was followed, or a value was obeyed")
	}
	if err := Seed(t.Context(), shell{env: []string{"HOME=/no/such/home"}}, Profile{Name: "some", Files: []File{{Path: "a"}}}); err == nil {
		t.Error("no home: no error")
	}
}

// TestSeedAgain seeds the homes of the known agents with one key or login after another. The files are those of a new home, or what the
// agent has made of them with the keyed part set.
func TestSeedAgain(t *testing.T) {
	seeded := func(t *testing.T, home string, p Profile, env ...string) {
		t.Helper()
		if err := Seed(t.Context(), shell{env: append(env, "HOME="+home, "PATH="+os.Getenv("PATH"))}, p); err != nil {
			t.Fatal(err)
		}
	}
	read := func(home, name string) string {
		content, err := os.ReadFile(filepath.Join(home, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(content)
	}
	for _, p := range Known() {
		home := t.TempDir()
		var before []string
		for _, variable := range append(p.Keys, "", p.Keys[0], p.Keys[len(p.Keys)-1]) {
			for _, value := range []string{"sk-first-0123456789-0123456789", "sk-second-9876543210-9876543210"} {
				env := []string{variable + "=" + value}
				if variable == "" {
					env = nil
				}
				fresh := t.TempDir()
				seeded(t, home, p, env...)
				seeded(t, fresh, p, env...)
				for _, f := range p.Files {
					want := read(fresh, f.Path)
					if got := read(home, f.Path); got != want && want != "" { // a login that is not used any more may stay
						t.Errorf("%s after %q: %s is %q, want %q", p.Name, before, f.Path, got, want)
					}
					if _, err := os.Lstat(filepath.Join(home, f.Path+".new")); err == nil {
						t.Errorf("%s: %s.new stayed", p.Name, f.Path)
					}
				}
				before = append(before, variable)
			}
		}
	}
}

func TestSeedChanged(t *testing.T) {
	const key = "sk-0123456789-0123456789-0123456789"
	const end = "456789-0123456789"
	claude, _ := Named(Known(), "claude")
	gemini, _ := Named(Known(), "gemini")
	codex, _ := Named(Known(), "codex")
	for _, test := range []struct {
		name    string
		profile Profile
		file    string
		env     string
		found   string
		want    []string // parts of the file; none if it stays
	}{
		{"key added", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `{"numStartups":12345678901234567890,"x":"<&>","customApiKeyResponses":{"approved":["old"],"rejected":["r"]}}`,
			[]string{`"numStartups": 12345678901234567890`, `"x": "<&>"`, `"old"`, end + `"`, `"r"`}},
		{"no list yet", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `{"a":1}`, []string{`"a": 1`, `"approved"`, end}},
		{"rejected by the user", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `{"customApiKeyResponses":{"rejected":["` + key[len(key)-20:] + `"]}}`, nil},
		{"no key", claude, ".claude.json", "X=y", `{"a":1}`, nil},
		{"not JSON", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `{"a":1`, nil},
		{"a list", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `[1]`, nil},
		{"null", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `null`, nil},
		{"another kind", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `{"customApiKeyResponses":"x"}`, nil},
		{"large", claude, ".claude.json", "ANTHROPIC_API_KEY=" + key, `{"a":"` + strings.Repeat("x", largestSeeded) + `"}`, nil},
		{"login", gemini, ".gemini/settings.json", "GOOGLE_CLOUD_ACCESS_TOKEN=a/b", `{"theme":"x","security":{"auth":{"selectedType":"gemini-api-key"}}}`, []string{`"theme": "x"`, `"oauth-personal"`}},
		{"key", gemini, ".gemini/settings.json", "GEMINI_API_KEY=x", `{"theme":"x","security":{"auth":{"selectedType":"oauth-personal"}}}`, []string{`"theme": "x"`, `"gemini-api-key"`}},
		{"with comments", gemini, ".gemini/settings.json", "GEMINI_API_KEY=x", "// mine\n{}", nil},
		{"a login inside", codex, ".codex/auth.json", "CODEX_API_KEY=" + key, `{"auth_mode":"chatgpt","tokens":{}}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := t.TempDir()
			name := filepath.Join(home, test.file)
			put(t, name, test.found)
			if err := Seed(t.Context(), shell{env: []string{test.env, "HOME=" + home, "PATH=" + os.Getenv("PATH")}}, test.profile); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil || test.want == nil && string(got) != test.found || test.want != nil && !json.Valid(got) {
				t.Errorf("%.300q, %v", got, err)
			}
			for _, part := range test.want {
				if !strings.Contains(string(got), part) {
					t.Errorf("no %q in %q", part, got)
				}
			}
		})
	}
}

// TestSeedEndless writes beside a file that has no end for practical purposes.
func TestSeedEndless(t *testing.T) {
	claude, _ := Named(Known(), "claude")
	home := t.TempDir()
	name := filepath.Join(home, ".claude.json")
	put(t, name, "{}")
	const size = 1 << 40
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
	if err := Seed(t.Context(), shell{env: []string{"ANTHROPIC_API_KEY=x", "HOME=" + home, "PATH=" + os.Getenv("PATH")}}, claude); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Size() != size {
		t.Errorf("%v, %v", info, err)
	}
}
