package promote_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// mcp is the content of a file that starts a program, which a rule holds under the name .mcp.json.
const mcp = `{"mcpServers": {"x": {"command": "x"}}}` + "\n"

// orphan lets the agent make a root commit with one file, which a branch of its own begins with, a commit on top of it now and then, and the
// merge of that branch. The names of the commits are name, name.2 and name.m.
func (w *world) orphan(name, file string, second bool) (made []string) {
	w.t.Helper()
	w.agent("checkout", "-q", "--orphan", name)
	w.agent("rm", "-rfq", ".")
	w.commits(name, file, mcp)
	made = []string{name}
	if second {
		w.commits(name+".2", name+".2.txt", name+"\n")
		made = append(made, name+".2")
	}
	w.agent("checkout", "-q", "-f", "main")
	w.agent("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", name+".m", name)
	return append(made, name+".m")
}

// TestRootCommits makes random histories in which commits are held, merges bring root commits, some of them held, and both the agent and the
// user change and remove files of the base. What does not need a held commit lands, and everything lands once it is accepted: the branch has
// the agent's files and the user's, and root commits have no parents on the branch either.
func TestRootCommits(t *testing.T) {
	t.Parallel()
	seedsBelow(t, 8, 300, func(t *testing.T, seed int) {
		newRoots(t, seed).sequence()
	})
}

// roots makes the histories of TestRootCommits.
type roots struct {
	*world
	r          *rand.Rand
	free, held []string // the agent's commits, by whether they may land before the acceptance
	roots      []string
	waits      bool // the agent's newest commit does
	mine       int
}

func newRoots(t *testing.T, seed int) *roots {
	base := tree{}
	for n := range 6 {
		base[fmt.Sprint("base", n)] = plain(sections(fmt.Sprint("base", n)))
	}
	w := newWorld(t, []string{"sha1", "sha256"}[seed%2], base)
	w.git("config", "airlock.policy.agent-config", "hold")
	return &roots{world: w, r: rand.New(rand.NewPCG(uint64(seed), 11))}
}

// work lets the agent make a commit or merge a root commit. A merge waits if the commit before it does.
func (m *roots) work(n int) {
	name := fmt.Sprint("c", n)
	switch m.r.IntN(7) {
	case 0:
		m.commits(name, name+"/.mcp.json", mcp)
		m.made(false, name)
	case 1:
		m.roots = append(m.roots, name)
		m.made(false, m.orphan(name, name+"/.mcp.json", m.r.IntN(2) == 0)...)
	case 2, 3:
		m.roots = append(m.roots, name)
		m.made(!m.waits, m.orphan(name, name+".txt", m.r.IntN(2) == 0)...)
	case 4:
		m.agent("rm", "-q", "--ignore-unmatch", fmt.Sprint("base", m.r.IntN(3)))
		m.agent("commit", "-q", "--allow-empty", "-m", name)
		m.made(true, name)
	default:
		m.commits(name, name+".txt", name+"\n")
		m.made(true, name)
	}
}

// made notes commits of the agent. free reports that they need no acceptance.
func (m *roots) made(free bool, names ...string) {
	if m.waits = !free; free {
		m.free = append(m.free, names...)
	} else {
		m.held = append(m.held, names...)
	}
}

// userWorks makes a commit of the user at a file of the base that the agent leaves alone.
func (m *roots) userWorks() {
	m.mine++
	name := fmt.Sprint("base", 3+m.r.IntN(3))
	plain(sections(name)+fmt.Sprint("mine ", m.mine, "\n")).write(m.t, filepath.Join(m.Top, name))
	m.git("commit", "-q", "-m", "mine", "--", name)
}

func (m *roots) sequence() {
	for n := range 4 + m.r.IntN(8) {
		m.work(n)
		if m.r.IntN(4) == 0 {
			m.userWorks()
		}
		if m.r.IntN(3) == 0 {
			m.engine = newEngine(m.Repository, m.record, m.inner)
		}
		if m.r.IntN(2) == 0 {
			m.cycle()
		}
	}
	o := m.cycle()
	if got, want := m.agents(), slices.Sorted(slices.Values(m.free)); !slices.Equal(got, want) {
		m.t.Fatalf("landed %q, want %q; %+v\n%s", got, want, o, m.agent("log", "--graph", "--oneline", "main"))
	}
	if len(m.held) > 0 {
		_, err := m.engine.Accept(m.t.Context(), []policy.Acceptance{{Rule: "agent-config"}})
		check(m.t, err)
	}
	if o := m.cycle(); o.Pending != 0 || len(o.Holds) != 0 {
		m.t.Fatalf("after the acceptance: %+v\n%s", o, m.agent("log", "--graph", "--oneline", "main"))
	}
	if got, want := m.agents(), slices.Sorted(slices.Values(slices.Concat(m.free, m.held))); !slices.Equal(got, want) {
		m.t.Errorf("landed %q, want %q", got, want)
	}
	for line := range strings.Lines(m.agent("ls-tree", "-r", "main")) {
		if !strings.Contains(line, "\tbase") && !strings.Contains(m.git("ls-tree", "-r", "HEAD")+"\n", line) {
			m.t.Errorf("the branch lacks %q", line)
		}
	}
	if got, want := m.git("ls-tree", "-r", "--name-only", "HEAD"), strings.TrimSpace(m.agent("ls-tree", "-r", "--name-only", "main")); got != want {
		m.t.Errorf("the branch has %q, want %q", got, want)
	}
	var parentless []string
	for line := range strings.Lines(m.git("log", "--max-parents=0", "--format=%H %s", "main") + "\n") {
		if id, subject, _ := strings.Cut(strings.TrimSpace(line), " "); m.notes()[gitops.OID(id)] != "" {
			parentless = append(parentless, subject)
		}
	}
	if slices.Sort(parentless); !slices.Equal(parentless, slices.Sorted(slices.Values(m.roots))) {
		m.t.Errorf("%q are root commits on the branch, want %q", parentless, m.roots)
	}
	m.nothingLeft()
}

// agents returns the subjects of the agent's commits on the branch, sorted.
func (m *roots) agents() (names []string) {
	for _, name := range m.landedNames() {
		if name != "mine" {
			names = append(names, name)
		}
	}
	return names
}

// TestReviewWalkRoots does what TestReviewWalk does with merges that bring root commits.
func TestReviewWalkRoots(t *testing.T) {
	notShort(t)
	t.Parallel()
	walkReviews(t, seeds(t, few(1, 3)), true)
}

// walkReviews makes a random sequence for each seed.
func walkReviews(t *testing.T, all []uint64, orphans bool) {
	eachSeed(t, all, func(t *testing.T, format string, seed uint64) {
		m := newReviewer(t, format, seed)
		m.orphans = orphans
		m.sequence()
	})
}

// TestRootCommitAfterRejection merges a root commit after another commit was left out.
func TestRootCommitAfterRejection(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("left", "left", "1\n")
	w.commits("free", "free", "2\n")
	w.cycle()
	w.verdict(review.Reject, "no", "left")
	w.verdict(review.Approve, "", "free")
	w.wantLanded("free")
	w.git("config", "airlock.review", "off")
	w.orphan("root", "o", false)
	w.commits("next", "next", "3\n")
	if o := w.cycle(); o.Landed != 3 || o.Pending != 0 {
		t.Errorf("%q, %+v", w.subjects(), o)
	}
	if got := w.git("ls-tree", "--name-only", "main"); got != "a\nfree\nnext\no" {
		t.Errorf("the branch has %q", got)
	}
}
