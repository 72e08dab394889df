package promote_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/incoming"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// from promotes an inner branch in the place of main.
func (w *world) from(branch string) ledger.Outcome {
	w.t.Helper()
	o, err := w.engine.Drain(w.t.Context(), promote.Options{Land: true, From: branch})
	check(w.t, err)
	return o
}

// newWithBranches makes a world in which main has landed one commit, and the branches a and b have one commit each on top of it.
func newWithBranches(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "sha1", tree{"base": plain("1\n2\n3\n4\n5\n6\n7\n8\n9\n")})
	w.commits("m1", "m1", "m1\n")
	for _, branch := range []string{"a", "b"} {
		w.agent("checkout", "-q", "-b", branch, "main")
		w.commits(branch+"1", branch+"1", branch+"1\n")
	}
	w.agent("checkout", "-q", "main")
	w.cycle()
	return w
}

// wantFiles compares the names of the files on the branch.
func (w *world) wantFiles(want string) {
	w.t.Helper()
	if got := strings.Join(strings.Fields(w.git("ls-tree", "--name-only", "HEAD")), " "); got != want {
		w.t.Errorf("the branch has %q, want %q", got, want)
	}
}

func TestLinesKeepEachOther(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	for _, branch := range []string{"a", "b"} {
		if o := w.from(branch); o.Landed != 1 || o.OffMain != 1 || len(o.Holds) > 0 || noteValue(w.notes()[w.tip()], "Tree") != "merged" && branch == "b" {
			t.Errorf("%s: %+v", branch, o)
		}
	}
	w.wantFiles("a1 b1 base m1")
	w.commits("m2", "m2", "m2\n")
	w.engine = newEngine(w.Repository, w.record, w.inner)
	w.lands("m1 a1 b1 m2")
	w.wantFiles("a1 b1 base m1 m2")
	// The agent has rewritten a, and main.
	w.agent("checkout", "-q", "a")
	w.agent("mv", "a1", "a1-amended")
	w.agent("commit", "-q", "--amend", "-m", "a1-amended")
	w.agent("checkout", "-q", "main")
	if o := w.from("refs/heads/a"); o.Landed != 1 || len(o.Holds) > 0 {
		t.Errorf("%+v", o)
	}
	if got := noteValues(w.notes()[w.tip()], "Supersedes"); len(got) != 1 || got[0] != strings.TrimSpace(w.git("rev-parse", "HEAD~3")) {
		t.Errorf("it supersedes %q", got)
	}
	w.wantFiles("a1-amended b1 base m1 m2")
	w.agent("mv", "m2", "m2-amended")
	w.agent("commit", "-q", "--amend", "-m", "m2-amended")
	w.lands("m1 a1 b1 m2 a1-amended m2-amended")
	w.wantFiles("a1-amended b1 base m1 m2-amended")
	// Merged into main, nothing lands twice, also if the user has changed it.
	w.mine("a1-amended", "the user's\n")
	w.agent("merge", "-q", "-m", "merge", "a")
	w.lands("m1 a1 b1 m2 a1-amended m2-amended merge")
	if got := w.git("show", "HEAD:a1-amended"); got != "the user's" {
		t.Errorf("%q", got)
	}
	// From now on a is a part of main: a reset takes it off.
	w.agent("reset", "-q", "--hard", "HEAD~1")
	w.git("checkout", "-q", "HEAD~2", "--", "a1-amended")
	w.git("commit", "-q", "-m", "mine: back")
	w.commits("m3", "m3", "m3\n")
	w.lands("m1 a1 b1 m2 a1-amended m2-amended merge m3")
	w.wantFiles("b1 base m1 m2-amended m3")
	w.nothingLeft()
}

// TestLinesWithoutNames promotes what the agent has checked out, which is another branch each time.
func TestLinesWithoutNames(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	for _, revision := range []string{"HEAD", "@", "HEAD@{0}"} {
		for _, branch := range []string{"a", "b"} {
			w.agent("checkout", "-q", branch)
			w.from(revision)
		}
		w.wantFiles("a1 b1 base m1")
	}
	w.agent("checkout", "-q", "main")
	w.commits("m2", "m2", "m2\n")
	w.from("HEAD")
	w.wantFiles("a1 b1 base m1 m2")
}

// TestLinesOfMain lets main fast-forward to a branch that has landed, and be reset behind it.
func TestLinesOfMain(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	w.from("a")
	w.agent("merge", "-q", "--ff-only", "a")
	if o := w.cycle(); o.Landed != 0 || o.Waits != 0 {
		t.Errorf("%+v", o)
	}
	w.commits("m2", "m2", "m2\n")
	w.lands("m1 a1 m2")
	w.wantSameTrees()
	w.from("b")
	w.agent("reset", "-q", "--hard", "HEAD~2")
	w.commits("m3", "m3", "m3\n")
	w.lands("m1 a1 m2 b1 m3")
	if got := noteValues(w.notes()[w.tip()], "Supersedes"); len(got) != 2 {
		t.Errorf("it supersedes %q", got)
	}
	w.wantFiles("b1 base m1 m3")
}

// TestLineThatIsMain lets the agent rename main. Its commits still count from main's.
func TestLineThatIsMain(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	w.agent("branch", "-m", "main", "master")
	w.agent("mv", "m1", "m1-amended")
	w.agent("commit", "-q", "--amend", "-m", "m1-amended")
	if o := w.from("master"); o.Landed != 1 || len(o.Holds) > 0 {
		t.Errorf("%+v", o)
	}
	w.wantFiles("base m1-amended")
}

func TestLinesConflict(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	for _, branch := range []string{"a", "b"} {
		w.agent("checkout", "-q", branch)
		w.commits(branch+"2", "base", branch+"\n2\n3\n4\n5\n6\n7\n8\n9\n")
	}
	w.agent("checkout", "-q", "main")
	w.from("a")
	o := w.from("b")
	if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.Conflict || o.Landed != 1 || o.Pending != 1 {
		t.Errorf("%+v", o)
	}
	w.wantFiles("a1 b1 base m1")
	if got := w.git("show", "HEAD:base"); !strings.HasPrefix(got, "a\n") {
		t.Errorf("%q", got)
	}
}

// TestLinesUndone undoes the landing of a branch. It stays undone, and the other one stays landed.
func TestLinesUndone(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	w.from("a")
	w.from("b")
	_, err := w.undo()
	check(t, err)
	w.wantFiles("a1 base m1")
	w.commits("m2", "m2", "m2\n")
	w.lands("m1 a1 m2")
	if o := w.from("b"); o.Landed != 0 {
		t.Errorf("%+v", o)
	}
	w.wantFiles("a1 base m1 m2")
	_, err = w.undo()
	check(t, err)
	_, err = w.redo()
	check(t, err)
	w.commits("m3", "m3", "m3\n")
	w.lands("m1 a1 m2 m3")
}

// TestLinesAndVerdicts approves a commit of main after another branch has landed. It lands at once.
func TestLinesAndVerdicts(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	w.git("config", "airlock.review", "land")
	w.commits("m2", "m2", "m2\n")
	w.cycle()
	w.from("a")
	w.verdict(review.Approve, "", "m2")
	if o, err := w.engine.Drain(t.Context(), promote.Options{Known: true}); err != nil || o.Landed != 1 || o.Pending > 0 {
		t.Errorf("%+v, %v", o, err)
	}
	w.wantFiles("a1 base m1 m2")
}

// TestLinesForeseen compares dry runs with what lands. What waits or is left out on main is not of the other branch, and the other way around.
func TestLinesForeseen(t *testing.T) {
	t.Parallel()
	w := newWithBranches(t)
	foresees := func(from string, want int, holds ...ledger.Reason) {
		t.Helper()
		s, err := w.engine.Foresee(t.Context(), promote.Options{Land: true, From: from})
		check(t, err)
		var got []ledger.Reason
		for _, h := range s.Holds {
			got = append(got, h.Reason)
		}
		if s.Pending != want || !slices.Equal(got, holds) {
			t.Errorf("%q: %d commits, holds %q; want %d, %q", from, s.Pending, got, want, holds)
		}
	}
	w.git("config", "airlock.review", "land")
	w.commits("m2", "m2", "m2\n")
	w.cycle()
	_, err := w.leaveOut(w.innerOf("m2"))
	check(t, err)
	w.mine("base", "mine\n")
	w.commits("m3", "base", "m3\n")
	w.cycle()
	foresees("", 1, ledger.Conflict)
	foresees("a", 1)
	if o := w.from("a"); o.Landed != 1 || len(o.Holds) > 0 {
		t.Errorf("%+v", o)
	}
	foresees("a", 0)
	foresees("", 1)
	foresees("main", 1)
}

// linesModel is a world in which each commit of the agent adds a file of its own name. The model has the names that the branch must have.
type linesModel struct {
	*world
	r     *rand.Rand
	n     int
	owner map[string]string // of the agent's names on the branch: "main", or the branch from which it landed if main has not had it
	mine  []string          // the user's
	done  map[string]bool   // inner commits that have landed
	// landed has the names of the agent's commits that the newest landed commit of a line reaches.
	landed map[string]map[string]bool
	log    []string
	// copied has the names of which the agent has made several commits, with a squash or a cherry-pick, and removed those that the user has taken off
	// the branch. Of both, the model knows less: see loose.
	copied, removed map[string]bool
}

// names returns the names of the agent's commits that a revision reaches.
func (m *linesModel) names(revisions ...string) map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(m.agent(append([]string{"log", "--no-merges", "--author=g@x", "--format=%s"}, revisions...)...)) {
		names[name] = true
	}
	return names
}

// commit makes a commit on the agent's branch.
func (m *linesModel) commit() {
	m.n++
	name := fmt.Sprintf("n%d", m.n)
	m.commits(name, name, name+"\n")
}

// line makes the agent work on a branch.
func (m *linesModel) line(branch string, work func()) {
	m.agent("checkout", "-q", branch)
	work()
	m.agent("checkout", "-q", "main")
}

// rewrite removes some of the newest commits of the agent's branch, but no merge and no commit before one.
func (m *linesModel) rewrite() {
	for range 1 + m.r.IntN(3) {
		parents, subject, _ := strings.Cut(m.agent("show", "-s", "--format=%P|%s", "HEAD"), "|")
		if len(strings.Fields(parents)) == 1 && strings.HasPrefix(subject, "n") {
			m.agent("reset", "-q", "--hard", "HEAD~1")
		}
	}
}

// goes forgets a name that leaves the branch: from now on, lines that reach its commit do not have it by that.
func (m *linesModel) goes(name string) bool {
	for _, landed := range m.landed {
		if !m.copied[name] {
			delete(landed, name)
		}
	}
	return true
}

// lands updates the model: the commits of a line land.
func (m *linesModel) lands(line string) {
	var fresh []string
	for id := range strings.FieldsSeq(m.agent("rev-list", line, "^"+string(m.record.Root))) {
		if !m.done[id] && !strings.HasPrefix(m.agent("show", "-s", "--format=%s", id), "Update") {
			fresh = append(fresh, id)
		}
	}
	onMain, onLine := m.names("main"), m.names(line)
	if len(fresh) > 0 {
		has := map[string]bool{} // also what a sync has brought
		for name := range strings.FieldsSeq(m.agent("ls-tree", "--name-only", line)) {
			has[name] = true
		}
		maps.DeleteFunc(m.owner, func(name, owner string) bool {
			switch {
			case has[name] && !onLine[name] && owner == line: // a sync has brought it, and it is the user's from now on
				m.mine = append(m.mine, name)
				return true
			case has[name]:
				return false
			case owner == "main":
				return !onMain[name] && m.goes(name)
			case onMain[name] && line != "main":
				return false
			case owner != line && !m.landed[line][name]:
				return false
			}
			for other, landed := range m.landed {
				if other != line && other != "main" && landed[name] {
					return false
				}
			}
			return m.goes(name)
		})
		m.landed[line] = onLine
		for name := range onLine {
			if m.owner[name] == "" {
				m.owner[name] = line
			}
			if onMain[name] {
				m.owner[name] = "main"
			}
		}
	}
	if line == "main" {
		for name := range onMain {
			if m.owner[name] != "" {
				m.owner[name] = "main"
			}
		}
	}
	for _, id := range fresh {
		m.done[id] = true
	}
}

func (m *linesModel) step() {
	branch := one(m.r, []string{"a", "b"})
	switch do := m.r.IntN(17); {
	case do < 3:
		m.log = append(m.log, fmt.Sprintf("commit n%d on main", m.n+1))
		m.commit()
	case do < 4:
		m.log = append(m.log, "reset main")
		m.rewrite()
	case do < 7:
		m.log = append(m.log, fmt.Sprintf("commit n%d on %s", m.n+1, branch))
		m.line(branch, m.commit)
	case do < 8:
		m.log = append(m.log, fmt.Sprintf("rewrite %s with n%d", branch, m.n+1))
		m.line(branch, func() { m.rewrite(); m.commit() })
	case do < 9:
		m.log = append(m.log, "merge "+branch)
		m.agent("merge", "-q", "-m", "merge", branch)
	case do < 10:
		m.log = append(m.log, "merge main into "+branch)
		m.line(branch, func() { m.agent("merge", "-q", "-m", "merge", "main") })
	case do < 11:
		m.log = append(m.log, "begin "+branch+" again")
		m.agent("branch", "-f", branch, "main")
	case do < 12:
		m.log = append(m.log, "user")
		m.n++
		m.mine = append(m.mine, fmt.Sprintf("u%d", m.n))
		m.world.mine(m.mine[len(m.mine)-1], "mine\n")
	case do < 14:
		m.log = append(m.log, "squash "+branch)
		m.copy(branch, "merge", "-q", "--squash", branch)
	case do < 15:
		m.log = append(m.log, "cherry-pick "+branch)
		if subject := m.agent("show", "-s", "--format=%P|%s", branch); strings.Contains(subject, "|n") && !strings.Contains(subject, " ") {
			m.copy(branch, "cherry-pick", "--no-commit", branch)
		}
	case do < 16:
		m.userRemoves()
	case do < 17 && m.r.IntN(2) == 0:
		m.log = append(m.log, "undo and redo")
		if _, err := m.undo(); err == nil {
			_, err = m.redo()
			check(m.t, err)
		}
	default:
		m.log = append(m.log, "sync")
		m.lands("main")
		if _, err := m.sync(); err != nil && !errors.Is(err, incoming.ErrNothing) && !errors.Is(err, incoming.ErrBehind) {
			m.t.Fatalf("%q: %v", m.log, err)
		}
	}
}

// copy commits on main what a command stages there of a branch, if it is anything. The subject has the names.
func (m *linesModel) copy(branch string, command ...string) {
	m.agent(command...)
	names := strings.Fields(m.agent("diff", "--cached", "--name-only", "--diff-filter=A"))
	own := m.names(branch, "^main")
	synced := slices.ContainsFunc(names, func(name string) bool { return !own[name] })
	if len(names) == 0 || synced { // names of a synced commit are nobody's
		m.agent("reset", "-q", "--hard")
		return
	}
	for _, name := range names {
		m.copied[name] = true
	}
	m.agent("commit", "-q", "-m", strings.Join(names, " "))
}

// userRemoves lets the user take a commit of the agent back.
func (m *linesModel) userRemoves() {
	there := slices.DeleteFunc(strings.Fields(m.git("ls-tree", "--name-only", "HEAD")), func(name string) bool { return !strings.HasPrefix(name, "n") })
	if len(there) == 0 {
		return
	}
	name := one(m.r, there)
	m.log = append(m.log, "the user removes "+name)
	m.git("rm", "-q", name)
	m.git("commit", "-q", "-m", "remove "+name)
	m.removed[name] = true
}

// loose reports whether the branch may have a name, or not, whatever owner says.
func (m *linesModel) loose(name string, there bool) bool {
	if m.removed[name] {
		return !there || m.copied[name] || m.owner[name] == "" // it comes back only with another commit
	}
	if !m.copied[name] {
		return false
	}
	if there {
		for _, line := range []string{"main", "a", "b"} {
			if m.landed[line][name] || m.agent("ls-tree", line, name) != "" {
				return true
			}
		}
	}
	return !there && (m.owner[name] != "main" || !m.names("main")[name] || !m.landed["main"][name])
}

// promote makes a cycle, and compares the branch with the model.
func (m *linesModel) promote(line string) {
	m.t.Helper()
	if m.r.IntN(3) == 0 {
		m.engine = newEngine(m.Repository, m.record, m.inner)
	}
	m.lands(line)
	m.log = append(m.log, fmt.Sprintf("promote %s => %v", line, m.owner))
	from := line
	if line == "main" {
		from = ""
	}
	if o := m.from(from); len(o.Holds) > 0 || o.Pending > 0 {
		m.t.Fatalf("%q: %+v", m.log, o)
	}
	want := append(slices.Sorted(maps.Keys(m.owner)), m.mine...)
	got := slices.DeleteFunc(strings.Fields(m.git("ls-tree", "--name-only", "HEAD")), func(name string) bool { return name == "base" })
	slices.Sort(want)
	slices.Sort(got)
	wrong := slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(got, name) && !m.loose(name, false) }) ||
		slices.ContainsFunc(got, func(name string) bool { return !slices.Contains(want, name) && !m.loose(name, true) })
	if wrong {
		m.t.Fatalf("%q:\nthe branch has %q\nwant %q\n%s", m.log, got, want, m.agent("log", "--graph", "--oneline", "--all"))
	}
}

// TestRandomLines lets two branches and main grow, be rewritten and be merged, and promotes them in any order.
func TestRandomLines(t *testing.T) {
	t.Parallel()
	seedsBelow(t, 6, 300, func(t *testing.T, seed int) {
		w := newWorld(t, "sha1", tree{"base": plain("base\n")})
		m := &linesModel{world: w, r: rand.New(rand.NewPCG(uint64(seed), 0)), owner: map[string]string{}, done: map[string]bool{}, landed: map[string]map[string]bool{}, copied: map[string]bool{}, removed: map[string]bool{}}
		m.commit()
		m.agent("branch", "a")
		m.agent("branch", "b")
		for range 25 {
			m.step()
			if m.r.IntN(2) == 0 {
				m.promote(one(m.r, []string{"main", "a", "b"}))
			}
		}
		m.promote("main")
		m.nothingLeft()
	})
}
