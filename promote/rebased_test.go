package promote_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// named returns the agent's newest commit with a subject.
func (w *world) named(subject string) string {
	w.t.Helper()
	return strings.TrimSpace(w.agent("log", "-1", "--format=%H", "--grep=^"+subject+"$", "main"))
}

// judge records a verdict on the newest commits with some subjects, and makes a cycle.
func (w *world) judge(word review.Word, names ...string) {
	w.t.Helper()
	j := verdict.Request{Word: word, Reason: "because"}
	for _, name := range names {
		j.Names = append(j.Names, w.named(name))
	}
	_, err := verdict.Record(w.t.Context(), w.engine, j)
	check(w.t, err)
	w.cycle()
}

// TestRebasedWithoutRejected lets the agent rebase its history without a rejected commit after later ones have landed. Those land nothing
// again, and a commit on top of them lands alone, with its exact tree.
func TestRebasedWithoutRejected(t *testing.T) {
	t.Parallel()
	for _, mine := range []bool{false, true} {
		w := newReviewed(t)
		w.commits("three", "three", "3\n")
		w.commits("four", "four", "4\n")
		w.cycle()
		w.judge(review.Approve, "one")
		w.judge(review.Reject, "two")
		if mine {
			w.git("commit", "-q", "--allow-empty", "-m", "mine")
		}
		w.judge(review.Approve, "three", "four")
		before := w.tip()
		w.agent("rebase", "-q", "--onto", "HEAD~3", "HEAD~2")
		form := gitops.OID(strings.TrimSpace(w.agent("rev-parse", "main")))
		o := w.cycle()
		if w.tip() != before || o.Pending != 0 || o.Waits != 0 || len(o.Rebased) != 2 || o.Rebased[1].Inner != form || o.Rebased[1].Commit != before || o.Rebased[0].Subject != "three" {
			t.Fatalf("%t: %q, %+v", mine, w.subjects(), o)
		}
		w.commits("five", "five", "5\n")
		w.engine = newEngine(w.Repository, w.record, w.inner)
		if o := w.cycle(); o.Pending != 1 || len(o.Rebased) != 2 {
			t.Fatalf("%t: %+v", mine, o)
		}
		w.judge(review.Approve, "five")
		if parent := w.git("rev-parse", "HEAD~"); gitops.OID(parent) != before || noteValues(w.notes()[w.tip()], "Supersedes") != nil {
			t.Fatalf("%t: %q", mine, w.subjects())
		}
		w.wantSameTrees()
		if o := w.cycle(); len(o.Rebased) != 0 || o.Total != 4 {
			t.Errorf("%+v", o)
		}
		w.nothingLeft()
	}
}

// rebaser is an agent that rebases its history without the commits that the user has rejected, and changes a commit now and then.
type rebaser struct {
	*world
	r       *rand.Rand
	commits []string // subjects of the agent's commits
	made    int      // number of commits that the agent has made
	mine    int      // number of the user's commits
}

// inside returns the object name of an inner revision.
func (m *rebaser) inside(name string) string { return strings.TrimSpace(m.agent("rev-parse", name)) }

// work makes commits. Each has a file of its own, and adds a line to a file that several change.
func (m *rebaser) work(n int) {
	for range n {
		m.made++
		name := fmt.Sprintf("c%d", m.made)
		m.commits = append(m.commits, name)
		files := tree{"own/" + name: plain(name + "\n")}
		if m.r.IntN(3) == 0 {
			files["some/"+one(m.r, []string{"x", "y"})] = plain(name + "\n")
		}
		for path, f := range files {
			f.write(m.t, m.inner+"/"+path)
		}
		m.agent("add", "-A")
		m.agent("commit", "-q", "-m", name)
	}
}

// disturb changes the newest commit, so that it is not the one that landed. It returns whether it has.
func (m *rebaser) disturb() bool {
	switch m.r.IntN(8) {
	case 0:
		m.agent("commit", "-q", "--amend", "--allow-empty", "-m", strings.TrimSpace(m.agent("log", "-1", "--format=%s"))+"\n\nreworded")
	case 1:
		m.agent("commit", "-q", "--amend", "--no-edit", "--date=2001-02-03T04:05:06Z")
	case 2:
		plain(fmt.Sprintf("more %d\n", m.made)).write(m.t, m.inner+"/more")
		m.agent("add", "-A")
		m.agent("commit", "-q", "--amend", "--no-edit")
	case 3:
		m.agent("commit", "-q", "--amend", "--no-edit", "--author=Someone <s@x>")
	default:
		return false
	}
	return true
}

// rebase makes the commits since the first rejected one again, without the rejected ones. It returns the new forms up to the first commit that
// is not the one that landed.
func (m *rebaser) rebase(rejected func(string) bool) (same []gitops.OID, landedAs []string) {
	first := slices.IndexFunc(m.commits, rejected)
	var ids []string
	for _, name := range m.commits[first:] {
		ids = append(ids, m.named(name))
	}
	m.agent("reset", "-q", "--hard", ids[0]+"^")
	changed, kept := false, slices.Clone(m.commits[:first])
	for i, name := range m.commits[first:] {
		if rejected(name) {
			continue
		}
		if m.r.IntN(9) == 0 { // a landed one goes, too
			changed = true
			continue
		}
		if _, err := tryGit(m.inner, "", "-c", "user.name=Ghost", "-c", "user.email=g@x", "cherry-pick", "--allow-empty", ids[i]); err != nil {
			m.agent("cherry-pick", "--abort")
			changed = true
			continue
		}
		kept = append(kept, name)
		if changed = m.disturb() || changed; !changed {
			same, landedAs = append(same, gitops.OID(m.inside("main"))), append(landedAs, name)
		}
	}
	m.commits = kept
	return same, landedAs
}

// TestRebasesWithoutRejected makes random histories of which the user rejects some commits and lands others, in one or in two parts, with
// some of the user's commits between them. The agent then rebases without the rejected ones, and changes or drops some others. A new commit counts
// as landed only if it is the same one, and its landed commit has exactly its change. In the end the branch has the files of the agent's newest commit and the user's.
func TestRebasesWithoutRejected(t *testing.T) {
	notShort(t)
	t.Parallel()
	eachSeed(t, seeds(t, few(3, 8)), func(t *testing.T, format string, seed uint64) {
		w := newWorld(t, format, tree{"a": plain("a\n")})
		w.git("config", "airlock.review", "land")
		m := &rebaser{world: w, r: rand.New(rand.NewPCG(seed, 31))}
		for range 3 {
			m.round()
		}
		w.nothingLeft()
	})
}

// round makes commits, verdicts, a rebase and a landing.
func (m *rebaser) round() {
	m.t.Helper()
	begun := len(m.commits)
	m.work(2 + m.r.IntN(4))
	m.cycle()
	var out, in []string
	for i, name := range m.commits[begun:] {
		if i < len(m.commits)-begun-1 && m.r.IntN(2) == 0 {
			out = append(out, name)
		} else {
			in = append(in, name)
		}
	}
	if len(out) == 0 {
		out, in = in[:1], in[1:]
	}
	m.judge(review.Reject, out...)
	for len(in) > 0 {
		n := 1 + m.r.IntN(len(in))
		m.judge(review.Approve, in[:n]...)
		if in = in[n:]; m.r.IntN(2) == 0 {
			m.mine++
			m.world.mine(fmt.Sprintf("mine/%d", m.mine), "mine\n")
		}
	}
	landed := strings.Fields(m.git("log", "--format=%s", string(m.record.Base)+".."+m.record.Branch))
	missing := func(name string) bool { return !slices.Contains(landed, name) } // rejected, or it needs a rejected one
	before := m.tip()
	same, as := m.rebase(missing)
	o := m.cycle()
	m.t.Logf("rejected %q, rebased to %q, of which the same: %q", out, m.commits, as)
	for i, x := range o.Rebased {
		at := slices.Index(same, x.Inner)
		if at < 0 || x.Subject != as[at] || i > 0 && at == 0 {
			m.t.Fatalf("%+v counts as landed, want %q", x, same)
		}
		if subject := m.git("log", "-1", "--format=%s", string(x.Commit)); subject != x.Subject {
			m.t.Errorf("%+v landed as %q", x, subject)
		}
		if m.mine == 0 && m.git("rev-parse", string(x.Commit)+"^{tree}") != m.inside(string(x.Inner)+"^{tree}") {
			m.t.Errorf("%+v: the trees differ", x)
		}
	}
	if len(o.Rebased) != len(same) {
		m.t.Errorf("%d commits count as landed, want %q; %+v", len(o.Rebased), as, o)
	}
	if m.tip() != before {
		m.t.Error("a rebase alone has moved the branch")
	}
	m.work(1)
	m.cycle()
	m.approveAll()
	if outer, inner := m.git("ls-tree", "-r", "HEAD", "a", "more", "own", "some"), strings.TrimSpace(m.agent("ls-tree", "-r", "main")); outer != inner {
		m.t.Fatalf("the branch has\n%s\nwant\n%s\n%s", outer, inner, m.git("log", "--stat"))
	}
	if n := m.mine; n > 0 && len(strings.Fields(m.git("ls-tree", "--name-only", "HEAD", "mine/"))) != n {
		m.t.Error("a file of the user is lost")
	}
}

// approveAll approves all pending commits, and makes a cycle.
func (m *rebaser) approveAll() {
	m.t.Helper()
	_, err := verdict.Record(m.t.Context(), m.engine, verdict.Request{Word: review.Approve, All: true})
	check(m.t, err)
	if o := m.cycle(); o.Pending != 0 {
		m.t.Fatalf("%+v", o)
	}
}

// TestUndoneFormWithOtherContext undoes a commit, and the agent goes back to an earlier form of it, which a rejected commit beside the changed
// line makes look different. What was undone does not land again by itself, also without a review.
func TestUndoneFormWithOtherContext(t *testing.T) {
	t.Parallel()
	changed := func(numbers ...int) string {
		var text strings.Builder
		for i := range 30 {
			if slices.Contains(numbers, i) {
				text.WriteString("changed ")
			}
			fmt.Fprintln(&text, i)
		}
		return text.String()
	}
	w := newWithReview(t)
	w.commits("lines", "f", changed())
	w.cycle()
	w.judge(review.Approve, "lines")
	w.commits("older", "f", changed(13))
	w.commits("own", "own", "1\n")
	w.commits("newer", "f", changed(13, 19))
	w.commits("between", "f", changed(13, 16, 19))
	w.cycle()
	w.judge(review.Reject, "older", "newer")
	w.judge(review.Approve, "own", "between")
	w.agent("rebase", "-q", "--onto", "HEAD~2", "HEAD~1") // without newer
	w.agent("branch", "first")
	w.cycle()
	w.agent("rebase", "-q", "--onto", "HEAD~3", "HEAD~2") // without older
	w.cycle()
	_, err := w.undo()
	check(t, err)
	w.cycle()
	w.agent("reset", "-q", "--hard", "first")
	w.cycle()
	w.git("config", "airlock.review", "off")
	w.engine = newEngine(w.Repository, w.record, w.inner)
	if o := w.cycle(); w.subjects() != "lines" || o.Pending != 0 {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
}
