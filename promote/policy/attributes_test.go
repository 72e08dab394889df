package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
)

// attributeGrammar generates attribute lines.
type attributeGrammar struct{ *rand.Rand }

func (g attributeGrammar) pick(of ...string) string { return of[g.IntN(len(of))] }

// name returns one of a few names, so that lines and macros use the same ones.
func (g attributeGrammar) name() string {
	return g.pick("filter", "diff", "merge", "text", "binary", "m1", "m2", "m3", "m4", "a.b", "A-_9")
}

func (g attributeGrammar) state() string {
	switch g.IntN(14) {
	case 0:
		return g.pick("-", "!") + g.name()
	case 1, 2, 3:
		return g.name() + "=" + g.pick("lfs", "", "x", "=", "a=b", "\xff", "\"", "[attr]", "-", "\\")
	case 4:
		return g.pick("-", "!") + g.name() + "=lfs"
	case 5:
		return g.pick("--x", "-!x", "!!x", "!-x", "-", "!", "=", "=x", "-=x", "x,", "é", "\"x\"", "x\v", "x/y", "[attr]", "#", "0", ".", "_")
	}
	return g.name()
}

// pattern returns a pattern. Many patterns match one of the paths.
func (g attributeGrammar) pattern() string {
	p := g.pick("*", "*", "a", "a", "*.x", "/a", "d/*", "d/**", "**/b", "[a-c]", "d/", "b.x", "?", "[attr]", "[attr]", "attr", "t", "\\a", "!a", "\\!a", "a\\ b", "d/e/**", "d**", "d/b**",
		"é", "[[:space:]]", "#", "\\#", "\"", "*\x01", "**/**")
	switch g.IntN(8) {
	case 0:
		return g.quoted(p + g.pick("", "", " b", "\t", "\x00", "\xc3\xa9", "\v"))
	case 1:
		return g.pick(`"`, `"a`, `"\9"`, `"\400"`, `"\1"`, `"\x"`, `"\"`, `""`, `"a"b`, `"a\n"`, `"\141"`, `"\052"`, `"\000"`, `"a\000b"`, `"!a"`, `"#"`, `" a"`)
	}
	return p
}

// quoted writes a text quoted as in C, some of its bytes in octal.
func (g attributeGrammar) quoted(text string) string {
	out := `"`
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			out += `\` + string(c)
		case c < ' ' || g.IntN(6) == 0:
			out += fmt.Sprintf(`\%03o`, c)
		default:
			out += string([]byte{c})
		}
	}
	return out + `"` + g.pick("", "", " ")
}

func (g attributeGrammar) line() string {
	out := g.pick("", "", "", "", " ", "\t", "\r")
	switch g.IntN(10) {
	case 0, 1, 2:
		out += "[attr]" + g.pick(g.name(), g.name(), g.name(), g.name(), "", " "+g.name(), "\t"+g.name(), "-x", "m1=x", "!m1")
	case 3:
		out += g.quoted("[attr]" + g.pick("", " ", " ", "\t") + g.pick(g.name(), "", "m1 m2", "m1\x00", "m1\v"))
	case 4:
		out += g.pick("#a", "", "#", "[attr]#")
	default:
		out += g.pattern()
	}
	for range g.IntN(4) {
		out += g.pick(" ", " ", " ", "  ", "\t", "\r", " \r ", "\v") + g.state()
	}
	return out + g.pick("", "", "", " ", "\r", "\x00", "\x00 filter=lfs")
}

// attributePaths are the paths to check, in each of the folders.
var attributePaths = []string{"a", "b.x", "d/b", "d/e/a", "t", "d/bc/a", "a b", "é", "#", "!a", "[attr]", "\xef\xbb\xbfa"}

// file returns a file for the top or for the folder d.
func (g attributeGrammar) file() string {
	text := g.pick("", "", "", "", "", "\ufeff")
	for range 1 + g.IntN(6) {
		text += g.line() + g.pick("\n", "\n", "\n", "\n", "\r\n")
	}
	if g.IntN(30) == 0 {
		text += "a " + strings.Repeat("x", g.IntN(8)+attribute.LineLimit-6) + g.pick("\n", "")
	}
	return text
}

// resolve returns the attributes of a path according to our parser, reading the files from the top down.
func resolve(files map[string]string, path string) map[string]string {
	var lines []attribute.Placed
	for _, dir := range []string{"", "d/"} {
		if !strings.HasPrefix(path, dir) {
			continue
		}
		var long []int // lines that git ignores because of their length: misread reports such a file
		n := 0
		for line := range strings.Lines(strings.TrimPrefix(files[dir], "\ufeff")) {
			n++
			line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), "\x00")
			if len(line) >= attribute.LineLimit {
				long = append(long, n)
			}
		}
		for _, l := range attribute.Parse([]byte(files[dir]), dir == "") {
			if !slices.Contains(long, l.Number) {
				lines = append(lines, attribute.Placed{Line: l, Below: dir})
			}
		}
	}
	found := attribute.Resolve(lines, path, false, false)[0]
	for name, value := range found {
		if value == "unspecified" {
			delete(found, name)
		}
	}
	return found
}

// TestAttributesAreGits compares our parser with git check-attr.
func TestAttributesAreGits(t *testing.T) {
	t.Parallel()
	wanted := 10_000
	if text := os.Getenv("AIRLOCK_TEST_CASES"); text != "" {
		n, err := strconv.Atoi(text)
		check(t, err)
		wanted = n
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := attributeGrammar{rand.New(rand.NewPCG(seed, 0))}
	top, answered := t.TempDir(), 0
	check(t, exec.Command("git", "init", "-q", top).Run())
	check(t, os.Mkdir(filepath.Join(top, "d"), 0o700))
	for cases := 0; cases < wanted; cases += len(attributePaths) {
		files := map[string]string{"": g.file(), "d/": g.file()}
		for dir, content := range files {
			check(t, os.WriteFile(filepath.Join(top, dir, ".gitattributes"), []byte(content), 0o600))
		}
		git := exec.Command("git", "check-attr", "-a", "-z", "--stdin")
		git.Dir, git.Stdin = top, strings.NewReader(strings.Join(attributePaths, "\x00")+"\x00")
		git.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "XDG_CONFIG_HOME="+top)
		out, err := git.Output()
		check(t, err)
		want := map[string]map[string]string{}
		fields := strings.Split(string(out), "\x00")
		for ; len(fields) > 3; fields = fields[3:] {
			name := path.Clean(fields[0])
			if want[name] == nil {
				want[name] = map[string]string{}
			}
			want[name][fields[1]] = fields[2]
			answered++
		}
		for _, name := range attributePaths {
			if got := resolve(files, name); fmt.Sprint(got) != fmt.Sprint(want[name]) {
				t.Fatalf("%q of %q: %q, git says %q", name, files, got, want[name])
			}
		}
	}
	t.Logf("%d cases, %d attributes", wanted, answered)
}

// macroFile generates an attribute file that defines macros, and uses them in the lines, which have one pattern each.
func (g attributeGrammar) macroFile(lines map[string]string) string {
	all := slices.Sorted(maps.Values(lines))
	for range g.IntN(5) {
		all = append(all, "[attr]"+g.pick("m1", "m2", "m3", "binary")+g.hidingStates())
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all, "\n") + "\n"
}

func (g attributeGrammar) hidingStates() (text string) {
	for range 1 + g.IntN(2) {
		text += " " + g.pick("-diff", "-diff", "diff", "!diff", "diff=x", "text", "binary", "m1", "m1", "m2", "m2", "m3", "-m1", "!m2", "m3=x")
	}
	return text
}

// TestDiffsThatMacrosHide has git tell for each line, before and after a commit that changes lines and macros, whether it shows a diff of the line's
// file. The gate must report each line that hides the diff because the commit has changed the line or a macro, wherever the line is.
func TestDiffsThatMacrosHide(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := attributeGrammar{rand.New(rand.NewPCG(seed, 4))}
	top, users := t.TempDir(), filepath.Join(t.TempDir(), "attributes")
	check(t, exec.Command("git", "init", "-q", top).Run())
	check(t, os.Mkdir(filepath.Join(top, "d"), 0o700))
	paths := []string{"f0", "f1", "d/g0", "d/g1", "u0"}
	hidden := func(f files) map[string]bool {
		for _, name := range []string{".gitattributes", "d/.gitattributes"} {
			check(t, os.WriteFile(filepath.Join(top, name), []byte(f[name]), 0o600))
		}
		git := exec.Command("git", append([]string{"-c", "core.attributesFile=" + users, "check-attr", "diff", "--"}, paths...)...)
		git.Dir = top
		out, err := git.Output()
		check(t, err)
		all := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": diff: ")
			all[name] = value == "unset"
		}
		return all
	}
	rounds, byLine, byMacro, more := 150, 0, 0, 0
	for range rounds {
		lines, deep := map[string]string{}, map[string]string{}
		change := func() (f files) {
			for _, name := range paths[:4] {
				in := lines
				if strings.HasPrefix(name, "d/") {
					in = deep
				}
				if in[name] == "" || g.IntN(4) == 0 {
					in[name] = path.Base(name) + g.hidingStates()
				}
			}
			f = files{".gitattributes": g.macroFile(lines), "d/.gitattributes": strings.Join(slices.Sorted(maps.Values(deep)), "\n") + "\n"}
			if g.IntN(6) == 0 {
				f[".gitattributes"] = "" // without macros and lines
				clear(lines)
			}
			return f
		}
		info, own := g.macroFile(map[string]string{"u0": "u0" + g.hidingStates()}), g.macroFile(nil)
		check(t, os.WriteFile(filepath.Join(top, ".git/info/attributes"), []byte(info), 0o600))
		check(t, os.WriteFile(users, []byte(own), 0o600))
		before := change()
		had := map[string]string{}
		maps.Copy(had, lines)
		maps.Copy(had, deep)
		after := change()
		was, is := hidden(before), hidden(after)
		s := newStore()
		facts := Facts{Workspace: ".devspace-7f3a", Top: top, Config: gitops.Config{"core.attributesfile": users}, Host: hostgit.Files{CommonDir: filepath.Join(top, ".git")}}
		found, err := New(Settings{}, facts, s).Check(t.Context(), s.commit(testBase.with(before), testBase.with(after), "x\n"))
		check(t, err)
		detail := ""
		for _, f := range found {
			if f.Rule == "hidden-text" {
				detail = f.Detail + ";"
			}
		}
		for _, name := range paths {
			changed := name != "u0" && had[name] != cmp.Or(lines[name], deep[name])
			reported := strings.Contains(detail, " no diff of "+path.Base(name)+";")
			switch {
			case is[name] && (changed || !was[name]):
				if changed {
					byLine++
				} else {
					byMacro++
				}
				if !reported {
					t.Errorf("%s has no diff, and is not reported: before %q, after %q, info %q, user's %q: %q", name, before, after, info, own, detail)
				}
			case reported:
				more++
			}
		}
	}
	t.Logf("%d commits, %d diffs hidden by lines, %d by macros, %d other reports", rounds, byLine, byMacro, more)
	if byLine == 0 || byMacro == 0 || more > rounds {
		t.Error("git hides too few diffs, or the gate reports too many")
	}
}

// TestMacrosAreExaminedOnce checks that every state of every macro is examined once as it is and once negated,
// however the macros use each other. The result must be the same as when each use is followed separately.
func TestMacrosAreExaminedOnce(t *testing.T) {
	t.Parallel()
	g := attributeGrammar{rand.New(rand.NewPCG(7, 7))}
	for range 2000 {
		m := attribute.Macros{}
		for range 1 + g.IntN(6) {
			var states []string
			for range g.IntN(4) {
				states = append(states, g.pick("", "", "-", "!")+g.name()+g.pick("", "", "", "=x"))
			}
			m[g.name()] = states
		}
		examined, states := 0, 0
		hit := func(s attribute.Effect) bool {
			return s.State == "filter=x" && !s.Reversed || s.State == "-diff" && s.Reversed
		}
		reached := m.Leading(func(s attribute.Effect) bool { examined++; return hit(s) })
		for name := range m {
			states += len(m[name])
			for _, use := range []attribute.Effect{{State: name}, {State: name, Reversed: true}} {
				if want := leads(m, use, hit, map[attribute.Effect]bool{}); reached[use] != want {
					t.Fatalf("%v in %q: %v, want %v", use, m, reached[use], want)
				}
			}
		}
		if examined != 2*states {
			t.Fatalf("%d states examined, want %d", examined, 2*states)
		}
	}
}

func leads(m attribute.Macros, use attribute.Effect, hit func(attribute.Effect) bool, seen map[attribute.Effect]bool) bool {
	if seen[use] {
		return false
	}
	seen[use] = true
	return slices.ContainsFunc(m[use.State], func(state string) bool {
		s := attribute.Effect{State: state, Reversed: use.Reversed}
		return hit(s) || leads(m, s.Use(), hit, seen)
	})
}
