package land

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// newSkippedFixture returns a landing on files with the skip-worktree bit, of which one is not in the working tree.
func newSkippedFixture(t *testing.T) *killFixture {
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"f": "1", "g": "1", "gone": "1", "out": "1", "keep": "1"})
	new := w.Built(old, gitopstest.Files{"f": "2", "g": "2", "gone": gitopstest.Absent, "out": "2"})
	w.Run("update-index", "--skip-worktree", "f", "gone", "out")
	w.Write(gitopstest.Files{"out": gitopstest.Absent})
	rest()
	return &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: w.picture()}
}

// isAfterSkipped checks that everything has landed: without a sparse checkout git also writes files with the
// skip-worktree bit.
func (k *killFixture) isAfterSkipped() {
	k.T.Helper()
	k.landed(k.new)
	tree := k.tree()
	delete(tree, ".git")
	tree.equals(k.T, picture{"f": "-rw-r--r-- 2", "g": "-rw-r--r-- 2", "out": "-rw-r--r-- 2", "keep": "-rw-r--r-- 1"})
	k.wantStatus("")
}

func TestRecoveryOfSkippedFiles(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepJournal, stepSwing + ":1", stepSwing + ":2", stepSwing + ":3", stepTree, stepRefs, stepIndex} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			k := newSkippedFixture(t)
			k.mustKill(step)
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

// A power loss can undo the moves of files by the killed process, with or without the skip-worktree bit.
func TestRecoveryFinishesSkippedFiles(t *testing.T) {
	t.Parallel()
	k := newSkippedFixture(t)
	k.mustKill(stepRefs)
	k.Write(gitopstest.Files{"f": "1", "g": "1", "gone": "1"})
	gitopstest.Check(t, k.recover())
	k.isAfterSkipped()
}

// Files outside of a sparse checkout stay outside, whether recovery finishes or undoes the landing.
func TestRecoveryInASparseCheckout(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepTree, stepRefs, stepIndex} {
		w := newWorld(t)
		old := w.CommitAll(gitopstest.Files{"in/f": "1", "out/f": "1", "out/gone": "1"})
		new := w.Built(old, gitopstest.Files{"in/f": "2", "out/f": "2", "out/gone": gitopstest.Absent, "out/new": "2"})
		w.Run("sparse-checkout", "set", "in")
		rest()
		k := &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: w.picture()}
		k.mustKill(step)
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
