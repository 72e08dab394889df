package promote_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// TestRejectedComesBack lands a commit without the rejected one before it. Then the agent rebases, and a copy of the rejected commit comes
// back with it: with another change around it, with another message, author and date, or as it was. The copy is never new. No commit is
// blocked, because all of them can land. Once the agent has the first history again, so has the verdict.
func TestRejectedComesBack(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct{ base, copied, want string }{
		"with another change around it": {"title\none\n", "title\none\ntwo\n", "one:changed two:changed three:new"},
		"as it was":                     {"", "one\ntwo\n", "two:rejected three:new"},
		"with another message":          {"", "one\ntwo\n", "2:changed three:new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithReview(t)
			w.commits("one", "list", "one\n")
			w.commits("two", "list", "one\ntwo\n")
			w.commits("three", "three", "3\n")
			w.cycle()
			w.verdict(review.Reject, "not this", "two")
			if s.base != "" {
				w.verdict(review.Fix, "a title", "one")
				w.verdict(review.Approve, "", "three")
				w.wantLanded("three")
			} else {
				w.verdict(review.Approve, "", "one", "three")
				w.wantLanded("three one")
			}
			before := w.agent("rev-parse", "main")
			if s.base != "" {
				w.agent("reset", "-q", "--hard", "main~3")
				w.commits("one", "list", s.base)
			} else {
				w.agent("reset", "-q", "--hard", "main~2")
			}
			if plain(s.copied).write(t, w.inner+"/list"); name == "with another message" {
				w.agent("commit", "-q", "-a", "-m", "2", "--date=2031-01-01T00:00:00Z", "--author=b <b@example.com>")
			} else {
				w.agent("commit", "-q", "-a", "-m", "two", "--date=2031-01-01T00:00:00Z")
			}
			w.agent("cherry-pick", before)
			w.cycle()
			w.wantStates(s.want)
			w.agent("reset", "-q", "--hard", before)
			w.cycle()
			w.wantStates(map[bool]string{true: "two:rejected one:asked", false: "two:rejected"}[s.base != ""])
		})
	}
}

// listed is what a review showed after a cycle.
type listed struct {
	order   []*commit
	blocked []*commit
	words   map[*commit]review.Word
	said    int // number of verdicts before it
}

// statesAgree checks that no new commit has the change of a rejected one that is gone, and keeps the states for [rewriter.blockedStay].
func (m *rewriter) statesAgree(list []verdict.Reviewable) {
	m.t.Helper()
	m.last = listed{order: slices.Clone(m.order), words: map[*commit]review.Word{}, said: len(m.said)}
	states := map[*commit]review.State{}
	for _, r := range list {
		if i := slices.IndexFunc(m.order, func(c *commit) bool { return c.id == r.Inner }); i >= 0 {
			states[m.order[i]] = r.State
		}
	}
	for _, c := range m.order {
		if m.last.words[c] = m.word(c); states[c] == review.StateBlocked {
			m.last.blocked = append(m.last.blocked, c)
		}
	}
	patch := func(c *commit) string { id, _, _ := strings.Cut(m.digest(c), " "); return id }
	for _, s := range m.said {
		taken := func(c *commit) bool { // a verdict has one commit in its place
			return states[c] != "" && states[c] != review.StateNew && (c.message == s.about.message || c.when == s.about.when || patch(c) == patch(s.about))
		}
		if m.word(s.about) != review.Reject || slices.Contains(m.order, s.about) || slices.ContainsFunc(m.order, taken) {
			continue
		}
		for _, c := range m.order {
			if states[c] == review.StateNew && patch(c) == patch(s.about) {
				m.t.Fatalf("%q is new, and %q was rejected with the same change\n%s", c.message, s.about.message, m.history())
			}
		}
	}
}

// blockedStay checks that no commit has landed that was blocked, unless the agent has gone on or a verdict before that has changed.
func (m *rewriter) blockedStay(landed map[*commit]gitops.OID) {
	m.t.Helper()
	left := func(s said) bool { return m.last.words[s.about].LeavesOut() || m.last.words[s.about] == review.Fix }
	if !slices.Equal(m.last.order, m.order) || slices.ContainsFunc(m.said[m.last.said:], left) {
		return
	}
	for _, c := range m.last.blocked {
		if landed[c] != "" {
			m.t.Fatalf("%q has landed, and was blocked\n%s", c.message, m.history())
		}
	}
}
