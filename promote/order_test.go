package promote_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/undo"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// list returns a file of 20 lines, some of which are changed.
func list(changed map[int]string) string {
	var b strings.Builder
	for n := range 20 {
		if text, there := changed[n+1]; there {
			fmt.Fprintln(&b, text)
		} else {
			fmt.Fprintln(&b, n+1)
		}
	}
	return b.String()
}

// TestNewerCommitStays lets the agent take back a commit that has not landed, and then make its change again in a newer commit, which lands. The
// commit that takes it back is older, so that it must not remove the change of the newer one, however the user decides about the first one.
func TestNewerCommitStays(t *testing.T) {
	notShort(t)
	t.Parallel()
	accept := func(w *world) {
		_, err := w.engine.Accept(w.t.Context(), []policy.Acceptance{{Rule: "recipe"}})
		check(w.t, err)
	}
	drop := func(w *world) { w.leave("drop", "D") }
	resolve := func(w *world) { w.resolves() }
	undone := func(w *world) { w.leave("undo", "D") }
	for name, c := range map[string]struct {
		with, back string       // the files that D, and the commit that takes it back, write as well
		first      func(*world) // after D
		then       func(*world) // after all
		landed     string
		more       bool // the commit that takes D back also changes another line, which stays
		six        bool // N does not make the change of D again, but another one of the same line
	}{
		"undone, other change": {first: undone, landed: "N", six: true},
		"undone":               {first: undone, landed: "N"},
		"undone and approved":  {first: undone, then: func(w *world) { w.verdict(review.Approve, "", "D") }, landed: "R D N"},
		"undone, held, more":   {first: undone, back: recipe, then: accept, landed: "R N", more: true},
		"rejected":             {first: func(w *world) { w.leave("reject", "D") }, landed: "N"},
		"dropped":              {with: recipe, then: drop, landed: "N"},
		"held":                 {with: recipe, landed: "N"},
		"held, more":           {with: recipe, landed: "N R", more: true},
		"accepted":             {with: recipe, then: accept, landed: "R D N"},
		"both accepted, more":  {with: recipe, back: recipe, then: accept, landed: "R D N", more: true},
		"conflict":             {with: "k", landed: "N mine: k"},
		"conflict and dropped": {with: "k", then: drop, landed: "N mine: k"},
		"conflict, resolved":   {with: "k", then: resolve, landed: "R resolved D N mine: k"},
	} {
		test := func(t *testing.T, between bool) {
			t.Parallel()
			w, landed := newWorld(t, "sha1", tree{"f": plain(list(nil)), "k": plain("k\n")}), c.landed
			if c.with == "k" {
				w.mine("k", "mine\n")
			}
			w.git("config", "airlock.review", map[bool]string{true: "land", false: "off"}[name == "rejected"])
			lines := map[int]string{}
			commits := func(name, with string) {
				if with != "" {
					plain("with "+name+"\n").write(t, w.inner+"/"+with)
				}
				w.commits(name, "f", list(lines))
				w.cycle()
			}
			lines[5] = "FIVE"
			if commits("D", c.with); c.first != nil {
				c.first(w)
			}
			if between {
				w.commits("Z", "z", "z\n")
				w.cycle()
				landed = strings.NewReplacer("N R", "N R Z", "N", "N Z").Replace(landed)
			}
			if delete(lines, 5); c.more {
				lines[10] = "TEN"
			}
			commits("R", c.back)
			lines[5], lines[15] = map[bool]string{false: "FIVE", true: "SIX"}[c.six], "FIFTEEN"
			commits("N", "")
			w.cycle()
			if c.then != nil {
				c.then(w)
				w.cycle()
			}
			w.wantLanded(landed)
			if got := w.git("show", "HEAD:f") + "\n"; got != list(lines) {
				t.Errorf("the branch has\n%s\nwant\n%s\n%s", got, list(lines), w.git("log", "-p", "-U0"))
			}
			w.nothingLeft()
		}
		t.Run(name, func(t *testing.T) { test(t, false) })
		t.Run(name+", after another landed", func(t *testing.T) { test(t, true) })
	}
}

// TestNewerCommitStaysAfterSide is like [TestNewerCommitStays], and the commit that takes D back comes with a merge.
func TestNewerCommitStaysAfterSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f": plain(list(nil))})
	lines := map[int]string{5: "FIVE"}
	w.commits("D", "f", list(lines))
	w.leave("undo", "D")
	w.agent("checkout", "-q", "-b", "side")
	w.agent("revert", "--no-edit", "HEAD")
	w.agent("checkout", "-q", "main")
	w.commits("Z", "z", "z\n")
	w.cycle()
	w.agent("merge", "-q", "--no-ff", "--no-edit", "side")
	w.cycle()
	lines[15] = "FIFTEEN"
	w.commits("N", "f", list(lines))
	for range 2 {
		w.wantLanded("N Z")
	}
	if got := w.git("show", "HEAD:f") + "\n"; got != list(lines) {
		t.Errorf("the branch has\n%s\nwant\n%s", got, list(lines))
	}
}

// TestNewerCommitStaysAfterRemade is like [TestNewerCommitStays], with more commits that have not landed. Before the agent takes E back, it has made
// the change of D again.
func TestNewerCommitStaysAfterRemade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"f": plain(list(nil)), "k": plain("k\n")})
	w.mine("k", "mine\n")
	lines := map[int]string{}
	commits := func(name string, line int, text string, more ...int) {
		if lines[line] = text; text == "" {
			delete(lines, line)
		}
		for _, line := range more {
			lines[line] = name
		}
		w.commits(name, "f", list(lines))
		w.cycle()
	}
	commits("D", 3, "THREE")
	w.leave("undo", "D")
	commits("E", 8, "EIGHT")
	w.leave("undo", "E")
	commits("F", 20, "TWENTY")
	w.leave("undo", "F")
	commits("Z", 3, "", 12)
	commits("Y", 3, "THREE")
	commits("R", 8, "")
	commits("R2", 12, "TWELVE", 14)
	commits("N", 8, "EIGHT", 18)
	w.wantLanded("N R2 Y Z mine: k")
	delete(lines, 20)
	if got := w.git("show", "HEAD:f") + "\n"; got != list(lines) {
		t.Errorf("the branch has\n%s\nwant\n%s", got, list(lines))
	}
	w.nothingLeft()
}

// TestRemadeFileStays is like [TestNewerCommitStays], with a file that the agent adds, removes and adds again.
func TestRemadeFileStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("D", "dd", "DD\n")
	w.cycle()
	w.leave("undo", "D")
	w.agent("revert", "--no-edit", "HEAD")
	w.cycle()
	w.agent("cherry-pick", "HEAD~1")
	for range 2 {
		w.wantLanded("D")
	}
	if got := w.files(); !strings.Contains(got, "dd") {
		t.Errorf("the branch has %q", got)
	}
}

// resolves merges the first conflicting commit, as the user does with the agent's form of the files that conflict, which it returns. With the holds, the
// user takes the agent's newest form of these files, and of those that the message names.
func (w *world) resolves(holds ...ledger.Hold) string {
	w.t.Helper()
	commit, merging, err := w.engine.Resolve(w.t.Context())
	if check(w.t, err); !merging {
		return ""
	}
	files := w.git("diff", "--name-only", "--diff-filter=U")
	text, next := hold.Merging(w.t.Context(), w.engine.Repo, commit, "main", holds)
	text += strings.ReplaceAll(strings.Join(next, "\n"), ":/", "")
	for file := range strings.FieldsSeq(files) {
		w.git("checkout", "-q", "--theirs", file)
		w.git("add", file)
	}
	if len(holds) > 0 {
		named := func(after, before string) string {
			_, list, _ := strings.Cut(text, after)
			list, _, _ = strings.Cut(list, before)
			list, _, _ = strings.Cut(list, ", make ")
			if _, paths, shows := strings.Cut(list, " -- "); shows {
				list = paths
			}
			return " " + strings.ReplaceAll(list, ", ", " ")
		}
		for file := range strings.FieldsSeq(files + named("merged by itself in ", ", and") + named(" -- git show ", "  #")) {
			plain(w.agent("show", "HEAD:"+file)+"\n").write(w.t, w.Top+"/"+file)
			w.git("add", file)
		}
	}
	w.git("commit", "-q", "--allow-empty", "-m", "resolved")
	return files
}

// remaker is an agent that takes commits back and makes their changes again, and a user who decides about them in any order. Each commit
// changes some slots: lines of one file, or small files.
type remaker struct {
	*world
	r     *rand.Rand
	made  int
	older int // number of commits that landed after a newer one of the same slot
	files map[string]string
}

// slots are the places that commits change. The lines are so far apart that their changes never conflict.
var slots = []string{"l0", "l1", "l2", "l3", "x0", "x1"}

// TestRandomOrdersKeepTheNewest makes random histories in which the agent takes commits back and makes them again, while the user approves,
// rejects, drops and undoes commits. In each slot the branch has what the newest landed commit has made there, in the agent's order: no older
// commit that lands later takes it away.
func TestRandomOrdersKeepTheNewest(t *testing.T) {
	t.Parallel()
	eachSeed(t, seeds(t, few(2, 12)), func(t *testing.T, format string, seed uint64) {
		w := newWorld(t, format, tree{"f": plain(sections("f")), "keep": plain("keep\n")})
		w.git("config", "airlock.review", "land")
		m := &remaker{world: w, r: rand.New(rand.NewPCG(seed, 31)), files: map[string]string{}}
		for range 24 {
			m.step()
			w.cycle()
			m.newestStays()
		}
		m.settle(3)
	})
}

// settle approves the waiting commits and lets them land, some times. Then nothing may be left.
func (m *remaker) settle(times int) {
	for range times {
		m.decide(review.Approve, 1)
		m.cycle()
		m.newestStays()
	}
	m.nothingLeft()
	m.t.Logf("%d commits, %d have landed, %d of them after a newer one of the same slot", len(m.line()), len(m.landed()), m.older)
}

func (m *remaker) step() {
	switch pick := m.r.IntN(12); {
	case pick < 3:
		m.works()
	case pick < 5:
		m.again("revert", "--no-edit")
	case pick < 6:
		m.again("cherry-pick", "")
	case pick < 9:
		m.decide(review.Approve, 3)
	case pick < 10:
		m.decide(one(m.r, []review.Word{review.Reject, review.Fix}), 3)
	case pick < 11:
		if _, err := m.undo(); !errors.Is(err, operation.ErrNothing) && !errors.As(err, new(*undo.Refused)) { // the user's commit is on top
			check(m.t, err)
		}
	default:
		m.made++
		m.mine(fmt.Sprint("mine", m.made), "mine\n")
	}
}

// works lets the agent commit changes of one or two slots.
func (m *remaker) works() {
	m.made++
	for range 1 + m.r.IntN(2) {
		slot, value := one(m.r, slots), one(m.r, []string{"0", "A", "B"})
		if slot[0] == 'x' && value == "0" {
			m.agent("rm", "-q", "-f", "--ignore-unmatch", slot)
		} else if slot[0] == 'x' {
			plain(strings.Repeat("file "+slot+"\n", 9)+value+"\n").write(m.t, m.inner+"/"+slot)
		} else {
			lines := strings.Split(m.agent("show", "HEAD:f"), "\n")
			lines[2+5*int(slot[1]-'0')] = "value " + value
			plain(strings.Join(lines, "\n")+"\n").write(m.t, m.inner+"/f")
		}
		m.agent("add", "-A")
	}
	m.agent("commit", "-q", "--allow-empty", "-m", fmt.Sprint("c", m.made))
}

// again lets the agent take back one of its newest commits, or make it again.
func (m *remaker) again(args ...string) {
	line := m.line()
	if len(line) == 0 {
		return
	}
	args = append(slices.DeleteFunc(args, func(a string) bool { return a == "" }), line[max(0, len(line)-1-m.r.IntN(4))])
	if _, err := tryGit(m.inner, "", append([]string{"-c", "user.name=Ghost", "-c", "user.email=g@x"}, args...)...); err != nil {
		m.agent("reset", "-q", "--hard")
	}
}

// line returns the agent's commits, oldest first, without those of a crowd.
func (m *remaker) line() []string {
	return strings.Fields(m.agent("rev-list", "--reverse", "--invert-grep", "--grep=^crowd", string(m.record.Root)+"..main"))
}

// decide records a verdict on each of the commits that have not landed with a probability of one in some number.
func (m *remaker) decide(word review.Word, in int) {
	landed := m.landed()
	for _, id := range m.line() {
		if landed[id] != "" || m.r.IntN(in) > 0 {
			continue
		}
		_, err := verdict.Record(m.t.Context(), m.engine, verdict.Request{Word: word, Reason: "because", Names: []string{id}})
		if err != nil && !errors.Is(err, history.ErrNotPending) {
			check(m.t, err)
		}
	}
}

// landed maps the agent's commits on the branch to the outer ones.
func (m *remaker) landed() map[string]string {
	found := map[string]string{}
	notes := m.notes()
	for _, id := range strings.Fields(m.git("rev-list", string(m.record.Base)+"..HEAD")) {
		if inner := noteValue(notes[gitops.OID(id)], "Inner-Commit"); inner != "" {
			found[inner] = id
		}
	}
	return found
}

// slotsOf returns the values of the slots in a commit of a repository.
func (m *remaker) slotsOf(dir, commit string) map[string]string {
	show := func(path string) string {
		key := commit + ":" + path
		if _, known := m.files[key]; !known {
			m.files[key], _ = tryGit(dir, "", "show", key)
		}
		return m.files[key]
	}
	values, lines := map[string]string{}, strings.Split(show("f"), "\n")
	for _, slot := range slots {
		if values[slot] = show(slot); slot[0] == 'l' {
			values[slot] = lines[2+5*int(slot[1]-'0')]
		}
	}
	return values
}

// newestStays checks the branch.
func (m *remaker) newestStays() {
	m.t.Helper()
	landed, root := m.landed(), string(m.record.Root)
	before := m.slotsOf(m.inner, root)
	want, by := maps.Clone(before), map[string]string{}
	for _, id := range m.line() {
		values := m.slotsOf(m.inner, id)
		for _, slot := range slots {
			if landed[id] != "" && values[slot] != before[slot] {
				if was := by[slot]; was != "" && m.isBelow(landed[id], landed[was]) {
					m.older++
				}
				want[slot], by[slot] = values[slot], id
			}
		}
		before = values
	}
	got := m.slotsOf(m.Top, m.git("rev-parse", "HEAD"))
	for _, slot := range slots {
		if got[slot] != want[slot] {
			m.t.Fatalf("%s is %q, want %q by %.7s\n%s\n%s\n%s", slot, got[slot], want[slot], by[slot], m.agent("log", "--reverse", "-p", "-U0", "--format=%n%h %s", "main"),
				m.git("log", "--reverse", "-p", "-U0", "--notes=airlock", "--format=%n%h %s%n%N", "HEAD"), m.states())
		}
	}
}

// isBelow reports whether a commit of the branch is older than another one there.
func (m *remaker) isBelow(commit, other string) bool {
	_, err := tryGit(m.Top, "", "merge-base", "--is-ancestor", commit, other)
	return err == nil
}
