package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestChangeOfLeftOutFiles makes commits that remove a file, add it again with another content, and remove it again. The first two are rejected
// in different cycles. The third one's change conflicts with the file that the branch has, so it is blocked, and does not land without the removal.
func TestChangeOfLeftOutFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n"), "x": plain("one\n")})
	w.git("config", "airlock.review", "land")
	w.agent("rm", "-q", "x")
	w.agent("commit", "-q", "-m", "removes")
	w.commits("plain", "p", "p\n")
	w.cycle()
	w.verdict(review.Approve, "", "plain")
	w.wantLanded("plain")
	w.commits("adds", "x", "two\n")
	w.agent("rm", "-q", "x")
	w.commits("again", "c", "c\n")
	w.cycle()
	w.verdict(review.Approve, "", "again")
	w.wantLanded("plain")
	w.verdict(review.Approve, "", "removes", "adds")
	w.wantLanded("again adds removes plain")
	if got, want := w.git("ls-tree", "-r", "HEAD"), strings.TrimSpace(w.agent("ls-tree", "-r", "main")); got != want {
		t.Errorf("the branch has %q, want %q", got, want)
	}
	w.nothingLeft()
}

// cleanOnes checks that the own changes of commits that have landed apply to what was on the branch before them.
func (m *reviewer) cleanOnes(fresh func(*commit) bool, landed map[*commit]gitops.OID) {
	m.t.Helper()
	notes := m.notes()
	for _, c := range m.order {
		if !fresh(c) || len(c.parents) != 1 || noteValues(notes[landed[c]], "Supersedes") != nil {
			continue
		}
		if _, clean := m.merge(m.treeOf(c.parents[0].files), m.git("rev-parse", string(landed[c])+"^1^{tree}"), m.treeOf(c.files)); !clean {
			m.t.Fatalf("%q landed, and its change conflicts with what was there\n%s", c.message, m.history())
		}
	}
}
