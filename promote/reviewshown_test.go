package promote_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// TestReviewShowsWhatLands approves commits that are blocked, and asks for fixes that the agent makes, in random order. After each step, the
// ref pending has every commit that may still land, and the states say so. What approve --all and promote land was pending before.
func TestReviewShowsWhatLands(t *testing.T) {
	t.Parallel()
	const blocked = 1795901261757799 // a blocked commit is approved after another one has landed, and the agent goes on
	eachSeed(t, append(seeds(t, few(1, 6)), blocked), func(t *testing.T, format string, seed uint64) {
		newReviewer(t, format, seed).showing()
	})
}

// TestPendingAfterApprovalOfBlocked approves a commit that needs a rejected one, after another has landed. Later commits of the agent are
// pending all the same, in the place of those they replace, and the commits that wait are stored once.
func TestPendingAfterApprovalOfBlocked(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("one", "p1", "1\n")
	w.commits("two", "p2", "2\n")
	w.commits("again", "p1", "1\n1\n")
	w.cycle()
	w.verdict(review.Reject, "no", "one")
	w.verdict(review.Approve, "", "two")
	w.wantLanded("two")
	w.verdict(review.Approve, "", "again")
	w.wantLanded("two")
	w.commits("four", "p4", "4\n")
	w.commits("five", "p5", "5\n")
	for range 2 {
		if o := w.cycle(); o.Pending != 2 || !o.Held(ledger.Review) || !o.Held(ledger.Conflict) || len(o.Lacking) != 1 {
			t.Fatalf("%+v", o)
		}
		w.wantStates("one:rejected again:blocked four:new five:new")
	}
	w.verdict(review.Fix, "better", "five")
	w.cycle()
	plain("5\n5\n").write(t, w.inner+"/p5")
	w.agent("commit", "-q", "-a", "--amend", "--no-edit")
	if o := w.cycle(); o.Pending != 2 || w.git("show", w.record.Ref("pending")+":p5") != "5\n5" {
		t.Fatalf("%+v", o)
	}
	w.wantStates("one:rejected again:blocked four:new five:changed")
	w.verdict(review.Approve, "", "four")
	w.wantLanded("four two")
	w.verdict(review.Approve, "", "one")
	w.wantLanded("again one four two")
	verdicts := review.Parse(w.git("notes", "--ref="+review.NotesRef, "show", "HEAD"))
	if v := verdicts; len(v) != 1 || v[0].Word != review.Approve || v[0].Patch == "" || v[0].Tree == "" || v[0].Commit != w.tip() { // it was not pending then
		t.Errorf("the verdicts: %+v", v)
	}
}

// showing makes random steps, and checks after each of them what the user can see.
func (m *reviewer) showing() {
	for range 4 {
		m.work()
	}
	m.a.publish()
	m.cycle()
	m.shown()
	for range 16 {
		switch n := m.r.IntN(16); {
		case n < 4:
			m.work()
			m.a.publish()
		case n < 7:
			m.decide(review.Approve)
		case n < 9:
			m.decide(review.Reject)
		case n < 11:
			m.fixed()
		case n < 12:
			m.decide(review.Fix)
		case n < 13:
			m.take("undo")
		case n < 14:
			m.landsShown(func() {
				decided, err := verdict.Record(m.t.Context(), m.engine, verdict.Request{Word: review.Approve, All: true})
				check(m.t, err)
				for _, d := range decided {
					m.say(m.commitOf(d.Inner), review.Approve)
				}
				m.t.Logf("approve --all: %d", len(decided))
				m.cycle()
			})
		case n < 15:
			m.landsShown(func() {
				_, err := m.engine.Drain(m.t.Context(), promote.Options{Land: true})
				check(m.t, err)
			})
		}
		m.cycle()
		m.shown()
	}
	m.nothingLeft()
}

// fixed asks the agent to fix its newest commit. The agent amends it.
func (m *reviewer) fixed() {
	m.t.Helper()
	c := m.a.main
	if len(c.parents) == 0 || m.landed()[c] != "" {
		return
	}
	_, err := verdict.Record(m.t.Context(), m.engine, verdict.Request{Word: review.Fix, Reason: "because", Names: []string{string(c.id)}})
	check(m.t, err)
	m.say(c, review.Fix)
	m.t.Logf("fix %q", c.message)
	m.cycle()
	m.shown()
	m.amend(c, m.changed(c.files))
	m.a.publish()
}

// landsShown checks that all commits that a step lands were pending before it.
func (m *reviewer) landsShown(step func()) {
	m.t.Helper()
	before, pending, states := m.landed(), m.pending(), m.states()
	step()
	for c := range m.landed() {
		if before[c] == "" && !slices.Contains(pending, c) {
			m.t.Fatalf("%q has landed, and was not pending: %s\n%s", c.message, states, m.history())
		}
	}
}

func (m *reviewer) commitOf(inner gitops.OID) *commit {
	m.t.Helper()
	i := slices.IndexFunc(m.order, func(c *commit) bool { return c.id == inner })
	if i < 0 {
		m.t.Fatalf("%s is not a commit of the agent", inner)
	}
	return m.order[i]
}

// pending returns the agent's commits that the ref pending has beyond the branch.
func (m *reviewer) pending() (list []*commit) {
	m.t.Helper()
	ref := m.record.Ref("pending")
	if m.ref(ref) == "" {
		return nil
	}
	for line := range strings.Lines(m.git("log", "--format=%H", m.record.Branch+".."+ref)) {
		id := gitops.OID(strings.TrimSpace(line))
		list = append(list, m.commitOf(gitops.OID(noteValue(m.notes()[id], "Inner-Commit"))))
	}
	return list
}

// shown checks that the pending commits are a largest set of commits that may still land, and that the states agree with them.
func (m *reviewer) shown() {
	m.t.Helper()
	landed, pending := m.landed(), m.pending()
	tip := m.git("rev-parse", "HEAD^{tree}")
	if len(pending) > 0 {
		tip = m.git("rev-parse", m.record.Ref("pending")+"^{tree}")
	}
	amended := m.undone(landed) != nil
	asks := slices.ContainsFunc(pending, func(c *commit) bool { return m.words[c] == review.Fix }) // what needs it is pending behind it
	states := map[string]string{}
	for _, word := range strings.Fields(m.states()) {
		subject, state, _ := strings.Cut(word, ":")
		states[subject] = state
	}
	for _, c := range m.order {
		state, there := states[strings.TrimSpace(c.message)], slices.Contains(pending, c)
		switch {
		case landed[c] != "" || m.merged[c] != nil:
			continue
		case m.words[c].LeavesOut():
			if there || state != map[review.Word]string{review.Reject: "rejected", review.Undone: "undone"}[m.words[c]] {
				m.t.Errorf("%q is %q after %s, pending: %t", c.message, state, m.words[c], there)
			}
			continue
		case m.words[c] == review.Fix && state != "asked", there && !asks && state == "blocked" && len(c.parents) == 1 && m.needsNothing(c):
			m.t.Errorf("%q is %q after %q, pending: %t\n%s", c.message, state, m.words[c], there, m.history())
		}
		if there || amended || len(c.parents) != 1 {
			continue
		}
		base := m.treeOf(c.parents[0].files)
		if after, clean := m.merge(base, tip, m.treeOf(c.files)); clean && after != tip {
			m.t.Errorf("%q is %s and could be pending\n%s", c.message, state, m.history())
		} else if !clean && state != "blocked" && state != "asked" {
			m.t.Errorf("%q does not apply, and is %s\n%s", c.message, state, m.history())
		}
	}
	m.sameReviewers(landed)
	if m.t.Failed() {
		m.t.FailNow()
	}
}

// needsNothing reports whether the change of a commit applies to the branch. A commit that takes another one's change back is blocked without
// that one, and can still be pending after a third one.
func (m *reviewer) needsNothing(c *commit) bool {
	m.t.Helper()
	tip := m.git("rev-parse", "HEAD^{tree}")
	after, clean := m.merge(m.treeOf(c.parents[0].files), tip, m.treeOf(c.files))
	return clean && after != tip
}

// sameReviewers checks that the two notes of each landed commit name the same reviewer.
func (m *reviewer) sameReviewers(landed map[*commit]gitops.OID) {
	m.t.Helper()
	notes := m.notes()
	for c, id := range landed {
		var lines []string
		if text, err := tryGit(m.Top, "", "notes", "--ref="+review.NotesRef, "show", string(id)); err == nil {
			for _, v := range review.Parse(text) {
				lines = append(lines, string(v.Word)+" "+v.By+" "+v.At.Format(time.RFC3339))
				if v.Patch == "" && len(c.parents) == 1 && m.treeOf(c.files) != m.treeOf(c.parents[0].files) {
					m.t.Errorf("%q has no patch-id in its verdict: %s", c.message, text)
				}
			}
		}
		by := noteValue(notes[id], "Reviewed-By")
		approved := slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "approve "+by) })
		if approved != (by != "") { // several verdicts can have the same second
			m.t.Errorf("the notes of %q disagree: %q and %q", c.message, by, lines)
		}
	}
}
