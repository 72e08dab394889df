package inner

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// A main that is there and is not a ref is not the same as none.
func TestMainIsBrokenOrAbsent(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	w.CommitAll(gitopstest.Files{"a": "1"})
	inside := workspaceAt(w.Top)
	file := filepath.Join(w.Top, ".git", Main)
	good, err := os.ReadFile(file)
	gitopstest.Check(t, err)
	write := func(content string) func() error {
		return func() error { return os.WriteFile(file, []byte(content), 0o644) }
	}
	link := func(to string) func() error { return func() error { return os.Symlink(to, file) } }
	for name, c := range map[string]struct {
		make func() error
		want string // of the refusal; empty: there is no main
	}{
		"nothing":         {func() error { return nil }, ""},
		"nonsense":        {write("nonsense\n"), `holds nonsense`},
		"raw":             {write("\x1b[2J\x00x"), `holds \u001b[2J`},
		"empty":           {write(""), `an empty file`},
		"one too long":    {write(strings.TrimSpace(string(good)) + "ff\n"), "holds "},
		"huge":            {write(strings.Repeat("x", 3<<20)), "holds "},
		"a loop":          {write("ref: refs/heads/main\n"), `holds ref: refs/heads/main`},
		"leads nowhere":   {write("ref: refs/heads/none\n"), `holds ref: refs/heads/none`},
		"a link":          {link("/etc/passwd"), "a symbolic link"},
		"a dead link":     {link("nowhere"), "a symbolic link"},
		"a link loop":     {link("main"), "a symbolic link"},
		"a folder":        {func() error { return errors.Join(os.Mkdir(file, 0o755), os.WriteFile(file+"/x", good, 0o644)) }, "a folder"},
		"an empty folder": {func() error { return os.Mkdir(file, 0o755) }, ""},
	} {
		gitopstest.Check(t, os.RemoveAll(file))
		gitopstest.Check(t, c.make())
		id, err := inside.Main(t.Context())
		var refused *Invalid
		switch {
		case id != "":
			t.Errorf("%s: main is at %s", name, id)
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(refused.Reason, Main) || !strings.Contains(refused.Reason, c.want)):
			t.Errorf("%s: %v", name, err)
		}
	}
	gitopstest.Check(t, os.RemoveAll(file))
	gitopstest.Check(t, os.WriteFile(filepath.Join(w.Top, ".git", "packed-refs"), []byte(strings.Repeat("12", 20)+" "+Main+"\n"), 0o644))
	if id, err := inside.Main(t.Context()); err != nil || id == "" {
		t.Errorf("packed, and the commit is missing: %q, %v; the export has to say so", id, err)
	}
}

// TestCommitsAreCountedByThemselves counts commits while .git has other parents for them: in a graft, or in the commit-graph.
func TestCommitsAreCountedByThemselves(t *testing.T) {
	t.Parallel()
	for _, liar := range []string{"grafts", "commit-graph"} {
		w := gitopstest.New(t)
		var ids []string
		for n := range 3 {
			w.CommitAll(gitopstest.Files{"a": strings.Repeat("x", n+1)})
			ids = append(ids, strings.TrimSpace(w.Run("rev-parse", "HEAD")))
		}
		info := filepath.Join(w.Top, ".git", "info")
		gitopstest.Check(t, os.MkdirAll(info, 0o755))
		if liar == "grafts" {
			gitopstest.Check(t, os.WriteFile(filepath.Join(info, liar), []byte(ids[2]+" "+ids[0]+"\n"), 0o644))
		} else {
			w.Run("commit-graph", "write", "--reachable")
			graph := filepath.Join(w.Top, ".git", "objects", "info", liar)
			content, err := os.ReadFile(graph)
			gitopstest.Check(t, err)
			tree, err := hex.DecodeString(strings.TrimSpace(w.Run("rev-parse", "HEAD^{tree}")))
			gitopstest.Check(t, err)
			// Commits are in the order of their names. The number of the first parent follows the tree (gitformat-commit-graph(5)).
			parent := bytes.Index(content, tree) + len(tree)
			binary.BigEndian.PutUint32(content[parent:], uint32(slices.Index(slices.Sorted(slices.Values(ids)), ids[0])))
			gitopstest.Check(t, os.Remove(graph))
			gitopstest.Check(t, os.WriteFile(graph, content, 0o444))
		}
		inside := workspaceAt(w.Top)
		if n, err := inside.Count(t.Context(), ids[2], ids[0]); n != 2 || err != nil {
			t.Errorf("%s: %d commits, %v; want 2", liar, n, err)
		}
		if out, _, err := inside.output(t.Context(), `git rev-list --count "$1" "^$2"`, ids[2], ids[0]); out != "2\n" || err != nil {
			t.Errorf("%s: a script counts %q, %v; want 2", liar, out, err)
		}
	}
}

// TestRefsElsewhere has a main that git does not find, because a setting names another place for the refs.
func TestRefsElsewhere(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	w.CommitAll(gitopstest.Files{"a": "1"})
	inside, config := workspaceAt(w.Top), filepath.Join(w.Top, ".git", "config")
	for _, c := range []struct {
		value, change string
		elsewhere     bool
	}{
		{"files:///nowhere", "nothing", true},
		{"files", "nothing", false},
		{"reftable", "pack-refs", true},
		{"reftable", "branch", false}, // its name is not main then
	} {
		switch c.change {
		case "pack-refs":
			w.Run("pack-refs", "--all")
		case "branch":
			w.Run("branch", "-m", "other")
		}
		before, err := os.ReadFile(config)
		gitopstest.Check(t, err)
		gitopstest.Check(t, os.WriteFile(config, []byte(string(before)+"[extensions]\n\trefStorage = "+c.value+"\n"), 0o644))
		var refused *Invalid
		err = inside.brokenMain(t.Context()) // older gits do not know the setting
		if got := errors.As(err, &refused) && refused.Setting == refStorage && strings.Contains(refused.Reason, c.value); got != c.elsewhere {
			t.Errorf("%s, %s: %v", c.value, c.change, err)
		}
		gitopstest.Check(t, os.WriteFile(config, before, 0o644))
	}
}
