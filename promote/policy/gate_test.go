package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// find checks one change with the settings and returns the findings of a rule.
func find(t *testing.T, s Settings, accepted []Acceptance, change files, rule string) []Finding {
	t.Helper()
	objects := newStore()
	c := objects.commit(testBase, testBase.with(change), "change\n")
	c.Accepted = accepted
	found, err := New(s, testFacts, objects).Check(t.Context(), c)
	check(t, err)
	return slices.DeleteFunc(found, func(f Finding) bool { return f.Rule != rule })
}

func TestSettingsDecide(t *testing.T) {
	for value, want := range map[string]string{"hold": "hold", "flag": "flag", "off": ""} {
		for rule, change := range map[string]files{"secret": {"a": sampleToken}, "host-exec": {".envrc": "x"}, "submodule": {"m": gitlink + "1"}} {
			s, err := ReadSettings(gitops.Config{"airlock.policy." + rule: value})
			check(t, err)
			got := ""
			for _, f := range find(t, s, nil, change, rule) {
				got = f.Action.String()
			}
			if got != want {
				t.Errorf("%s = %s: %q", rule, value, got)
			}
		}
	}
}

func TestSettingsAreRefused(t *testing.T) {
	for key, value := range map[string]string{"airlock.policy.secrets": "hold", "airlock.policy.secret": "no", "airlock.policy.git-path": "off",
		"airlock.maxFileSize": "big", "airlock.policy.": "hold", "airlock.limit.check": "5m"} {
		_, err := ReadSettings(gitops.Config{gitKey(key): value})
		var setting *gitops.SettingError
		if !errors.As(err, &setting) || setting.Key != key {
			t.Errorf("%s = %s: %v", key, value, err)
		}
	}
	if s, err := ReadSettings(gitops.Config{"airlock.maxfilesize": "2m", "airlock.policyfile": "x"}); err != nil || s.MaxFileSize() != 2<<20 {
		t.Errorf("%d, %v", s.MaxFileSize(), err)
	}
}

// gitKey returns a key in the form in which git lists it.
func gitKey(key string) string {
	if key == maxFileSizeKey {
		return "airlock.maxfilesize"
	}
	return key
}

func TestAcceptance(t *testing.T) {
	change := files{"keys/a b": sampleToken, "keys/b": sampleToken + "x\n" + sampleToken, "k\tc": sampleToken}
	for text, left := range map[string][]string{
		"secret":           nil,
		"secret:keys/a b":  {"keys/b", `k\tc`},
		"secret:keys/":     {`k\tc`},
		`secret:k\tc`:      {"keys/a b", "keys/b"},
		"secret:keys":      {`k\tc`, "keys/a b", "keys/b"},
		"odd-path":         {`k\tc`, "keys/a b", "keys/b"},
		"odd-path:keys/b":  {`k\tc`, "keys/a b", "keys/b"},
		"secret:keys/a b:": {`k\tc`, "keys/a b", "keys/b"},
	} {
		a, err := ParseAcceptance(text)
		check(t, err)
		if a.String() != text {
			t.Errorf("%q is read as %q", text, a)
		}
		var held []string
		accepted := 0
		for _, f := range find(t, Settings{}, []Acceptance{a}, change, "secret") {
			if f.Action == Hold {
				held = f.Paths
			} else if f.Accepted {
				accepted += len(f.Paths)
			}
		}
		slices.Sort(held)
		slices.Sort(left)
		if !slices.Equal(held, left) || accepted != 3-len(left) {
			t.Errorf("%q leaves %q, want %q; %d accepted", text, held, left, accepted)
		}
	}
	for _, text := range []string{"", "secrets", "secret:", "git-path", ":x"} {
		if _, err := ParseAcceptance(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestTeamIsOnlyStricter(t *testing.T) {
	user, err := ReadSettings(gitops.Config{"airlock.policy.secret": "off", "airlock.policy.host-exec": "hold", "airlock.maxfilesize": "10k"})
	check(t, err)
	team, err := ParseTeam([]byte("version = 1\nmaxFileSize = \"20k\"\n[rules]\nsecret = \"flag\"\nhost-exec = \"flag\"\nhidden-text = \"hold\"\n"))
	check(t, err)
	s := user.With(team)
	for rule, want := range map[string]Action{"secret": Flag, "host-exec": Hold, "hidden-text": Hold, "submodule": Hold, "ghost-leak": Flag} {
		if got := s.Action(rule); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
	for rule, want := range map[string]Source{"secret": fromTeam, "host-exec": fromConfig, "hidden-text": fromTeam, "submodule": ""} {
		if got := s.Source(rule); got != want {
			t.Errorf("%s is from %q, want %q", rule, got, want)
		}
	}
	if s.MaxFileSize() != 10<<10 || s.sizeFrom != "" {
		t.Errorf("limit %d from %q", s.MaxFileSize(), s.sizeFrom)
	}
	if none := (Settings{}).With(team).With(Team{}); none.MaxFileSize() != 20<<10 || none.sizeFrom != fromTeam {
		t.Errorf("limit %d from %q", none.MaxFileSize(), none.sizeFrom)
	}
	if user.Action("secret") != Off {
		t.Error("the user's own settings have changed")
	}
	off, err := ReadSettings(gitops.Config{"airlock.policy.protected-path": "off"})
	check(t, err)
	guard, err := ParseTeam([]byte("version = 1\n[[paths]]\npatterns = [\"x\"]\naction = \"hold\"\n"))
	check(t, err)
	if off.With(guard).Action("protected-path") != Hold {
		t.Error("a user can switch off a rule that the team requires")
	}
	large, err := ReadSettings(gitops.Config{"airlock.policy.large-file": "off"})
	check(t, err)
	if large.With(team).Action("large-file") != Hold {
		t.Error("a user can switch off the size that the team requires")
	}
	closed, err := ParseTeam([]byte("version = 1\n[network]\ndeny = [\"a.test\"]\n"))
	check(t, err)
	if got := user.With(closed).With(team).With(closed).Denials(); !slices.Equal(got, []string{"a.test", "a.test"}) {
		t.Errorf("denials %q", got)
	}
}

func TestTeamIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "version = 2\n", "version = 1\nother = 1\n", "version = 1\n[rules]\nsecret = \"off\"\n", "version = 1\n[rules]\nsecrets = \"hold\"\n",
		"version = 1\n[rules]\ngit-path = \"flag\"\n", "version = 1\nmaxFileSize = \"many\"\n", "version = 1\n[[paths]]\naction = \"hold\"\n",
		"version = 1\n[[paths]]\npatterns = [\"!x\"]\naction = \"hold\"\n", "version = 1\n[[paths]]\npatterns = [\"x\"]\naction = \"off\"\n",
		"version = 1\n[[paths]]\npatterns = [\"x\"]\n", "version = \x1b", "version = 1\n[network]\nallow = [\"a.test\"]\n", "version = 1\n" + strings.Repeat("#", TeamLimit),
	} {
		_, err := ParseTeam([]byte(text))
		if err == nil {
			t.Errorf("%.60q: no error", text)
		} else if strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%.60q: %q contains control characters", text, err)
		}
	}
}

// TestFindingsAreBounded checks that findings are escaped, and bounded whatever a commit contains.
func TestFindingsAreBounded(t *testing.T) {
	change := files{}
	for n := range 1000 {
		change[fmt.Sprintf("d/\x1b[%d", n)] = "x"
	}
	found := find(t, Settings{}, nil, change, "odd-path")
	if len(found) != 1 || len(found[0].Paths) != pathLimit || len(found[0].Detail) > 2*detailBytes || !strings.Contains(found[0].Detail, "and 995 more") {
		t.Fatalf("%+v", found)
	}
	for _, text := range append(found[0].Paths, found[0].Detail) {
		if strings.Contains(text, "\x1b") {
			t.Errorf("%q", text)
		}
	}
}

// TestReadsAreFew checks that moved files are not read, and that equal binary contents are read once.
func TestReadsAreFew(t *testing.T) {
	objects := newStore()
	before, change := files{}, files{}
	for n := range 50 {
		before[fmt.Sprintf("old/%d", n)] = fmt.Sprint(n)
		change[fmt.Sprintf("new/%d.bin", n)] = "the\x00same"
		change[fmt.Sprintf("moved/%d", n)] = fmt.Sprint(n)
	}
	after := before.with(change)
	for n := range 50 {
		delete(after, fmt.Sprintf("old/%d", n))
	}
	_, err := New(Settings{}, testFacts, objects).Check(t.Context(), objects.commit(before, after, ""))
	check(t, err)
	if objects.reads != 1 {
		t.Errorf("%d files were read", objects.reads)
	}
}

func TestCheckEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	objects := newStore()
	if _, err := New(Settings{}, testFacts, objects).Check(ctx, objects.commit(nil, testBase, "")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestFindingCovers(t *testing.T) {
	f := Finding{Rule: "secret", Paths: []string{"keys/a", `k\tc`}}
	for text, want := range map[string]bool{"secret": true, "secret:keys/a": true, "secret:keys/": true, `secret:k\tc`: true, "secret:b": false, "odd-path": false} {
		a, err := ParseAcceptance(text)
		check(t, err)
		if f.Covers(a) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}

func TestActionText(t *testing.T) {
	for _, a := range []Action{Hold, Flag, Off} {
		text, err := a.MarshalText()
		check(t, err)
		var back Action = 7
		if err := back.UnmarshalText(text); err != nil || back != a {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
}

// TestLongLinksEnd checks that links which lead through each other over long ways are given up early, and reported as
// too many.
func TestLongLinksEnd(t *testing.T) {
	objects, change := newStore(), files{}
	for n := range 64 {
		change[fmt.Sprintf("l%d", n)] = linkTo + fmt.Sprintf("l%d/", n+1) + strings.Repeat("x/", 2000)
	}
	for n := range 100 {
		change[fmt.Sprintf("first%d", n)] = linkTo + "l0"
	}
	found, err := New(Settings{}, testFacts, objects).Check(t.Context(), objects.commit(testBase, testBase.with(change), ""))
	check(t, err)
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "symlink-escape" }) {
		t.Errorf("%+v", found)
	}
}

// TestFetched has a finding for each thing that was fetched, as its setting wants, and by default none.
func TestFetched(t *testing.T) {
	for _, c := range []struct {
		setting string
		fetched []string
		want    string
	}{
		{"", []string{"x"}, "[]"},
		{"off", []string{"x"}, "[]"},
		{"flag", nil, "[]"},
		{"flag", []string{"x"}, "[flag x]"},
		{"hold", []string{"x", "y\n"}, `[hold x; y\n]`},
	} {
		config := gitops.Config{}
		if c.setting != "" {
			config["airlock.policy.fetched"] = c.setting
		}
		settings, err := ReadSettings(config)
		check(t, err)
		objects := newStore()
		commit := objects.commit(testBase, testBase, "change\n")
		commit.Fetched = c.fetched
		found, err := New(settings, testFacts, objects).Check(t.Context(), commit)
		check(t, err)
		got := []string{}
		for _, f := range found {
			got = append(got, f.Action.String()+" "+f.Detail)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%q, %q: %s, want %s", c.setting, c.fetched, got, c.want)
		}
	}
}
