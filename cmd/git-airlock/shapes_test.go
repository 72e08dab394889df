package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

// personal lists the shapes that depend on the user who runs git. The second run, as an ordinary user, uses only these.
var personal = []string{"bare-worktree.txtar", "filters.txtar", "linked-worktree.txtar", "odd-path.txtar", "plain.txtar",
	"separate-git-dir.txtar", "shared.txtar", "sparse-index.txtar", "submodule.txtar", "symlinked.txtar"}

// wholeShapes lists the shapes that go through the whole lifecycle also with -short: those with other indexes and work trees. Of the others, a
// short run takes the personal ones only.
var wholeShapes = []string{"linked-worktree.txtar", "plain.txtar", "sparse-index.txtar"}

// isRun reports whether this run takes a shape.
func isRun(shape string) bool {
	isPersonal := slices.Contains(personal, shape)
	switch {
	case onceMore():
		return isPersonal
	case testing.Short():
		return isPersonal || slices.Contains(wholeShapes, shape)
	}
	return true
}

// TestShapes tests the lifecycle with every shape of repository in testdata/shapes. Each script there is continued with
// testdata/lifecycle.txtar.
func TestShapes(t *testing.T) {
	needNative(t)
	t.Parallel()
	lifecycle, err := txtar.ParseFile("testdata/lifecycle.txtar")
	if err != nil {
		t.Fatal(err)
	}
	names := scriptsIn(t, "shapes")
	names = slices.DeleteFunc(names, func(name string) bool { return !isRun(filepath.Base(name)) })
	dir := t.TempDir()
	for i, name := range names {
		shape, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sections := strings.SplitAfter(string(lifecycle.Comment), "\n\n")
		if testing.Short() && !slices.Contains(wholeShapes, filepath.Base(name)) {
			sections = slices.DeleteFunc(sections, func(s string) bool { return strings.HasPrefix(s, "# Whole: ") })
		}
		shape.Comment = append(slices.Clip(shape.Comment), strings.Join(sections, "")...)
		shape.Files = slices.Concat(shape.Files, lifecycle.Files)
		names[i] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(names[i], txtar.Format(shape), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runScripts(t, names, testscript.Params{Setup: setup(t), RequireUniqueNames: true})
}

// hasReftable reports whether git supports reftables.
var hasReftable = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	return exec.Command("git", "init", "-q", "--ref-format=reftable", dir).Run() == nil
})
