package promote_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

const user = "Ursula User <ursula@host.example>"

// image is the outer form of an inner commit.
type image struct {
	outer gitops.OID
	own   tree // the user's files in its tree
}

// model derives the expected outer commits from the contract. It gets each inner main and compares the commits that
// landed.
type model struct {
	*world
	root       *commit
	images     map[*commit]image
	last       *commit // the newest landed commit
	superseded map[gitops.OID]bool
	seen       map[gitops.OID]bool // outer commits
	own        tree                // the files that the user has committed
}

func newModel(w *world, a *agent) *model {
	return &model{world: w, root: a.root, images: map[*commit]image{a.root: {outer: w.record.Base}}, last: a.root,
		superseded: map[gitops.OID]bool{}, seen: map[gitops.OID]bool{w.record.Base: true}, own: tree{}}
}

// userCommits makes a user commit, at a path that the agent does not use and in the shared file.
func (m *model) userCommits(r *rand.Rand, name string) {
	m.t.Helper()
	content, err := os.ReadFile(filepath.Join(m.Top, shared))
	check(m.t, err)
	m.own[shared] = plain(string(content)).edit(r, "user", name)
	check(m.t, os.WriteFile(filepath.Join(m.Top, shared), []byte(m.own[shared].content), 0o644))
	m.own.put("the user/"+name, plain(name+"\n"))
	m.own["the user/"+name].write(m.t, m.Top+"/the user/"+name)
	m.git("add", "-f", "the user/"+name)
	m.git("commit", "-q", "-m", "mine: "+name, "--", "the user/"+name, shared)
	m.seen[m.tip()] = true
}

func (m *model) tip() gitops.OID {
	m.t.Helper()
	return m.ref(m.record.Branch)
}

// landing is the expected result of one cycle.
type landing struct {
	fresh  []*commit
	first  *commit // of the first-parent history; nil if nothing lands
	onto   image   // the branch's tip, which is the image of the last landed commit
	undone []*commit
}

// expect follows the contract: F is the newest landed commit in the first-parent history of main, or the root. The
// commits after F land.
func (m *model) expect(main *commit, onto gitops.OID) landing {
	l := landing{onto: image{onto, maps.Clone(m.own)}}
	landed := func(c *commit) bool { _, ok := m.images[c]; return ok }
	f := main
	for ; f != nil && !landed(f); f = f.first() {
		l.first = f
	}
	if l.first == nil {
		return l
	}
	l.fresh = reached(main, landed)
	if f == m.last || f == nil && m.last == m.root {
		return l
	}
	kept := map[*commit]bool{}
	for _, c := range reached(l.first, func(*commit) bool { return false }) {
		kept[c] = true
	}
	for _, c := range reached(m.last, func(c *commit) bool { return kept[c] || c == m.root }) {
		if !m.superseded[m.images[c].outer] {
			l.undone = append(l.undone, c)
		}
	}
	return l
}

func (c *commit) first() *commit {
	if len(c.parents) == 0 {
		return nil
	}
	return c.parents[0]
}

// landed compares the commits on the branch with the expected ones. onto is the branch's previous tip.
func (m *model) landed(main *commit, onto gitops.OID) {
	m.t.Helper()
	want := m.expect(main, onto)
	names := map[gitops.OID]*commit{}
	for _, c := range want.fresh {
		names[c.id] = c
	}
	var fresh []gitops.OID
	for id := range strings.Lines(m.git("rev-list", "--topo-order", "--reverse", string(m.record.Base)+".."+m.record.Branch) + "\n") {
		if id := gitops.OID(strings.TrimSpace(id)); id != "" && !m.seen[id] {
			fresh, m.seen[id] = append(fresh, id), true
		}
	}
	if len(fresh) != len(want.fresh) {
		m.t.Fatalf("%d commits have landed, not %d", len(fresh), len(want.fresh))
	}
	notes, contents := m.notes(), m.objects(fresh)
	outer := map[*commit]gitops.OID{}
	for _, id := range fresh {
		inner := names[gitops.OID(noteValue(notes[id], "Inner-Commit"))]
		if inner == nil || outer[inner] != "" {
			m.t.Fatalf("%s should not have landed, or has landed twice; its note: %q", id, notes[id])
		}
		outer[inner] = id
	}
	for _, c := range want.fresh {
		m.compare(c, want, contents[outer[c]], outer[c], notes[outer[c]])
	}
	if want.first != nil {
		m.last = main
	}
	promoted, at := m.ref(m.record.Ref("promoted")), m.images[m.last].outer
	if tip := m.tip(); promoted != at || want.first == nil && tip != onto || want.first != nil && tip != at {
		m.t.Errorf("the branch is at %s, promoted at %s, main has become %s", tip, promoted, at)
	}
}

// compare compares one landed commit and records it.
func (m *model) compare(c *commit, l landing, content string, id gitops.OID, note string) {
	m.t.Helper()
	inner := c.parents
	var parents []gitops.OID
	own := tree{}
	if c == l.first {
		parents, own, inner = []gitops.OID{l.onto.outer}, l.onto.own, c.parents[min(1, len(c.parents)):]
	} else if len(inner) > 0 {
		own = m.imageOf(inner[0], l).own
	}
	for _, p := range inner {
		if o := m.imageOf(p, l).outer; !slices.Contains(parents, o) {
			parents = append(parents, o)
		}
	}
	m.images[c] = image{id, own}
	header, message, _ := strings.Cut(content, "\n\n")
	lines := []string{"tree " + string(objects{format: m.Format}.tree(m.t, c.files.with(own)))}
	for _, p := range parents {
		lines = append(lines, "parent "+string(p))
	}
	lines = append(lines, "author "+user+" "+c.when, "committer "+user)
	if c.encoding != "" {
		lines = append(lines, "encoding "+c.encoding)
	}
	got := strings.Split(header, "\n")
	if i := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "committer ") }); i >= 0 {
		got[i], _, _ = strings.Cut(got[i], "> ") // the time of landing
		got[i] += ">"
	}
	if !slices.Equal(got, lines) {
		m.t.Errorf("%s landed as %s with\n%q, want\n%q", c.id, id, got, lines)
	}
	if message != c.message {
		m.t.Errorf("%s landed as %s with the message %q, want %q", c.id, id, message, c.message)
	}
	m.compareNote(c, l, id, note, len(own) == 0)
}

// imageOf returns the image of a parent of new commits. The image of the last landed commit is the branch's tip.
func (m *model) imageOf(c *commit, l landing) image {
	if c == m.last {
		return l.onto
	}
	return m.images[c]
}

func (m *model) compareNote(c *commit, l landing, id gitops.OID, note string, exact bool) {
	m.t.Helper()
	want := map[string]string{"Version": "1", "Commit": string(id), "Session": m.record.Session, "Inner-Commit": string(c.id),
		"Inner-Author": gitops.Text(c.author).String(), "Base": string(m.record.Base), "Tree": "merged"}
	if exact {
		want["Tree"] = "exact"
	}
	for key, value := range want {
		if got := noteValue(note, key); got != value {
			m.t.Errorf("note of %s: %s is %q, want %q", id, key, got, value)
		}
	}
	var undone []string
	if c == l.first {
		for _, u := range l.undone {
			undone = append(undone, string(m.images[u].outer))
			m.superseded[m.images[u].outer] = true
		}
	}
	// Of two commits side by side, either may come first.
	got := noteValues(note, "Supersedes")
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(undone))) {
		m.t.Errorf("note of %s: supersedes %q, want %q", id, got, undone)
	}
	for i, u := range l.undone {
		for _, p := range l.undone[i:] {
			if c == l.first && slices.Contains(u.parents, p) {
				m.t.Fatal("the model's own order is wrong")
			}
		}
		for _, p := range u.parents {
			if at := slices.Index(got, string(m.images[p].outer)); c == l.first && at > slices.Index(got, string(m.images[u].outer)) {
				m.t.Errorf("note of %s: %q are not oldest first", id, got)
			}
		}
	}
}

func noteValues(note, key string) []string {
	var values []string
	for line := range strings.Lines(note) {
		if value, found := strings.CutPrefix(line, "Airlock-"+key+": "); found {
			values = append(values, strings.TrimSuffix(value, "\n"))
		}
	}
	return values
}

func noteValue(note, key string) string {
	if values := noteValues(note, key); len(values) == 1 {
		return values[0]
	}
	return ""
}

// whole checks the final state: nothing is left over or pending, nothing has landed twice, and the working tree
// matches the branch.
func (m *model) whole() {
	m.t.Helper()
	if o := m.cycle(); o.Landed > 0 || len(o.Holds) > 0 || o.Pending > 0 {
		m.t.Errorf("one more cycle: %+v", o)
	}
	if got := m.git("status", "--porcelain"); got != "" {
		m.t.Errorf("git status: %s", got)
	}
	if notes := m.notes(); len(notes) != len(m.images)-1 {
		m.t.Errorf("%d notes for %d landed commits", len(notes), len(m.images)-1)
	}
	if id := m.ref(m.record.Ref("pending")); id != "" {
		m.t.Errorf("pending is at %s", id)
	}
	want := m.last.files.with(m.own)
	got := readTree(m.t, m.Top, ".git")
	for name := range want.with(got) {
		if got[name] != want[name] {
			m.t.Errorf("in the working tree %q is %.100q, want %.100q", name, got[name], want[name])
		}
	}
	m.nothingLeft()
}
