package land

import (
	"fmt"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// content is the picture with the entries of the index in place of its bytes, which contain times.
func (k *killFixture) content() picture {
	k.T.Helper()
	p := k.picture()
	p["[index]"] = k.Run("ls-files", "--stage")
	return p
}

// back lands the fixture's commit, and makes the fixture a landing back to the commit before.
func (k *killFixture) back() {
	k.T.Helper()
	first := k.content()
	gitopstest.Check(k.T, Land(k.T.Context(), k.Repository, k.request))
	rest()
	k.request.Old, k.request.New = k.new, k.old
	for _, updates := range [][]gitops.RefUpdate{k.request.First, k.request.Refs} {
		for i, u := range updates {
			updates[i].Old, updates[i].New = u.New, u.Old
		}
	}
	k.before, k.first = k.content(), first
}

// TestLandBack lands a commit and lands back to its parent. The user's work stays, and no trace is left.
func TestLandBack(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	k.back()
	gitopstest.Check(t, Land(t.Context(), k.Repository, k.request))
	k.content().equals(t, k.first)
	k.NothingLeft()
}

// TestKilledLandingBack kills a landing back at each step. The user may commit before the recovery.
func TestKilledLandingBack(t *testing.T) {
	t.Parallel()
	steps := []string{stepPrepared, stepLocked, stepJournal, fmt.Sprint(stepSwing, ":3"), stepTree, stepRefs, stepIndex}
	for _, step := range steps {
		for _, commits := range []bool{false, true} {
			t.Run(fmt.Sprint(step, " ", commits), func(t *testing.T) {
				t.Parallel()
				k := newKillFixture(t)
				k.back()
				if !k.kill(step) {
					t.Fatal("not killed: the step is not there")
				}
				want := k.before
				if step == stepRefs || step == stepIndex {
					want = k.first
				}
				tip := k.At("refs/heads/main")
				if commits {
					k.Run("update-ref", "refs/heads/main", k.Run("commit-tree", "-p", string(tip), "-m", "the user's", string(tip)+"^{tree}"))
				}
				for range 2 {
					gitopstest.Check(t, k.recover())
				}
				if commits {
					k.Run("update-ref", "refs/heads/main", string(tip))
				}
				k.content().equals(t, want)
				k.NothingLeft()
			})
		}
	}
}
