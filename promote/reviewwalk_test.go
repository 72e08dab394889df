package promote_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/undo"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// TestReviewWalk approves, rejects, asks for fixes, undoes and redoes at random, with kills, while the agent works and the user
// has changes that are not committed. Each landing is compared with a walk that the test makes with git merge-tree: the trees are
// equal, nothing lands unapproved, every commit has landed or is listed, the user's bytes stay, and merges that were kept are the
// same if they are made again. The histories have renames, mode changes, links, merges, amended commits, and commits that take
// earlier ones back. AIRLOCK_TEST_SEEDS is the number of sequences.
func TestReviewWalk(t *testing.T) {
	t.Parallel()
	const (
		behind = 1795753195925651 // the newest commit needs nothing of one that conflicts with the branch
		again  = 1795765269000711 // the branch has the change of an approved commit already, which another one takes back before it lands
		order  = 1795769932734325 // a commit that was left out lands together with newer ones that undo each other
		side   = 1795782761748599 // an approved commit was left out with the merge that brings it, and waits for it
		amend  = 1795788163165035 // a commit that was left out landed right before one that the agent amends
		taken  = 1795791449911179 // the branch has had the change of an amended commit taken back
		inside = 1795791449911233 // the agent's own tree shows that an approved commit takes back one that is left out
		redone = 1795889280296348 // a commit is rejected after its landing was undone, and the landing is made again
	)
	found := []uint64{behind, again, order, side, amend, taken, inside, redone}
	walkReviews(t, append(seeds(t, few(1, 3)), found[:few(2, len(found))]...), false)
}

// reviewer is the model of a review.
type reviewer struct {
	*world
	a     *agent
	r     *rand.Rand
	words map[*commit]review.Word
	said  []said // all verdicts, the newest last
	// order has the agent's commits, parents before children.
	order  []*commit
	gone   []*commit           // replaced by amended ones; a redo can bring them back
	merged map[*commit]*commit // the merge that brings a commit of a side branch
	own    tree                // the user's files that are not committed
	merges map[[3]string]string
	waited int // cycles in which an approved commit had to wait
	// orphans reports that merges also bring root commits.
	orphans bool
	// How the walk treats what the contract leaves open: commits that were left out when later ones landed come after new ones, an
	// amended commit is undone as it landed, or it changes only what the agent has amended, and what a commit changes is found in the
	// agent's tree without those left out since the newest landed one. All matter only for commits that do and undo the same.
	olderLast, asLanded, asOne, inside bool
}

// said is a verdict on a commit.
type said struct {
	about *commit
	word  review.Word
}

// say records a verdict.
func (m *reviewer) say(about *commit, word review.Word) {
	m.words[about] = word
	m.said = append(m.said, said{about, word})
}

// baseFiles are the files that the histories begin with, and that a commit may remove.
var baseFiles = []string{"f0", "f1", "f2", "f3"}

func newReviewer(t *testing.T, format string, seed uint64) *reviewer {
	base := tree{"keep": plain("keep\n")}
	for _, name := range baseFiles {
		base[name] = plain(sections(name))
	}
	w := newWorld(t, format, base)
	w.git("config", "airlock.review", "land")
	m := &reviewer{world: w, a: newAgent(w, base, seed), r: rand.New(rand.NewPCG(seed, 21)), words: map[*commit]review.Word{}, merged: map[*commit]*commit{}, own: tree{}, merges: map[[3]string]string{}}
	for _, name := range []string{"1", "2"} {
		m.own[ownFolder+"/"+name] = plain("mine " + name + "\n")
		m.own[ownFolder+"/"+name].write(t, filepath.Join(w.Top, ownFolder, name))
	}
	w.git("add", "-f", ownFolder+"/2")
	m.own["keep"] = plain("keep\nmine\n")
	m.own["keep"].write(t, filepath.Join(w.Top, "keep"))
	return m
}

// sections returns a file whose lines to edit are so far apart that their changes never conflict. Files with different names have
// so little in common that git takes none for another one that was renamed.
func sections(name string) string {
	var b strings.Builder
	for i := range 6 {
		fmt.Fprintf(&b, "section %d of %s\nbefore %[2]s\nvalue 0\nafter %[2]s\nend of %[1]d in %[2]s\n", i, name)
	}
	return b.String()
}

// work lets the agent make a commit, take its newest one back, or amend it.
func (m *reviewer) work() {
	at := m.a.main
	switch landed := m.landed(); m.r.IntN(9) {
	case 0:
		if len(at.parents) > 0 {
			m.a.main = m.made(at.parents[0].files, at)
		}
	case 1:
		if len(at.parents) > 0 && landed[at] == "" {
			m.amend(at, m.amended(at))
		}
	case 2:
		m.mergeInside(at)
	default:
		m.a.main = m.made(m.changed(at.files), at)
	}
}

// mergeInside lets the agent merge a commit of a side branch that begins at its newest commit, or at one of the four before it. The
// merge may have a file of its own.
func (m *reviewer) mergeInside(at *commit) {
	fork, added := at, fmt.Sprint(m.a.made)
	for n := m.r.IntN(5); n > 0 && len(fork.parents) > 0; n-- {
		fork = fork.parents[0]
	}
	files := maps.Clone(fork.files)
	files.put("side/"+added, plain("side "+added+"\n"))
	begins := []*commit{fork}
	if m.orphans && m.r.IntN(2) == 0 {
		files, begins = tree{}, nil
		files.put("side/"+added, plain("side "+added+"\n"))
	}
	side := m.made(files, begins...)
	files = maps.Clone(at.files)
	files.put("side/"+added, plain("side "+added+"\n"))
	if m.r.IntN(2) == 0 {
		files.put(fmt.Sprintf("merged/%d", m.a.made), plain(fmt.Sprintf("merged %d\n", m.a.made)))
	}
	m.a.main = m.made(files, at, side)
	m.merged[side] = m.a.main
}

// amended returns the files of a commit, or what an amend may make of them.
func (m *reviewer) amended(c *commit) tree {
	if m.r.IntN(2) == 0 {
		return m.changed(c.files)
	}
	return c.files
}

// amend replaces the agent's newest commit. A verdict on it stays if its change does.
func (m *reviewer) amend(c *commit, files tree) {
	amended := *c
	amended.files = files
	if maps.Equal(amended.files, c.files) {
		m.words[&amended] = m.words[c]
	}
	m.a.store(&amended)
	m.order[slices.Index(m.order, c)], m.a.main = &amended, &amended
	m.gone = append(m.gone, c)
	for side, merge := range m.merged {
		if merge == c {
			m.merged[side] = &amended
		}
	}
	m.t.Logf("amend %q", c.message)
}

// made stores a commit with a subject of its own.
func (m *reviewer) made(files tree, parents ...*commit) *commit {
	c := &commit{files: files, parents: parents, author: m.a.ghost, when: fmt.Sprint(1700000000+m.a.made, " +0100"), message: fmt.Sprintf("c%d\n", m.a.made)}
	m.a.store(c)
	m.order = append(m.order, c)
	m.t.Logf("commit %q", c.message)
	return c
}

// changed returns files with one change.
func (m *reviewer) changed(files tree) tree {
	files = maps.Clone(files)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(n string) bool { return n == "keep" })
	name := one(m.r, names)
	f := files[name]
	switch n := m.r.IntN(12); {
	case n < 5 && strings.Contains(f.content, "value"):
		lines := strings.Split(f.content, "\n")
		lines[2+5*m.r.IntN(6)] = fmt.Sprintf("value %d", m.a.made)
		files[name] = file{f.mode, strings.Join(lines, "\n")}
	case n == 5 && len(names) > 2:
		delete(files, name)
	case n == 6:
		delete(files, name)
		files.put(fmt.Sprintf("renamed/%d", m.a.made), f)
	case n == 7 && f.mode != linkMode:
		f.mode = map[string]string{plainMode: executableMode, executableMode: plainMode}[f.mode]
		files[name] = f
	case n == 8: // the same change as none
	case n == 9:
		files.put(fmt.Sprintf("link%d", m.a.made), file{linkMode, name})
	default:
		files.put(fmt.Sprintf("new/%d", m.a.made), plain(fmt.Sprintf("new %d\n", m.a.made)))
	}
	return files
}

// landed returns the agent's commits on the branch, with the outer commits.
func (m *reviewer) landed() map[*commit]gitops.OID {
	m.t.Helper()
	byID := map[gitops.OID]*commit{}
	for _, c := range slices.Concat(m.gone, m.order) {
		byID[c.id] = c
	}
	done := map[*commit]gitops.OID{}
	log := m.git("log", "--no-notes", "--notes=airlock", "--format=%H %N%x00", string(m.record.Base)+".."+m.record.Branch)
	for entry := range strings.SplitSeq(strings.TrimSuffix(log, "\x00"), "\x00") {
		id, note, there := strings.Cut(strings.TrimSpace(entry), " ")
		if !there {
			continue // none has landed
		}
		c := byID[gitops.OID(noteValue(note, "Inner-Commit"))]
		if c == nil || done[c] != "" {
			m.t.Fatalf("%s is on the branch without a note of its own, or its commit has landed twice: %q", id, note)
		}
		done[c] = gitops.OID(id)
	}
	return done
}

// approved reports whether a commit may land.
func (m *reviewer) approved(c *commit) bool { return m.words[c] == review.Approve }

// cycle makes a cycle, which may be killed, and compares it with the walk.
func (m *reviewer) cycle() {
	m.t.Helper()
	before, tip := m.landed(), m.git("rev-parse", "HEAD^{tree}")
	want, tree := m.walk(tip, before, m.approved, 1)
	m.ageIndex()
	if m.r.IntN(3) == 0 {
		step := one(m.r, killSteps)
		m.t.Logf("a cycle is killed at %s", step)
		m.killedAt(step, "cycle")
		check(m.t, m.engine.Recover(m.t.Context()))
		m.ageIndex()
	}
	o := m.world.cycle()
	after := m.landed()
	fresh := func(c *commit) bool { return after[c] != "" && before[c] == "" }
	wanted := func() []string { return m.names(func(c *commit) bool { return slices.Contains(want, c) }) }
	got, head := m.names(fresh), m.git("rev-parse", "HEAD^{tree}")
	for n := 0; n < 16 && (!slices.Equal(got, wanted()) || head != tree); n++ {
		m.olderLast, m.asLanded, m.asOne, m.inside = n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0
		if stand, as := m.walk(tip, before, m.approved, 2); as == head {
			want, tree = stand, as
		}
	}
	m.olderLast, m.asLanded, m.asOne, m.inside = false, false, false, false
	if !slices.Equal(got, wanted()) {
		// An approved commit may have to wait for an older one without a verdict that was built before it.
		want, tree = m.walk(tip, before, fresh, 1)
		m.waited++
		if !slices.Equal(got, wanted()) || !o.Held(ledger.Review) {
			m.t.Fatalf("landed %q, want %q; %+v\n%s", got, wanted(), o, m.history())
		}
	}
	m.cleanOnes(fresh, after)
	states := sync.OnceValue(m.states)
	for _, c := range m.order {
		if fresh(c) && !m.approved(c) {
			m.t.Errorf("%q landed, its verdict is %q", c.message, m.words[c])
		}
		gone := m.merged[c] != nil && m.words[m.merged[c]].LeavesOut() // only a merge that is left out brings it
		if after[c] == "" && !gone && !strings.Contains(states(), strings.TrimSpace(c.message)+":") {
			m.t.Fatalf("%q has not landed and is not listed: %s\n%+v\n%s", c.message, states(), o, m.history())
		}
	}
	if head != tree {
		m.t.Fatalf("the tree is\n%s\nwant\n%s\n%s", m.git("ls-tree", "-r", head), m.git("ls-tree", "-r", tree), m.history())
	}
	m.intact()
}

// names returns the subjects of some commits.
func (m *reviewer) names(some func(*commit) bool) []string {
	var list []string
	for _, c := range m.order {
		if some(c) {
			list = append(list, strings.TrimSpace(c.message))
		}
	}
	return list
}

func (m *reviewer) history() string {
	var b strings.Builder
	landed := m.landed()
	for _, c := range m.order {
		fmt.Fprintf(&b, "%.7s %q %s landed %.7s parents", c.id, c.message, m.words[c], landed[c])
		for _, p := range c.parents {
			fmt.Fprintf(&b, " %q", p.message)
		}
		b.WriteString("\n")
	}
	b.WriteString(m.git("log", "--format=%h %p %s", "--stat", m.record.Branch) + "\n")
	return b.String() + m.agent("log", "--stat=200", "--reverse", "-M", "--format=%h %s", "main") + m.states()
}

// intact checks the user's changes: files, index, and nothing else that is not committed.
func (m *reviewer) intact() {
	m.t.Helper()
	files := readTree(m.t, m.Top, ".git", filepath.Base(m.inner))
	for name, f := range m.own {
		if files[name] != f {
			m.t.Fatalf("%s is %q, want %q", name, files[name], f)
		}
	}
	if got := m.git("status", "--porcelain", "--untracked-files=all"); got != " M keep\nA  \""+ownFolder+"/2\"\n?? \""+ownFolder+"/1\"" {
		m.t.Fatalf("git status: %s", got)
	}
}

// decide records a verdict on some commits that have not landed.
func (m *reviewer) decide(word review.Word) {
	m.t.Helper()
	landed := m.landed()
	j := verdict.Request{Word: word, Reason: "because"}
	var about []*commit
	for _, c := range m.order {
		if landed[c] == "" && m.r.IntN(3) == 0 {
			j.Names, about = append(j.Names, string(c.id)), append(about, c)
		}
	}
	if len(about) == 0 {
		return
	}
	_, err := verdict.Record(m.t.Context(), m.engine, j)
	if errors.Is(err, history.ErrNotPending) {
		return // no cycle has seen it yet
	}
	check(m.t, err)
	var subjects []string
	for _, c := range about {
		m.say(c, word)
		subjects = append(subjects, c.message)
	}
	m.t.Logf("%s %q", word, subjects)
}

// take undoes or redoes the newest landing, with a kill now and then.
func (m *reviewer) take(do string) {
	m.t.Helper()
	chain, err := undo.List(m.t.Context(), m.engine)
	check(m.t, err)
	var o operation.Operation
	if do == "undo" {
		o, _, err = chain.Find(0)
	} else {
		o, err = chain.ToRedo()
	}
	from, to := o.After, o.Before
	if do == "redo" {
		from, to = to, from
	}
	possible := err == nil && m.tip() == from && (do == "undo" || !m.unwanted(o))
	before := m.view()
	act := map[string]func(context.Context) error{
		"undo": func(ctx context.Context) error { _, err := undo.Undo(ctx, m.engine, 0); return err },
		"redo": func(ctx context.Context) error { _, err := undo.Redo(ctx, m.engine); return err },
	}[do]
	if m.r.IntN(2) == 0 {
		m.killedAt(one(m.r, killSteps), do)
		check(m.t, m.engine.Recover(m.t.Context()))
		switch m.tip() {
		case to: // it was done before the kill, or the kill came too late
			if possible {
				m.taken(do, o)
			}
			m.intact()
			return
		case from:
			if got := m.view(); possible && !reflect.DeepEqual(got.Files, before.Files) {
				m.t.Fatalf("half a landing: %v", got)
			}
		}
	}
	err = act(m.t.Context())
	if possible != (err == nil) {
		m.t.Fatalf("%s: %v; possible: %v\n%s", do, err, possible, m.history())
	}
	if err == nil {
		m.taken(do, o)
	}
	m.intact()
}

// unwanted reports whether a commit of a landing was rejected after the landing was undone, or waits for its fix.
func (m *reviewer) unwanted(o operation.Operation) bool {
	return slices.ContainsFunc(slices.Concat(m.gone, m.order), func(c *commit) bool {
		landed := slices.ContainsFunc(o.Landed, func(p ledger.Pair) bool { return p.Inner == c.id })
		return landed && (m.words[c] == review.Reject || m.words[c] == review.Fix)
	})
}

// taken records what an undo or a redo means.
func (m *reviewer) taken(do string, o operation.Operation) {
	m.t.Logf("%s %d", do, o.Number)
	for _, p := range o.Landed {
		if do == "redo" && slices.ContainsFunc(m.gone, func(c *commit) bool { return c.id == p.Inner }) {
			m.t.Logf("brings an amended commit back")
		}
	}
	for _, p := range o.Landed {
		for _, c := range slices.Concat(m.gone, m.order) {
			if c.id == p.Inner {
				m.say(c, map[string]review.Word{"undo": review.Undone, "redo": review.Approve}[do])
			}
		}
	}
}

// redoAfterAmend approves some commits, takes the last landing back, lets the agent amend its newest commit, and makes that landing again.
func (m *reviewer) redoAfterAmend() {
	m.t.Helper()
	m.decide(review.Approve)
	m.cycle()
	m.take("undo")
	if c := m.a.main; len(c.parents) > 0 && m.landed()[c] == "" {
		m.amend(c, m.amended(c))
		m.a.publish()
		m.cycle()
		m.take("redo")
	}
}

// sequence makes random steps. In the end everything is approved and lands, as far as it stands.
func (m *reviewer) sequence() {
	for range 3 {
		m.work()
	}
	m.a.publish()
	m.cycle()
	for range 14 {
		switch n := m.r.IntN(14); {
		case n < 3:
			m.work()
			m.a.publish()
		case n < 6:
			m.decide(review.Approve)
		case n < 8:
			m.decide(review.Reject)
		case n < 9:
			m.decide(review.Fix)
		case n < 11:
			m.take("undo")
		case n < 12:
			m.take("redo")
		default:
			m.redoAfterAmend()
		}
		m.cycle()
	}
	m.approve(func(c *commit) bool { return m.merged[c] == nil }) // merges first, so that what they bring can be named
	m.approve(func(*commit) bool { return true })
	m.world.cycle()
	m.nothingLeft()
	clean, conflicting := m.keptMerges()
	m.t.Logf("%d of %d commits have landed, and in %d cycles an approved one waited; kept merges: %d, and %d with conflicts", len(m.landed()), len(m.order), m.waited, clean, conflicting)
}

// approve approves those of some commits that have not landed, and makes a cycle.
func (m *reviewer) approve(some func(*commit) bool) {
	m.t.Helper()
	landed := m.landed()
	j := verdict.Request{Word: review.Approve}
	for _, c := range m.order {
		if landed[c] == "" && some(c) {
			j.Names, m.words[c] = append(j.Names, string(c.id)), review.Approve
		}
	}
	if len(j.Names) > 0 {
		_, err := verdict.Record(m.t.Context(), m.engine, j)
		check(m.t, err)
	}
	m.cycle()
}
