package promote_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// checker is a check without a prison: what it says depends on the names in a tree.
type checker struct {
	w    *world
	good func(names []string) bool
	runs []gitops.OID // the checked trees
	err  error
}

func (w *world) checked(good func(names []string) bool) *checker {
	w.git("config", "airlock.check", "make test")
	c := &checker{w: w, good: good}
	w.engine.Checker = c
	return c
}

func (c *checker) System(context.Context) (string, error) { return "test", nil }

func (c *checker) Run(_ context.Context, wanted checks.Wanted) (checks.Result, error) {
	tree := gitops.OID(c.w.git("rev-parse", string(wanted.Commit)+"^{tree}"))
	r := checks.Result{Tree: tree, Command: checks.Digest(wanted.Command), System: "test", At: time.Now()}
	if c.runs = append(c.runs, tree); c.err != nil {
		return r, c.err
	}
	if !c.good(strings.Fields(c.w.git("ls-tree", "--name-only", string(tree)))) {
		r.Exit = 2
	}
	return r, checks.Keep(c.w.engine.Repo, r)
}

// passed reports whether a tree has passed.
func (c *checker) passed(tree gitops.OID) bool {
	here, err := checks.Here(c.w.engine.Repo)
	r := checks.In(here[tree], checks.Check{Command: "make test"}, "test")
	check(c.w.t, err)
	return r != nil && r.Passed()
}

// held returns the hold of the check, which must exist.
func (w *world) heldByCheck(o ledger.Outcome) ledger.Hold {
	w.t.Helper()
	holds := o.Of(ledger.Check)
	if len(holds) != 1 {
		w.t.Fatalf("holds: %+v", o.Holds)
	}
	return holds[0]
}

// TestCheckOfPartialSet rejects a commit that a later one needs to build, although both change other files.
func TestCheckOfPartialSet(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.commits("three", "three", "3\n")
	w.cycle()
	c := w.checked(func(names []string) bool { return !slices.Contains(names, "two") || slices.Contains(names, "one") })
	w.verdict(review.Reject, "no", "one")
	w.verdict(review.Approve, "", "two", "three")
	o := w.wantLanded("")
	if h := w.heldByCheck(o); !strings.Contains(h.Message, "(two)") || !strings.Contains(h.Message, "status 2") || len(c.runs) != 2 {
		t.Errorf("%d runs, %+v", len(c.runs), h)
	}
	w.wantLanded("") // nothing is checked again
	if len(c.runs) != 2 {
		t.Errorf("%d runs", len(c.runs))
	}
	w.verdict(review.Reject, "does not build", "two")
	w.wantLanded("three")
	if len(c.runs) != 3 {
		t.Errorf("%d runs", len(c.runs))
	}
	w.nothingLeft()
}

// TestCheckOfWholeSet checks that commits land without a check if none is left out, unless the gate says that all wait for it.
func TestCheckOfWholeSet(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	c := w.checked(func(names []string) bool { return !slices.Contains(names, "four") })
	w.verdict(review.Approve, "", "one", "two")
	w.wantLanded("two one")
	if len(c.runs) != 0 {
		t.Errorf("%d runs", len(c.runs))
	}
	w.git("config", "airlock.check.gate", "hold")
	w.git("config", "airlock.review", "off")
	for _, name := range []string{"three", "four", "five"} {
		w.commits(name, name, name)
	}
	o := w.wantLanded("three two one")
	if h := w.heldByCheck(o); !strings.Contains(h.Message, "(four)") || len(c.runs) != 3 {
		t.Errorf("%d runs, %+v", len(c.runs), h)
	}
	w.git("config", "airlock.check", "make other") // without a result
	c.err = errors.New("no prison")
	if h := w.heldByCheck(w.wantLanded("three two one")); !strings.Contains(h.Message, "(five)") || !strings.Contains(h.Message, "no prison") {
		t.Errorf("%+v", h)
	}
	w.engine.Checker = nil
	if h := w.heldByCheck(w.wantLanded("three two one")); strings.Contains(h.Message, "runs now") {
		t.Errorf("%+v", h)
	}
	w.git("config", "--unset", "airlock.check")
	w.wantLanded("five four three two one")
	w.nothingLeft()
}

// TestCheckBesideCollision checks that a file in the way does not make a landing end at a tree that has not passed.
func TestCheckBesideCollision(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	for _, name := range []string{"three", "four"} {
		w.commits(name, name, name)
	}
	w.cycle()
	c := w.checked(func(names []string) bool { return true })
	plain("the user's\n").write(t, w.Top+"/four")
	w.verdict(review.Reject, "no", "one")
	w.verdict(review.Approve, "", "two", "three", "four")
	o := w.wantLanded("")
	if len(c.runs) != 1 || !o.Held(ledger.Collision) {
		t.Errorf("%d runs, %+v", len(c.runs), o)
	}
}

// TestGitCommandAfterCheck checks that a git command which ends in a moment is waited for also after a check that took long.
func TestGitCommandAfterCheck(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.git("config", "airlock.check.gate", "hold")
	w.git("config", "airlock.review", "off")
	lock := filepath.Join(w.Top, ".git", "index.lock")
	w.checked(func([]string) bool {
		time.Sleep(3100 * time.Millisecond) // more than Drain waits
		check(t, os.WriteFile(lock, nil, 0o600))
		time.AfterFunc(400*time.Millisecond, func() { os.Remove(lock) })
		return true
	})
	w.wantLanded("two one")
}

// TestCheckedTreesLand approves and rejects random commits, some of which do not build without others, and expects that a partial set
// lands only with a tree that has passed.
func TestCheckedTreesLand(t *testing.T) {
	t.Parallel()
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		w := newWithReview(t)
		needs := map[string]string{}
		var names []string
		for i := range 3 + r.IntN(5) {
			name := "c" + strconv.Itoa(i)
			if i > 0 && r.IntN(2) == 0 {
				needs[name] = names[r.IntN(i)]
			}
			names = append(names, name)
			w.commits(name, name, name+"\n")
		}
		w.cycle()
		c := w.checked(func(there []string) bool {
			return !slices.ContainsFunc(there, func(n string) bool { return needs[n] != "" && !slices.Contains(there, needs[n]) })
		})
		var rejected []string
		for _, name := range names {
			switch r.IntN(3) {
			case 0:
				w.verdict(review.Reject, "no", name)
				rejected = append(rejected, name)
			default:
				w.verdict(review.Approve, "", name)
			}
			if r.IntN(2) == 0 {
				w.cycle()
			}
		}
		o := w.cycle()
		landed := strings.Fields(w.subjects())
		partial := slices.ContainsFunc(rejected, func(n string) bool {
			return slices.ContainsFunc(landed, func(l string) bool { return slices.Index(names, n) < slices.Index(names, l) })
		})
		if tip := gitops.OID(w.git("rev-parse", "HEAD^{tree}")); partial && !c.passed(tip) {
			t.Errorf("seed %d: %v landed without %v, and nobody has checked it: %+v", seed, landed, rejected, o)
		}
		if len(landed)+len(rejected) < len(names) {
			w.heldByCheck(o)
		}
	}
}

var _ promote.Checker = &checker{}
