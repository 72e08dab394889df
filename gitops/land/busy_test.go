package land

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestSlowPatterns lands a commit with an attribute file for which git needs exponential time. The landing ends and leaves
// nothing behind.
func TestSlowPatterns(t *testing.T) {
	defer func(before time.Duration) { buildTime = before }(buildTime)
	buildTime = time.Second
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a/b": "1"})
	rest()
	slow := gitopstest.Files{".gitattributes": strings.Repeat("**/a/", 40) + "b text\n", strings.Repeat("a/", 60) + "c": "1"}
	err := Land(t.Context(), w.Repository, w.landing(old, w.Built(old, slow)))
	if !gitops.Spent(err) {
		t.Errorf("the landing ends with %v", err)
	}
	if got := gitops.OID(w.Run("rev-parse", "HEAD")); got != old {
		t.Errorf("HEAD is %s, want %s", got, old)
	}
	w.NothingLeft()
	w.land(old, w.Built(old, gitopstest.Files{".gitattributes": "*.b text\n", "a/b": "2"}))
}

// slowFiles are an attribute file and a path for which git needs exponential time.
var slowFiles = struct{ attributes, path string }{strings.Repeat("**/a/", 40) + "b text\n", strings.Repeat("a/", 60) + "c"}

// TestSlowCheck lands a change of a path that slow patterns match with, in a work tree that has them already: the check before the landing ends.
func TestSlowCheck(t *testing.T) {
	defer func(before time.Duration) { buildTime = before }(buildTime)
	buildTime = time.Second
	w := newWorld(t)
	dated := func(ago time.Duration) { // so that git has to read the file, or not
		at := time.Now().Add(-ago)
		gitopstest.Check(t, os.Chtimes(filepath.Join(w.Top, slowFiles.path), at, at))
	}
	w.Write(gitopstest.Files{slowFiles.path: "1"})
	dated(time.Hour)
	w.CommitAll(nil)
	w.Write(gitopstest.Files{".gitattributes": slowFiles.attributes})
	w.Run("add", ".gitattributes")
	w.Run("commit", "-q", "-m", "slow")
	old := gitops.OID(w.Run("rev-parse", "HEAD"))
	dated(2 * time.Hour)
	rest()
	request := w.landing(old, w.Built(old, gitopstest.Files{slowFiles.path: "2"}))
	for name, try := range map[string]func(context.Context, *gitops.Repository, Landing) error{"check": Check, "land": Land} {
		if err := try(t.Context(), w.Repository, request); !gitops.Spent(err) || !strings.Contains(err.Error(), "git update-index") {
			t.Errorf("%s ends with %v", name, err)
		}
		w.NothingLeft()
	}
}

// TestSlowRecovery recovers a landing that was killed, in a repository in which the user has slow patterns. The recovery ends in time, and a later
// recovery finishes the landing.
func TestSlowRecovery(t *testing.T) {
	defer func(before time.Duration) { buildTime = before }(buildTime)
	buildTime = time.Second
	for _, step := range []string{stepTree, stepRefs} {
		w := newWorld(t)
		old := w.CommitAll(gitopstest.Files{slowFiles.path: "1"})
		rest()
		k := &killFixture{world: w, old: old, new: w.Built(old, gitopstest.Files{slowFiles.path: "2"})}
		k.request, k.before = w.landing(old, k.new), w.picture()
		k.mustKill(step)
		k.Write(gitopstest.Files{".gitattributes": slowFiles.attributes})
		if err := k.recover(); !gitops.Spent(err) {
			t.Errorf("the recovery ends with %v", err)
		}
		if !gitops.HasJournal(w.State) {
			t.Error("the journal is gone")
		}
		gitopstest.Check(t, os.Remove(filepath.Join(w.Top, ".gitattributes")))
		gitopstest.Check(t, k.recover())
		if step == stepTree {
			k.isBefore()
		} else {
			w.landed(k.new)
		}
	}
}
