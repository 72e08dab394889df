package land

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// newSkippedFixture is a landing on files that git was told to skip: some lie in the working tree, one does not.
func newSkippedFixture(t *testing.T) *killFixture {
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"f": "1", "g": "1", "gone": "1", "out": "1", "keep": "1"})
	new := w.Built(old, gitopstest.Files{"f": "2", "g": "2", "gone": gitopstest.Absent, "out": "2"})
	w.Run("update-index", "--skip-worktree", "f", "gone", "out")
	w.Write(gitopstest.Files{"out": gitopstest.Absent})
	rest()
	return &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: w.picture()}
}

// isAfterSkipped demands that all has landed: without a sparse checkout git writes also what it does not look at.
func (k *killFixture) isAfterSkipped() {
	k.T.Helper()
	k.landed(k.new)
	tree := k.tree()
	delete(tree, ".git")
	tree.equals(k.T, picture{"f": "-rw-r--r-- 2", "g": "-rw-r--r-- 2", "out": "-rw-r--r-- 2", "keep": "-rw-r--r-- 1"})
	if got := k.Run("status", "--porcelain"); got != "" {
		k.T.Errorf("git status says\n%s", got)
	}
}

func TestRecoveryOfSkippedFiles(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepJournal, stepSwing + ":1", stepSwing + ":2", stepSwing + ":3", stepTree, stepRefs, stepIndex} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			k := newSkippedFixture(t)
			if !k.kill(step) {
				t.Fatal("not killed")
			}
			gitopstest.Check(t, k.recover())
			if step == stepRefs || step == stepIndex {
				k.isAfterSkipped()
				return
			}
			k.isBefore()
			gitopstest.Check(t, Land(t.Context(), k.Repository, k.request))
			k.isAfterSkipped()
		})
	}
}

// A power loss can keep back files that the killed process had moved, hidden or not.
func TestRecoveryFinishesSkippedFiles(t *testing.T) {
	t.Parallel()
	k := newSkippedFixture(t)
	if !k.kill(stepRefs) {
		t.Fatal("not killed")
	}
	k.Write(gitopstest.Files{"f": "1", "g": "1", "gone": "1"})
	gitopstest.Check(t, k.recover())
	k.isAfterSkipped()
}

// A journal of old does not say what lay in the working tree; what does now was landed.
func TestRecoveryOfSkippedFilesByAnOldJournal(t *testing.T) {
	t.Parallel()
	k := newSkippedFixture(t)
	if !k.kill(stepSwing + ":3") { // f is new, gone is gone, g is old
		t.Fatal("not killed")
	}
	k.Write(gitopstest.Files{"gone": "1"}) // whether it lay there, that journal does not say
	content, err := os.ReadFile(gitops.JournalPath(k.State))
	gitopstest.Check(t, err)
	var fields map[string]any
	gitopstest.Check(t, json.Unmarshal(content, &fields))
	delete(fields, "absent")
	content, err = json.Marshal(fields)
	gitopstest.Check(t, err)
	gitopstest.Check(t, os.WriteFile(gitops.JournalPath(k.State), content, 0o600))
	gitopstest.Check(t, k.recover())
	k.isBefore()
}

// What a sparse checkout leaves out stays out, whichever way recovery goes.
func TestRecoveryInASparseCheckout(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepTree, stepRefs, stepIndex} {
		w := newWorld(t)
		old := w.CommitAll(gitopstest.Files{"in/f": "1", "out/f": "1", "out/gone": "1"})
		new := w.Built(old, gitopstest.Files{"in/f": "2", "out/f": "2", "out/gone": gitopstest.Absent, "out/new": "2"})
		w.Run("sparse-checkout", "set", "in")
		rest()
		k := &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: w.picture()}
		if !k.kill(step) {
			t.Fatal("not killed")
		}
		gitopstest.Check(t, k.recover())
		if step == stepTree {
			k.isBefore()
			gitopstest.Check(t, Land(t.Context(), k.Repository, k.request))
		}
		k.landed(new)
		tree := k.tree()
		delete(tree, ".git")
		tree.equals(t, picture{"in/f": "-rw-r--r-- 2"})
		if got := k.Run("status", "--porcelain"); got != "" {
			t.Errorf("%s: git status says\n%s", step, got)
		}
	}
}
