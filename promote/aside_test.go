package promote_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// landedNames returns the subjects of the branch's commits since the base, sorted.
func (w *world) landedNames() []string {
	return slices.Sorted(slices.Values(strings.Fields(w.subjects())))
}

// TestLandsWithoutHeldCommit lands the commits that do not need a held one, and then the held one on top of them.
func TestLandsWithoutHeldCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "one", "1")
	w.commits("held", recipe, "x\n")
	w.commits("needs", recipe, "x\ny\n")
	w.commits("four", "four", "4")
	o := w.cycle()
	if o.Landed != 2 || o.Pending != 2 || w.subjects() != "four one" || !o.Held(ledger.Policy) {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	held := strings.TrimSpace(w.agent("rev-parse", "HEAD~2"))
	note := w.notes()[w.tip()]
	if got := noteValues(note, "Without"); !slices.Equal(got, []string{held, strings.TrimSpace(w.agent("rev-parse", "HEAD~1"))}) || noteValue(note, "Tree") != "merged" {
		t.Errorf("the note: %s", note)
	}
	pending := w.ref(w.record.Ref("pending"))
	for range 2 { // nothing changes, in another process either
		w.engine = newEngine(w.Repository, w.record, w.inner)
		if o := w.cycle(); o.Pending != 2 || w.ref(w.record.Ref("pending")) != pending {
			t.Fatalf("%+v", o)
		}
	}
	if got := w.git("log", "--format=%s", string(w.tip())+".."+string(pending)); got != "needs\nheld" {
		t.Errorf("pending: %q", got)
	}
	w.commits("five", "five", "5")
	if o := w.cycle(); o.Pending != 2 || w.subjects() != "five four one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	_, err := w.engine.Accept(t.Context(), []policy.Acceptance{{Rule: "recipe"}})
	check(t, err)
	if o := w.cycle(); o.Pending != 0 || len(o.Holds) != 0 || w.subjects() != "needs held five four one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	w.wantSameTrees()
	w.commits("six", "six", "6")
	if o := w.cycle(); o.Landed != 1 || w.subjects() != "six needs held five four one" || noteValue(w.notes()[w.tip()], "Tree") != "exact" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	w.nothingLeft()
}

// TestConflictOffersWhatExists lands the commits around a conflicting one. Each hold that offers the ref pending finds it.
func TestConflictOffersWhatExists(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		w := newWorld(t, "sha1", tree{"a": plain("a\n")})
		w.mine("a", "mine\n")
		w.commits("before", "before", "1\n")
		w.commits("conflicting", "a", "theirs\n")
		if after {
			w.commits("after", "after", "2\n")
		}
		pending, offered := w.record.Ref("pending"), false
		for !offered {
			o, err := w.engine.Cycle(t.Context(), promote.Options{})
			if err != nil || !o.Held(ledger.Conflict) {
				t.Fatalf("%t: %+v, %v", after, o, err)
			}
			offered = slices.Contains(o.Holds[0].Next, hold.Resolve)
			if there := w.ref(pending) != ""; there != offered || !offered && o.Retry == 0 {
				t.Fatalf("%t: pending exists: %t, %+v", after, there, o)
			}
		}
		if got := w.git("log", "--format=%s", ".."+pending); got != "conflicting" && got != "conflicting\nbefore" {
			t.Errorf("%t: pending: %q", after, got)
		}
	}
}

// tip returns the outer branch's commit.
func (w *world) tip() gitops.OID { return w.ref(w.record.Branch) }

// TestRandomHistoriesLandWithoutHeldCommits makes random histories in which some commits are held and some need them, lets the
// agent go on, accepts them in the end, and compares what has landed with a model.
func TestRandomHistoriesLandWithoutHeldCommits(t *testing.T) {
	t.Parallel()
	seedsBelow(t, 6, 300, func(t *testing.T, seed int) {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		w := newWorld(t, []string{"sha1", "sha256"}[seed%2], tree{"a": plain("a\n")})
		var free, all, needed []string // needed: the held ones
		mine := 0
		for n := range 3 + r.IntN(8) {
			name := fmt.Sprintf("c%d", n)
			all = append(all, name)
			switch pick := r.IntN(5); {
			case pick == 0: // a second one needs the first
				w.commits(name, recipe, strings.Repeat("x\n", n+1))
				needed = append(needed, name)
			case pick == 1 && len(needed) > 0:
				w.commits(name, recipe+".d", name) // changes no file of a held one
				free = append(free, name)
			default:
				w.commits(name, name+".txt", name)
				free = append(free, name)
			}
			if r.IntN(4) == 0 {
				if r.IntN(2) == 0 {
					mine++
					w.git("commit", "-q", "--allow-empty", "-m", fmt.Sprint("mine", mine))
				}
				if r.IntN(2) == 0 {
					w.engine = newEngine(w.Repository, w.record, w.inner)
				}
				w.cycle()
			}
		}
		o := w.cycle()
		want := slices.Clone(free)
		for n := range mine {
			want = append(want, fmt.Sprint("mine", n+1))
		}
		if got := w.landedNames(); !slices.Equal(got, slices.Sorted(slices.Values(want))) || o.Pending != len(all)-len(free) {
			t.Fatalf("landed %q, want %q; %+v", got, want, o)
		}
		if len(needed) > 0 {
			_, err := w.engine.Accept(t.Context(), []policy.Acceptance{{Rule: "recipe"}})
			check(t, err)
		}
		if o := w.cycle(); o.Pending != 0 || len(o.Holds) != 0 || w.state().Pending != 0 {
			t.Fatalf("after the acceptance: %+v", o)
		}
		w.wantSameTrees()
		ids := map[string]int{}
		for _, note := range w.notes() {
			ids[noteValue(note, "Inner-Commit")]++
		}
		if len(ids) != len(all) || slices.Max(append([]int{1}, slices.Collect(maps.Values(ids))...)) != 1 {
			t.Errorf("%d commits of %d have notes: %v", len(ids), len(all), ids)
		}
		w.nothingLeft()
	})
}

// TestLandsTogetherInOrder approves a commit that was left out when a later one landed, together with newer ones that need it and undo each
// other. They land in the agent's order, as the commits that were pending if none was rejected.
func TestLandsTogetherInOrder(t *testing.T) {
	t.Parallel()
	for name, rejected := range map[string]bool{"new": false, "rejected": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := landedWithoutOlder(t, "")
			w.agent("update-index", "--chmod=+x", "older")
			w.agent("commit", "-q", "-m", "executable")
			w.agent("update-index", "--chmod=-x", "older")
			w.agent("commit", "-q", "-m", "plain")
			w.commits("newer", "newer", "3\n")
			if rejected {
				w.cycle()
				w.verdict(review.Reject, "because", "older")
				w.verdict(review.Approve, "", "executable", "plain")
				for range 2 {
					w.wantLanded("old")
				}
			}
			w.cycle()
			pending := w.ref(w.record.Ref("pending"))
			w.verdict(review.Approve, "", "older", "executable", "plain", "newer")
			w.wantLanded("newer plain executable older old")
			if w.tip() != pending && !rejected {
				t.Errorf("%s landed, and %s was pending", w.tip(), pending)
			}
			w.wantSameTrees()
			if note := w.notes()[w.tip()]; noteValue(note, "Tree") != "exact" || noteValue(note, "Without") != "" {
				t.Errorf("the note: %s", note)
			}
			w.nothingLeft()
		})
	}
}

// TestRenamedFolder lands a commit that adds a file to a folder after a later commit of the agent has renamed the folder's other files:
// nobody must decide where the file belongs. If the user has renamed them, somebody must.
func TestRenamedFolder(t *testing.T) {
	t.Parallel()
	renames := [][]string{{"mv", "old/x", "new/x"}, {"mv", "old/y", "new/y"}, {"commit", "-q", "-m", "renames"}}
	for name, byUser := range map[string]bool{"by the agent": false, "by the user": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"old/x": plain("x\n"), "old/y": plain("y\n"), "new/n": plain("n\n")})
			w.git("config", "airlock.review", "land")
			w.commits("adds", "old/z", "z\n")
			for _, args := range renames {
				if byUser {
					w.git(args...)
				} else {
					w.agent(args...)
				}
			}
			if w.cycle(); byUser {
				w.verdict(review.Approve, "", "adds")
				if o := w.cycle(); !o.Held(ledger.Conflict) || w.subjects() != "renames" {
					t.Errorf("%q, %+v", w.subjects(), o)
				}
				return
			}
			w.verdict(review.Approve, "", "renames")
			w.wantLanded("renames")
			w.verdict(review.Approve, "", "adds")
			w.wantLanded("adds renames")
			w.wantSameTrees()
		})
	}
}
