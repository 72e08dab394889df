package agents

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/sets"
)

// TestProfiles checks that each profile is complete: a command installs it, its network rules exist, its files are below the home, and settings in JSON
// are JSON.
func TestProfiles(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Known() {
		if names[p.Name] || p.Program == "" || !strings.Contains(p.Get, " install ") || len(p.Keys) == 0 {
			t.Errorf("%s: a double or incomplete profile", p.Name)
		}
		names[p.Name] = true
		for _, rule := range p.Allow {
			if _, err := sets.Expand(rule); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		for _, v := range p.Env {
			if name, value, ok := strings.Cut(v, "="); !ok || name == "" || value == "" {
				t.Errorf("%s: variable %q", p.Name, v)
			}
		}
		for _, f := range p.Files {
			if !filepath.IsLocal(f.Path) {
				t.Errorf("%s: %s is outside of the home", p.Name, f.Path)
			}
			if strings.HasSuffix(f.Path, ".json") && !json.Valid([]byte(f.Content)) {
				t.Errorf("%s: %s is not JSON: %s", p.Name, f.Path, f.Content)
			}
			if strings.Contains(strings.ToLower(f.Content), "airlock") {
				t.Errorf("%s: %s names this tool", p.Name, f.Path)
			}
		}
	}
}

// put writes an executable file.
func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, modules := top+"/bin", top+"/lib/node_modules"
	put(t, bin+"/node", "\x7fELF")
	put(t, bin+"/plain", "\x7fELF")
	put(t, bin+"/snake", "#!/usr/bin/python3\n")
	put(t, modules+"/@maker/script/node_modules/dep/x.js", "")
	put(t, modules+"/@maker/script/dist/cli.js", "#!/usr/bin/env -S node --quiet\n")
	put(t, modules+"/@maker/script/package.json", `{"version":"1.2.3"}`)
	put(t, modules+"/bare/cli.js", "#!/usr/bin/env node")
	put(t, modules+"/bare/package.json", `{"version":"0.1.0"}`)
	project := top + "/project/node_modules"
	put(t, project+"/@maker/hoisted/bin/cli.js", "#!/usr/bin/env node\n")
	put(t, project+"/@maker/hoisted/package.json", `{"version":"4.5.6","optionalDependencies":{"@maker/hoisted-linux":"4.5.6","../evil":"1"}}`)
	put(t, project+"/@maker/hoisted-linux/bin/it", "\x7fELF")
	put(t, project+"/@maker/nested/cli.js", "#!/usr/bin/env node\n")
	put(t, project+"/@maker/nested/package.json", `{"version":"7.8.9","dependencies":{"@maker/hoisted":"4.5.6"}}`)
	put(t, project+"/@maker/nested/node_modules/@maker/hoisted/x.js", "")
	put(t, bin+"/loose", "#!/usr/bin/env node\n")
	for name, to := range map[string]string{"script": "../lib/node_modules/@maker/script/dist/cli.js", "bare": "../lib/node_modules/bare/cli.js",
		"hoisted": "../project/node_modules/@maker/hoisted/bin/cli.js", "nested": "../project/node_modules/@maker/nested/cli.js"} {
		if err := os.Symlink(to, bin+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name, path string) prison.Tool { return prison.Tool{Name: name, Path: path} }
	tests := []struct {
		program, version string
		tools            []prison.Tool
		inside           []string
		missing          string
	}{
		{"plain", "", []prison.Tool{tool("it", bin+"/plain")}, []string{"/tools/it"}, ""},
		{"script", "1.2.3", []prison.Tool{tool("node", bin+"/node"), tool("it", modules+"/@maker/script")}, []string{"/tools/node", "/tools/it/dist/cli.js"}, ""},
		{"bare", "0.1.0", []prison.Tool{tool("node", bin+"/node"), tool("it", modules+"/bare")}, []string{"/tools/node", "/tools/it/cli.js"}, ""},
		{"hoisted", "4.5.6", []prison.Tool{tool("node", bin+"/node"), tool("node_modules", project)}, []string{"/tools/node", "/tools/node_modules/@maker/hoisted/bin/cli.js"}, ""},
		{"nested", "7.8.9", []prison.Tool{tool("node", bin+"/node"), tool("it", project+"/@maker/nested")}, []string{"/tools/node", "/tools/it/cli.js"}, ""},
		{"snake", "", nil, nil, "script for python3"},
		{"loose", "", nil, nil, "outside of an npm package"},
		{"vibe", "", nil, nil, "vibe is not on your PATH"},
	}
	for _, test := range tests {
		p := Profile{Name: "it", Program: test.program}
		// Relative folders of a PATH are not searched: they can be in a work tree.
		f, err := Find(p, "relative:"+bin)
		var missing *Missing
		switch {
		case test.missing != "":
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), test.missing) {
				t.Errorf("%s: %v", test.program, err)
			}
		case err != nil:
			t.Errorf("%s: %v", test.program, err)
		case f.Version != test.version || !slices.Equal(f.Tools, test.tools) || !slices.Equal(f.In(p, false), test.inside):
			t.Errorf("%s: %+v", test.program, f)
		}
		if got := f.In(p, true); !slices.Equal(got, []string{test.program}) {
			t.Errorf("%s in an image: %q", test.program, got)
		}
	}
}

// TestGeminiHeap checks that no settings of gemini let it take half of the host's memory. Its program reads this one from the home alone.
func TestGeminiHeap(t *testing.T) {
	gemini, err := Named(Known(), "gemini")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range gemini.Files {
		if f.Path != ".gemini/settings.json" {
			continue
		}
		var settings struct {
			Advanced struct{ AutoConfigureMemory *bool }
		}
		if err := json.Unmarshal([]byte(f.Content), &settings); err != nil {
			t.Fatal(err)
		}
		if on := settings.Advanced.AutoConfigureMemory; on == nil || *on {
			t.Errorf("settings %s", f.Content)
		}
		checked++
	}
	if checked == 0 {
		t.Error("no settings")
	}
}

// TestUnpacked shares what a program has unpacked: the complete folder of its version alone, if another user can read it.
func TestUnpacked(t *testing.T) {
	cache, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"it/1.0/done", "it/2.0/other", "it/closed/done", "it/done"} {
		put(t, filepath.Join(cache, name), "")
	}
	if err := errors.Join(os.Chmod(cache+"/it/closed", 0o700), os.Symlink("1.0", cache+"/it/linked")); err != nil {
		t.Fatal(err)
	}
	p := Profile{Name: "it", Env: []string{"A=b"}, Unpacked: Unpacked{Folder: "it/" + versionMark, Mark: "done", Variable: "IT_REST"}}
	for version, shared := range map[string]bool{"1.0": true, "2.0": false, "3.0": false, "closed": false, "linked": false, "": false, "..": false, "1.0/../1.0": false} {
		f := Found{Version: version}.WithUnpacked(p, cache)
		var want []prison.Tool
		env := p.Env
		if shared {
			want = []prison.Tool{{Name: "it-" + version, Path: cache + "/it/" + version, Optional: true}}
			env = []string{"A=b", "IT_REST=/tools/it-" + version}
		}
		here := f.Env(p, func(t prison.Tool) bool { return slices.Contains(want, t) })
		elsewhere := f.Env(p, func(prison.Tool) bool { return false })
		if !slices.Equal(f.Tools, want) || !slices.Equal(here, env) || !slices.Equal(elsewhere, p.Env) {
			t.Errorf("%q: %+v, %q, %q", version, f.Tools, here, elsewhere)
		}
	}
	if f := (Found{Version: "1.0"}).WithUnpacked(Profile{Name: "it"}, cache); len(f.Tools) != 0 {
		t.Errorf("a program that unpacks nothing: %+v", f)
	}
}

// TestAskFor checks that any task is one argument after all options, or the value of one option.
func TestAskFor(t *testing.T) {
	own := func(task string) Profile {
		all, err := WithOwn(nil, []gitops.Setting{{Key: "airlock.agent.mine.task", Value: task}})
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	profiles := append(Known(), own("bot run --yes --"), own("bot --yes --prompt="), own("bot --"))
	whole := func(task string) bool {
		task += "x" // the program refuses an empty one
		for _, p := range profiles {
			argv := p.AskFor(task, "--model", "small")
			last, before := argv[len(argv)-1], argv[:len(argv)-1]
			option, value, _ := strings.Cut(last, "=")
			isValue := value == task && strings.HasPrefix(option, "-") && !slices.Contains(before, "--")
			isLast := last == task && slices.Index(before, "--") == len(before)-1
			if !isValue && !isLast || !strings.Contains(strings.Join(argv, "\x00"), "--model\x00small\x00-") {
				t.Errorf("%s: %q", p.Name, argv)
				return false
			}
		}
		return true
	}
	for _, task := range []string{"", "-", "--", "-p", "--version", "- one\n- two", "=", "a=b", "review"} {
		whole(task)
	}
	if err := quick.Check(whole, nil); err != nil {
		t.Error(err)
	}
	if got := own("bot --task").AskFor("-x", "-y"); !slices.Equal(got, []string{"--task", "-y", "-x"}) {
		t.Errorf("a setting that says nothing: %q", got)
	}
}

// TestProfilesFromSettings reads profiles of agents from the configuration, and changes known ones.
func TestProfilesFromSettings(t *testing.T) {
	setting := func(key, value string) gitops.Setting { return gitops.Setting{Key: key, Value: value} }
	all, err := WithOwn(Known(), []gitops.Setting{
		setting("airlock.agent.default", "mine"), setting("airlock.network", "none"),
		setting("airlock.agent.mine.task", "bot run --yes"), setting("airlock.agent.mine.command", "bot"),
		setting("airlock.agent.mine.allow", "api.example.com"), setting("airlock.agent.mine.env", "QUIET=1"),
		setting("airlock.agent.claude.allow", "@npm"),
	})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := Named(all, "mine")
	if err != nil || !mine.Own || mine.Program != "bot" || len(mine.Interactive) != 0 || !slices.Equal(mine.Headless, []string{"run", "--yes"}) ||
		!slices.Equal(mine.Allow, []string{"api.example.com"}) || !slices.Equal(mine.Env, []string{"QUIET=1"}) {
		t.Errorf("%+v, %v", mine, err)
	}
	if claude, err := Named(all, "claude"); err != nil || !slices.Equal(claude.Allow, []string{"@anthropic", "@npm"}) {
		t.Errorf("%+v, %v", claude, err)
	}
	if claude, _ := Named(Known(), "claude"); len(claude.Allow) != 1 {
		t.Error("a setting changed the profile of the program")
	}
	for _, wrong := range [][2]string{
		{"airlock.agent.Mine.command", "bot"}, {"airlock.agent.mine.allow", "x"}, {"airlock.agent.mine.command", " "},
		{"airlock.agent.mine.colour", "red"}, {"airlock.agent.claude.env", "QUIET"}, {"airlock.agent.claude.task", "other -p"},
	} {
		if _, err := WithOwn(Known(), []gitops.Setting{setting(wrong[0], wrong[1])}); err == nil || !strings.Contains(err.Error(), "airlock.agent.") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	for _, order := range [][2]string{{"command", "task"}, {"task", "command"}} {
		own := []gitops.Setting{setting("airlock.agent.x."+order[0], order[0]+"-program"), setting("airlock.agent.x."+order[1], order[1]+"-program")}
		if _, err := WithOwn(Known(), own); err == nil || !strings.Contains(err.Error(), "two programs") {
			t.Errorf("%q before %q: %v", order[0], order[1], err)
		}
	}
	if _, err := Named(all, "nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("%v", err)
	}
}

// TestPages checks that each agent's page names what the agent gets.
func TestPages(t *testing.T) {
	for _, p := range Known() {
		page := p.Page()
		for _, word := range append(slices.Concat(p.Keys, p.Allow, p.Unneeded, p.Env, p.Headless, p.Notes, p.paths()), "git airlock start "+p.Name) {
			if !strings.Contains(page, word) {
				t.Errorf("%s: no %q in %q", p.Name, word, page)
			}
		}
		if strings.Contains(page, "Nobody has tried") != p.Untried {
			t.Errorf("%s: untried: %v", p.Name, p.Untried)
		}
	}
}
