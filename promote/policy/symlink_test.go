package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
	"github.com/git-airlock/git-airlock/promote/policy/treelink"
)

// uncreatableLinks are links with targets near the limits of systems.
var uncreatableLinks = []ruleCase{
	{name: "an empty target", change: files{"l": linkTo}, want: "hold", path: "l"},
	{name: "the longest target and a byte", change: files{"l": linkTo + strings.Repeat("a/", 2048)}, want: "hold", path: "l"},
	{name: "the longest target", change: files{"l": linkTo + strings.Repeat("a/", 2047) + "a"}},
	{name: "a NUL", change: files{"l": linkTo + "src\x00"}, want: "hold", path: "l"},
	{name: "an empty target that was there", before: files{"l": linkTo}, change: files{"m": linkTo + "src"}},
}

// TestOtherNames makes random trees with links on a disk. For each file, the rules that go by name must be asked about exactly
// the names by which the kernel finds that file.
func TestOtherNames(t *testing.T) {
	random, trees, names := rand.New(rand.NewPCG(3, 4)), 200, 0
	for n := range trees {
		d := &linkedTree{T: t, top: t.TempDir(), folders: []string{""}, files: files{}}
		for range 4 + random.IntN(14) {
			d.grow(random)
		}
		s := newStore()
		tree, asked := s.tree(d.files), map[string]bool{}
		g := &Gate{objects: s, links: treelink.Cache{Trees: new(treelink.Trees)}, rules: []rule{{Description{ID: "host-exec"}, func(_ context.Context, _ *inspection, c gitops.Change, _ *report) error {
			asked[c.Path] = true
			return nil
		}, nil}}}
		for path, content := range d.files {
			if strings.HasPrefix(content, linkTo) {
				continue
			}
			clear(asked)
			found, err := g.Check(t.Context(), Commit{Tree: tree, Changes: []gitops.Change{{Path: path, New: s.entry(content)}}})
			check(t, err)
			if len(found) > 0 {
				t.Fatalf("tree %d: %v: %s: %+v", n, d.files, path, found)
			}
			want := map[string]bool{}
			d.reach("", path, nil, want)
			for name := range want {
				if !asked[name] {
					t.Errorf("tree %d: %v: %s is also %s, and no rule was asked about that name", n, d.files, path, name)
				}
			}
			names += len(asked) - 1
			for name := range asked {
				if !want[name] {
					t.Errorf("tree %d: %v: rules were asked about %s, which is not %s", n, d.files, name, path)
				}
			}
		}
	}
	t.Logf("%d trees, %d other names", trees, names)
	if names < trees {
		t.Errorf("only %d names in %d trees", names, trees)
	}
}

// linkedTree is a tree on a disk.
type linkedTree struct {
	*testing.T
	top     string
	folders []string // without the links to folders
	files   files
}

// grow adds a file, a folder or a link.
func (d *linkedTree) grow(random *rand.Rand) {
	dir := d.folders[random.IntN(len(d.folders))]
	path := pathname.Join(dir, string(rune('a'+random.IntN(6))))
	full := filepath.Join(d.top, path)
	if _, err := os.Lstat(full); err == nil {
		return
	}
	switch kind := random.IntN(7); {
	case kind < 2:
		check(d.T, os.Mkdir(full, 0o755))
		d.folders = append(d.folders, path)
	case kind < 4:
		check(d.T, os.WriteFile(full, nil, 0o644))
		d.files[path] = path
	default:
		target := d.target(dir, random)
		check(d.T, os.Symlink(target, full))
		d.files[path] = linkTo + target
	}
}

// target walks through the tree from a folder, and returns the way as the target of a link. It may end where nothing is yet.
func (d *linkedTree) target(dir string, random *rand.Rand) string {
	var way []string
	at := filepath.Join(d.top, dir)
	for range 1 + random.IntN(4) {
		entries, err := os.ReadDir(at)
		check(d.T, err)
		next := []string{"."}
		if at != d.top {
			next = append(next, "..", "..")
		}
		for _, e := range entries {
			next = append(next, e.Name())
		}
		step := next[random.IntN(len(next))]
		real, err := filepath.EvalSymlinks(at + "/" + step)
		if err != nil {
			break
		}
		way, at = append(way, step), real
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			return strings.Join(way, "/")
		}
	}
	if random.IntN(3) == 0 || len(way) == 0 {
		way = append(way, string(rune('a'+random.IntN(6))))
	}
	return strings.Join(way, "/")
}

// reach collects the names below a folder by which the kernel finds a file. entered are the places to which the links of
// the folder's name lead. It does not follow two links to the same place.
func (d *linkedTree) reach(dir, path string, entered []string, names map[string]bool) {
	entries, err := os.ReadDir(filepath.Join(d.top, dir))
	check(d.T, err)
	wanted, err := os.Lstat(filepath.Join(d.top, path))
	check(d.T, err)
	for _, e := range entries {
		name, through := pathname.Join(dir, e.Name()), entered
		full := d.top + "/" + name
		if e.Type() == os.ModeSymlink {
			real, err := filepath.EvalSymlinks(full)
			if err != nil || slices.Contains(entered, real) {
				continue
			}
			through = append(slices.Clone(entered), real)
		}
		info, err := os.Stat(full)
		check(d.T, err)
		if info.IsDir() {
			d.reach(name, path, through, names)
		} else if os.SameFile(info, wanted) {
			names[name] = true
		}
	}
}

// TestRulesByOtherName has changes that a rule finds only by a name through the links of the tree.
func TestRulesByOtherName(t *testing.T) {
	for _, c := range []struct {
		rule           string
		before, change files
		want, path     string
		name           string
	}{
		{"agent-config", files{".mcp.json": linkTo + "a/servers.json"}, files{"a/servers.json": "x"}, "hold", "a/servers.json", ".mcp.json"},
		{"agent-config", files{".claude": linkTo + "a/claude"}, files{"a/claude/settings.json": "x"}, "hold", "a/claude/settings.json", ".claude/settings.json"},
		{"agent-config", files{".mcp.json": linkTo + "l/x", "l": linkTo + "b"}, files{"b/x": "x"}, "hold", "b/x", ".mcp.json"},
		{"agent-config", files{".mcp.json": linkTo + "l/x", "l": linkTo + "b", "c/x": "x"}, files{"l": linkTo + "c"}, "hold", "l", ".mcp.json"},
		{"agent-config", files{".mcp.json": linkTo + "b/x", "b/x": "1", "c/x": "x"}, files{"b/x": "", "b": linkTo + "c"}, "hold", "b", ".mcp.json"},
		{"agent-config", files{"p/.claude": linkTo + "../a", "p2": linkTo + "p"}, files{"a/hooks": linkTo + "../src"}, "hold", "a/hooks", "p/.claude/hooks"},
		{"agent-config", files{"CLAUDE.md": linkTo + "docs/a.md"}, files{"docs/a.md": "x"}, "flag", "docs/a.md", "CLAUDE.md"},
		{"agent-config", files{"CLAUDE.md": linkTo + ".mcp.json"}, files{".mcp.json": "x"}, "hold", ".mcp.json", ""},
		{"agent-config", files{".mcp.json": linkTo + "A/Servers.json"}, files{"a/servers.json": "x"}, "hold", "a/servers.json", ".mcp.json"},
		{"agent-config", files{".mcp.json": linkTo + "a/x"}, files{"a/y": "x", "src/x": "x"}, "", "", ""},
		{"agent-config", files{".mcp.json": linkTo + "a/x", "a/x": "x"}, files{"a/x": ""}, "", "", ""},
		{"host-exec", files{".vscode": linkTo + "editor"}, files{"editor/tasks.json": "x"}, "flag", "editor/tasks.json", ".vscode/tasks.json"},
		{"host-exec", files{"package.json": linkTo + "src/p", "src/p": "{}"}, files{"src/p": `{"scripts":{"a":"b"}}`}, "flag", "src/p", "package.json"},
		{"recipe", files{"coding-environment.toml": linkTo + "src/env", "src/env": "1"}, files{"src/env": "2"}, "hold", "src/env", "coding-environment.toml"},
		{"protected-path", files{"deploy": linkTo + "ops"}, files{"ops/x": "1"}, "hold", "ops/x", "deploy/x"},
		{"protected-path", files{"deploy": linkTo + "ops", "ops/x": "1"}, files{"ops/x": ""}, "hold", "ops/x", "deploy/x"},
		{"protected-path", files{"deploy": linkTo + "ops"}, files{"deploy": "", "ops/x": "1"}, "hold", "deploy", ""},
		{"user-driver", files{"tools/fmt": linkTo + "../src/fmt"}, files{"src/fmt": "x"}, "hold", "src/fmt", "tools/fmt"},
		{"embedded-repo", files{"r/HEAD": "x", "r/objects/k": "x", "r/refs/k": "x", "r/config": linkTo + "../src/c"}, files{"src/c": "x"}, "hold", "src/c", "r/config"},
		{"workspace-exposed", files{".gitignore": linkTo + "src/i"}, files{"src/i": "!/.devspace-7f3a/\n"}, "hold", "src/i", ".gitignore"},
	} {
		s := newStore()
		before := testBase.with(c.before)
		found, err := New(testSettings(t), testFacts, s).Check(t.Context(), s.commit(before, before.with(c.change), "m"))
		check(t, err)
		got, path, detail := "", "", ""
		for _, f := range found {
			if f.Rule == c.rule && got == "" {
				got, path, detail = f.Action.String(), f.Paths[0], f.Detail
			}
		}
		if got != c.want || path != c.path || c.name != "" && !strings.Contains(detail, fmt.Sprintf("as %q, through a link: ", c.name)) {
			t.Errorf("%s: %v, %v: %q at %q (%s)", c.rule, c.before, c.change, got, path, detail)
		}
	}
}

// TestManyNames checks that a path with too many names is held, and passes once it is accepted.
func TestManyNames(t *testing.T) {
	links := files{}
	for n := range 2001 {
		links[fmt.Sprintf("l%d", n)] = linkTo + "src/main.go"
	}
	s := newStore()
	before := testBase.with(links)
	c := s.commit(before, before.with(files{"src/main.go": "x"}), "m")
	found, err := New(Settings{}, testFacts, s).Check(t.Context(), c)
	check(t, err)
	if len(found) != 1 || found[0].Action != Hold || found[0].Paths[0] != "src/main.go" || !strings.Contains(found[0].Detail, "more names through the links of the tree than are checked (2000)") {
		t.Errorf("%+v", found)
	}
	c.Accepted = []Acceptance{{Rule: symlinkEscapeID, Path: "src/main.go"}}
	found, err = New(Settings{}, testFacts, s).Check(t.Context(), c)
	check(t, err)
	if slices.ContainsFunc(found, func(f Finding) bool { return f.Action == Hold }) {
		t.Errorf("accepted: %+v", found)
	}
}

// TestLinksAreReadOnce checks that a gate reads only the folders that no earlier gate has read.
func TestLinksAreReadOnce(t *testing.T) {
	many := files{}
	for n := range 300 {
		many[fmt.Sprintf("d%d/f", n)] = fmt.Sprint(n)
	}
	s := newStore()
	before := testBase.with(many)
	facts := testFacts
	facts.Links = new(treelink.Trees)
	var read []int
	for n := range 2 {
		s.folders = 0
		_, err := New(testSettings(t), facts, s).Check(t.Context(), s.commit(before, before.with(files{"d7/f": fmt.Sprint("changed ", n)}), "m"))
		check(t, err)
		read = append(read, s.folders)
	}
	if read[0] < len(many) || read[1] > 20 {
		t.Errorf("the gates read %d folders", read)
	}
}
