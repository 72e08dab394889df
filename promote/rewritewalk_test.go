package promote_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// TestReviewWalkRewritten does what TestReviewWalk does with an agent that rewrites its history: it rebases the newest commits, of which it
// amends, drops, moves, squashes or rewords one, keeps or flattens merges, resets to any earlier commit, and the user commits, too. Verdicts
// are also made while another command works. A rejected change that comes back is never new, and no blocked commit lands. Nothing lands without an approval of the same change with the same message, the branch has
// no file of another commit, every commit of the agent's newest history has landed or is listed, and once all of them are approved, the branch has the agent's files and the user's.
func TestReviewWalkRewritten(t *testing.T) {
	notShort(t)
	t.Parallel()
	const already = 1795738963718044 // the branch has the change of a commit already that is set aside
	eachSeed(t, append(seeds(t, few(1, 2)), already), func(t *testing.T, format string, seed uint64) {
		m := &rewriter{reviewer: newReviewer(t, format, seed), digests: map[*commit]string{}}
		m.sequence()
	})
}

// rewriter is a reviewer of an agent that rewrites its history.
type rewriter struct {
	*reviewer
	all     []*commit          // all commits that the agent has made
	digests map[*commit]string // message and patch-id
	users   int                // number of the user's commits
	last    listed
}

// picked is what a rebase makes into one commit: changes, one after another, and the commits that it merges.
type picked struct {
	was     *commit
	changes []*commit // each since its first parent
	others  []*commit
	message string
	amend   bool
}

func pick(c *commit) picked {
	return picked{was: c, changes: []*commit{c}, others: c.parents[1:], message: c.message}
}

// moved makes a commit the agent's newest one.
func (m *rewriter) moved(to *commit) {
	for _, c := range m.order {
		if !slices.Contains(m.all, c) {
			m.all = append(m.all, c)
		}
	}
	m.a.main = to
	m.order = reached(to, func(c *commit) bool { return c == m.a.root })
	m.gone = slices.DeleteFunc(slices.Clone(m.all), func(c *commit) bool { return slices.Contains(m.order, c) })
	m.a.publish()
}

// rebase makes the newest two to four commits of the first-parent history again. As git does, it keeps those at the beginning that stay as
// they are, and makes none that changes nothing any more.
func (m *rewriter) rebase() {
	var list []picked
	at := m.a.main
	for n := 2 + m.r.IntN(3); n > 0 && at != m.a.root; n-- {
		list = append(list, pick(at))
		at = at.parents[0]
	}
	slices.Reverse(list)
	if len(list) < 2 {
		return
	}
	if m.r.IntN(2) == 0 {
		list = flat(list)
	}
	i, how := m.r.IntN(len(list)), one(m.r, []string{"amends", "drops", "moves", "squashes", "rewords"})
	m.t.Logf("rebase %s %q of %d", how, list[i].message, len(list))
	switch how {
	case "amends":
		list[i].amend = true
	case "drops":
		list = slices.Delete(list, i, i+1)
	case "moves":
		j := m.r.IntN(len(list))
		list[i], list[j] = list[j], list[i]
	case "squashes":
		if i > 0 && len(list[i].others) == 0 {
			list[i-1].changes = append(slices.Clone(list[i-1].changes), list[i].was)
			list = slices.Delete(list, i, i+1)
		}
	case "rewords":
		list[i].message = fmt.Sprintf("c%d\n", m.a.made)
	}
	now := map[*commit]*commit{}
	for _, p := range list {
		at = m.make(at, p, now)
		now[p.was] = at
	}
	m.moved(at)
}

// flat replaces merges by the commits that they bring.
func flat(list []picked) (flat []picked) {
	for _, p := range list {
		for _, side := range p.others {
			flat = append(flat, pick(side))
		}
		if len(p.others) == 0 {
			flat = append(flat, p)
		}
	}
	return flat
}

// make makes a commit on another one. now has the new forms of commits.
func (m *rewriter) make(at *commit, p picked, now map[*commit]*commit) *commit {
	if at == p.was.parents[0] && len(p.changes) == 1 && p.message == p.was.message && !p.amend {
		return p.was
	}
	files := at.files
	for _, c := range p.changes {
		files = transplant(files, c.parents[0].files, c.files)
	}
	if len(p.changes) > 1 && takesBackPart(at, files) {
		files = transplant(at.files, p.was.parents[0].files, p.was.files) // the agent drops the second one
	}
	if p.amend {
		if changed := m.changed(files); !takesBackPart(at, changed) {
			files = changed
		}
	}
	if maps.Equal(files, at.files) && len(p.others) == 0 {
		return at
	}
	c := *p.was
	c.message, c.files, c.parents = p.message, files, []*commit{at}
	for _, side := range p.others {
		if fork := now[side.parents[0]]; fork != nil && m.r.IntN(2) == 0 {
			side = m.make(fork, pick(side), nil)
		}
		c.parents = append(c.parents, side)
	}
	m.a.store(&c)
	m.order = append(m.order, &c)
	return &c
}

// transplant makes a change, from one tree to another one, in a third one. Lines of both stay where the number of lines is the same.
// Otherwise, the agent resolves the conflict for the change. A file with another name stays what it is there, as with git's rebase.
func transplant(at, from, to tree) tree {
	on := maps.Clone(at)
	for name := range from {
		if _, stays := to[name]; !stays {
			delete(on, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		b, there := from[name]
		if o, both := on[name]; there && both && o != b {
			f := o
			if b.mode != to[name].mode {
				f.mode = to[name].mode
			}
			f.content = lines(o.content, b.content, to[name].content)
			on[name] = f
		} else if !there {
			on.put(name, renamed(at, from, to, name))
		} else if b != to[name] {
			on.put(name, to[name])
		}
	}
	return on
}

// renamed returns the file that a change gives another name, as it is in a third tree, or otherwise the new file.
func renamed(at, from, to tree, name string) file {
	for _, old := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[old]; !stays && from[old] == to[name] {
			if there, ok := at[old]; ok {
				return there
			}
		}
	}
	return to[name]
}

func lines(on, from, to string) string {
	o, b, t := strings.Split(on, "\n"), strings.Split(from, "\n"), strings.Split(to, "\n")
	switch {
	case from == to:
		return on
	case len(o) != len(b) || len(o) != len(t):
		return to
	}
	for i := range o {
		if b[i] != t[i] {
			o[i] = t[i]
		}
	}
	return strings.Join(o, "\n")
}

// takesBackPart reports whether a commit both reverts a part of an earlier commit and changes something else. If the earlier commit waits,
// the other change lands alone, as the contract wants. If the earlier commit lands afterwards, its part stays, and the branch differs from the
// agent's files.
func takesBackPart(parent *commit, files tree) bool {
	back, fresh := false, false
	note := func(undone bool) { back, fresh = back || undone, fresh || !undone }
	before := func(is func(tree) bool) bool {
		for at := parent; len(at.parents) > 0; {
			if at = at.parents[0]; is(at.files) {
				return true
			}
		}
		return false
	}
	for name := range files {
		if _, there := parent.files[name]; !there {
			note(before(func(t tree) bool { _, was := t[name]; return was }))
		}
	}
	for name, from := range parent.files {
		to, stays := files[name]
		if !stays {
			note(before(func(t tree) bool { _, was := t[name]; return !was }))
			continue
		}
		if from.mode != to.mode {
			note(before(func(t tree) bool { f, was := t[name]; return was && f.mode == to.mode }))
		}
		if from.content != to.content {
			note(before(func(t tree) bool { f, was := t[name]; return was && f.content == to.content }))
		}
	}
	return back && fresh
}

// work lets the agent make a commit, merge or amend.
func (m *rewriter) work() {
	switch at := m.a.main; m.r.IntN(6) {
	case 0:
		m.mergeInside(at)
	case 1:
		if at != m.a.root {
			files := m.amended(at)
			if takesBackPart(at.parents[0], files) {
				files = at.files
			}
			m.amend(at, files)
		}
	default:
		m.a.main = m.made(m.changed(at.files), at)
	}
}

// act lets the agent work, rebase or reset.
func (m *rewriter) act() {
	switch n := m.r.IntN(10); {
	case n < 4 || len(m.all) == 0:
		m.work()
		m.moved(m.a.main)
	case n < 7:
		m.rebase()
	default:
		to := one(m.r, append(slices.Clone(m.all), m.a.root))
		m.t.Logf("reset to %q %.7s", to.message, to.id)
		if m.moved(to); m.r.IntN(4) > 0 {
			m.work()
			m.moved(m.a.main)
		}
	}
}

// commitsOfUser commits one of the user's files.
func (m *rewriter) commitsOfUser() {
	m.users++
	name := fmt.Sprint("mine", m.users)
	plain("mine\n").write(m.t, filepath.Join(m.Top, name))
	m.git("add", "-f", name)
	m.git("commit", "-q", "-m", name, "--", name)
	m.t.Logf("the user commits %s", name)
}

// digest returns what a verdict follows: the message and the patch-id.
func (m *rewriter) digest(c *commit) string {
	m.t.Helper()
	if m.digests[c] == "" {
		diff := m.agent("-c", "core.quotePath=true", "diff-tree", "-p", "--full-index", "--no-renames", string(c.parents[0].id), string(c.id))
		id, err := tryGit(m.inner, diff+"\n", "patch-id", "--stable")
		check(m.t, err)
		id, _, _ = strings.Cut(id, " ")
		m.digests[c] = id + " " + c.message
	}
	return m.digests[c]
}

// word returns the newest verdict on a change with its message.
func (m *rewriter) word(c *commit) review.Word {
	for _, s := range slices.Backward(m.said) {
		if s.about == c || s.about.message == c.message && m.digest(s.about) == m.digest(c) {
			return s.word
		}
	}
	return ""
}

// cycle makes a cycle, which may be killed. A verdict that is made at the same time counts if it came first.
func (m *rewriter) cycle(beside review.Word) {
	m.t.Helper()
	before, could := m.landed(), map[*commit]bool{}
	for _, c := range m.order {
		could[c] = m.word(c) == review.Approve
	}
	m.ageIndex()
	if m.r.IntN(4) == 0 {
		step := one(m.r, killSteps)
		m.t.Logf("a cycle is killed at %s", step)
		m.killedAt(step, "cycle")
		check(m.t, m.engine.Recover(m.t.Context()))
		m.ageIndex()
	}
	if beside != "" {
		m.beside(func() { m.decide(beside) })
	}
	o := m.world.cycle()
	after := m.landed()
	list, err := verdict.List(m.t.Context(), m.engine)
	check(m.t, err)
	for _, c := range m.order {
		fresh := after[c] != "" && before[c] == ""
		if fresh && !could[c] && m.word(c) != review.Approve {
			m.t.Fatalf("%q landed, its verdict is %q\n%s", c.message, m.word(c), m.history())
		}
		listed := slices.ContainsFunc(list, func(r verdict.Reviewable) bool { return r.Inner == c.id })
		if after[c] == "" && !listed && !m.brought(c) {
			m.t.Fatalf("%q %.7s has not landed and is not listed: %s\n%+v\n%s", c.message, c.id, m.states(), o, m.history())
		}
	}
	if beside == "" {
		m.blockedStay(after)
	}
	m.statesAgree(list)
	m.onlyLanded(after)
	m.intact()
}

// onlyLanded checks that the branch has no new file of a commit that has not landed.
func (m *rewriter) onlyLanded(landed map[*commit]gitops.OID) {
	m.t.Helper()
	from := map[string][]*commit{}
	for _, c := range m.all {
		for name := range c.files {
			if _, before := c.parents[0].files[name]; !before && !slices.Contains(baseFiles, name) { // a rebase may change who restores one
				from[name] = append(from[name], c)
			}
		}
	}
	for name := range strings.Lines(m.git("ls-tree", "-r", "--name-only", "HEAD") + "\n") {
		makers := from[strings.TrimSpace(name)]
		if len(makers) > 0 && !slices.ContainsFunc(makers, func(c *commit) bool { return landed[c] != "" }) {
			m.t.Fatalf("the branch has %q of %q, which has not landed\n%s", name, makers[0].message, m.history())
		}
	}
}

// brought reports whether only merges that are left out bring a commit.
func (m *rewriter) brought(c *commit) bool {
	return c != m.a.main && !slices.ContainsFunc(m.order, func(child *commit) bool {
		i := slices.Index(child.parents, c)
		return i >= 0 && (i == 0 || !m.word(child).LeavesOut()) && !m.brought(child)
	})
}

// beside does something while another process of the program makes a cycle.
func (m *rewriter) beside(do func()) {
	m.t.Helper()
	repo, err := gitops.Open(m.t.Context(), m.Top)
	check(m.t, err)
	var others sync.WaitGroup
	others.Go(func() { _, err = newEngine(repo, m.record, m.inner).Drain(m.t.Context(), promote.Options{}) })
	do()
	others.Wait()
	check(m.t, err)
}

// sequence makes random steps.
func (m *rewriter) sequence() {
	for range 3 {
		m.work()
	}
	m.moved(m.a.main)
	m.cycle("")
	for range 14 {
		beside := review.Word("")
		switch n := m.r.IntN(20); {
		case n < 6:
			m.act()
		case n < 11:
			m.decide(review.Approve)
		case n < 12:
			m.decide(review.Reject)
		case n < 14:
			m.decide(review.Fix)
		case n < 15:
			m.take("undo")
		case n < 16:
			m.take("redo")
		case n < 17:
			m.commitsOfUser()
		case n < 19:
			beside = one(m.r, []review.Word{review.Approve, review.Reject})
		default:
			m.whole()
		}
		m.cycle(beside)
	}
	m.whole()
	m.nothingLeft()
	clean, conflicting := m.keptMerges()
	m.t.Logf("%d commits, of which the agent has %d; kept merges: %d, and %d with conflicts", len(m.all), len(m.order), clean, conflicting)
}

// whole lets the agent make one more commit, approves everything, and compares the branch with the agent's files.
func (m *rewriter) whole() {
	m.t.Helper()
	files := maps.Clone(m.a.main.files)
	files.put(fmt.Sprintf("whole/%d", m.a.made), plain(fmt.Sprint(m.a.made, "\n")))
	m.moved(m.made(files, m.a.main))
	m.t.Log("everything is approved")
	m.cycle("")
	for range 3 { // merges before what only they bring
		m.approveAll()
		m.cycle("")
	}
	m.ageIndex()
	o, landed := m.world.cycle(), m.landed()
	for _, c := range m.order {
		if landed[c] == "" {
			m.t.Fatalf("%q %.7s has not landed: %+v\n%s", c.message, c.id, o, m.history())
		}
	}
	var got []string
	for line := range strings.Lines(m.git("ls-tree", "-r", "HEAD") + "\n") {
		if !strings.Contains(line, "\tmine") {
			got = append(got, line)
		}
	}
	if want := m.agent("ls-tree", "-r", "main") + "\n"; strings.Join(got, "") != want {
		m.t.Fatalf("the branch has\n%s\nwant\n%s\n%s", strings.Join(got, ""), want, m.history())
	}
}

// approveAll approves what has not landed.
func (m *rewriter) approveAll() {
	m.t.Helper()
	landed := m.landed()
	for _, c := range m.order {
		if landed[c] != "" {
			continue
		}
		_, err := verdict.Record(m.t.Context(), m.engine, verdict.Request{Word: review.Approve, Names: []string{string(c.id)}})
		if errors.Is(err, history.ErrNotPending) {
			continue // only a merge that is left out brings it
		}
		check(m.t, err)
		m.say(c, review.Approve)
	}
}
