package promote_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// chain makes inner commits by plumbing commands, which check nothing.
type chain struct {
	*world
	commits []string
	n       int
}

func (c *chain) blob(content string) string { return c.object("blob", content) }

func (c *chain) object(kind, content string) string {
	c.t.Helper()
	id, err := tryGit(c.inner, content, "hash-object", "-t", kind, "-w", "--stdin", "--literally")
	check(c.t, err)
	return strings.TrimSpace(id)
}

// entry is one entry of a raw tree.
func (c *chain) entry(mode, name, id string) string {
	c.t.Helper()
	raw := make([]byte, len(id)/2)
	_, err := fmt.Sscanf(id, "%x", &raw)
	check(c.t, err)
	return mode + " " + name + "\x00" + string(raw)
}

// files returns the entries of a valid tree, sorted.
func (c *chain) files() string {
	return c.entry("100644", "f", c.blob(fmt.Sprint(c.n))) + c.entry("100644", "g", c.blob("g"))
}

// commit adds a commit of a tree, with more parents.
func (c *chain) commit(tree, message string, more ...string) {
	c.n++
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", tree)
	for _, p := range append([]string{c.commits[len(c.commits)-1]}, more...) {
		fmt.Fprintf(&text, "parent %s\n", p)
	}
	fmt.Fprintf(&text, "author A <a@x> %d +0000\ncommitter A <a@x> %[1]d +0000\n\n%s\n", 1700000000+c.n, message)
	c.commits = append(c.commits, c.object("commit", text.String()))
}

func (c *chain) good() { c.commit(c.object("tree", c.files()), fmt.Sprint("good ", c.n)) }

// remove deletes a loose object of the inner repository.
func (c *chain) remove(id string) string {
	check(c.t, os.Remove(filepath.Join(c.inner, ".git", "objects", id[:2], id[2:])))
	return id
}

// poisons are commits that the quarantine refuses, each for another reason.
var poisons = map[string]func(c *chain){
	"a .git in the tree": func(c *chain) { c.commit(c.object("tree", c.entry("100644", ".git", c.blob("x"))+c.files()), "bad") },
	"an entry twice":     func(c *chain) { c.commit(c.object("tree", c.files()+c.files()), "bad") },
	"an empty name":      func(c *chain) { c.commit(c.object("tree", c.entry("100644", "", c.blob("x"))+c.files()), "bad") },
	"a folder as a file": func(c *chain) { c.commit(c.object("tree", c.entry("40000", "e", c.blob("x"))+c.files()), "bad") },
	"a mode of no kind":  func(c *chain) { c.commit(c.object("tree", c.entry("170000", "e", c.blob("x"))+c.files()), "bad") },
	"a missing blob": func(c *chain) {
		c.commit(c.object("tree", c.entry("100644", "e", c.remove(c.blob(fmt.Sprint("e", c.n))))+c.files()), "bad")
	},
	"a missing folder": func(c *chain) {
		c.commit(c.object("tree", c.entry("40000", "e", c.remove(c.object("tree", c.entry("100644", "x", c.blob(fmt.Sprint(c.n))))))+c.files()), "bad")
	},
	"a missing tree": func(c *chain) {
		c.commit(c.remove(c.object("tree", c.entry("100644", "e", c.blob(fmt.Sprint("t", c.n))))), "bad")
	},
	"a missing parent": func(c *chain) {
		c.commit(c.object("tree", c.files()), "bad", c.remove(c.object("commit", "tree "+c.object("tree", c.files())+"\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx\n")))
	},
	"a large blob": func(c *chain) {
		c.commit(c.object("tree", c.entry("100644", "e", c.blob(strings.Repeat("x", 70_000)))+c.files()), "bad")
	},
	"a large commit": func(c *chain) { c.commit(c.object("tree", c.files()), strings.Repeat("m", 20_000)) },
	"a long name": func(c *chain) {
		c.commit(c.object("tree", c.entry("100644", "a"+strings.Repeat("b", 300), c.blob("x"))+c.files()), "bad")
	},
	"a NUL in a message": func(c *chain) { c.commit(c.object("tree", c.files()), "a\x00b") },
	"a side branch of it": func(c *chain) {
		side := &chain{world: c.world, commits: slices.Clone(c.commits), n: c.n + 100}
		side.good()
		side.commit(side.object("tree", side.entry("100644", ".GIT", side.blob("x"))+side.files()), "bad")
		side.good()
		c.commit(c.object("tree", c.files()), "merge", side.commits[len(side.commits)-1])
	},
}

// TestCommitsBeforeRefusedOneLand puts each refused commit into a chain. Exactly the commits before it must land.
func TestCommitsBeforeRefusedOneLand(t *testing.T) {
	for name, poison := range poisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds(t, few(1, 3)) {
				r := rand.New(rand.NewPCG(seed, 13))
				w := newWorld(t, []string{"sha1", "sha256"}[seed%2], tree{"a": plain("a\n")})
				w.git("config", "airlock.limit.blob", "65536")
				w.git("config", "airlock.limit.commit", "16384")
				c := &chain{world: w, commits: []string{string(w.record.Root)}}
				before, after := r.IntN(7), r.IntN(4)
				for range before {
					c.good()
				}
				last := c.commits[before]
				poison(c)
				for range after {
					c.good()
				}
				git(t, w.inner, "update-ref", "refs/heads/main", c.commits[len(c.commits)-1])
				w.cycle()
				o := w.cycle() // another cycle changes nothing
				where := fmt.Sprintf("AIRLOCK_TEST_SEED=%d, %d before, %d after", seed, before, after)
				if got, want := w.git("rev-parse", "main^{tree}"), git(t, w.inner, "rev-parse", last+"^{tree}"); before > 0 && got != want {
					t.Errorf("%s: the tree is not that of the last good commit", where)
				}
				if got := w.git("rev-list", "--count", string(w.record.Base)+"..main"); got != fmt.Sprint(before) {
					t.Errorf("%s: %s commits landed", where, got)
				}
				saysWhich(t, o, c.commits[before+1], where)
				w.nothingLeft()
			}
		})
	}
}

func saysWhich(t *testing.T, o ledger.Outcome, commit, where string) {
	t.Helper()
	if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.InnerInvalid {
		t.Errorf("%s: holds %+v", where, o.Holds)
		return
	}
	if m := o.Holds[0].Message; !strings.Contains(m, commit) || strings.Contains(m, `\n`) {
		t.Errorf("%s: %s is refused with the words %q", where, commit, m)
	}
}

// TestRefusedCommitLandsOnceMended removes the reason of a refusal: a limit is raised, or a missing object is put
// back. Then the hold ends.
func TestRefusedCommitLandsOnceMended(t *testing.T) {
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.git("config", "airlock.limit.blob", "65536")
	c := &chain{world: w, commits: []string{string(w.record.Root)}}
	c.good()
	poisons["a large blob"](c)
	c.good()
	lost := fmt.Sprint("e", c.n)
	poisons["a missing blob"](c)
	c.good()
	git(t, w.inner, "update-ref", "refs/heads/main", c.commits[5])
	w.cycle()
	for n, mend := range []func(){func() {}, func() { w.git("config", "--unset", "airlock.limit.blob") }, func() { c.blob(lost) }} {
		mend()
		w.cycle()
		if got, want := w.git("rev-list", "--count", string(w.record.Base)+"..main"), []string{"1", "3", "5"}[n]; got != want {
			t.Errorf("%s commits landed, want %s", got, want)
		}
	}
	if gitops.OID(w.git("rev-parse", "main")) != w.ref(w.record.Ref("promoted")) {
		t.Error("promoted is elsewhere")
	}
}

// TestRefusedAfterALoss refuses a commit and loses objects of the inner repository that were exported before. The
// hold must still give the commit's own reason.
func TestRefusedAfterALoss(t *testing.T) {
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.git("config", "airlock.limit.blob", "65536")
	lost := &chain{world: w, commits: []string{string(w.record.Root)}}
	lost.good()
	git(t, w.inner, "update-ref", "refs/heads/main", lost.commits[1])
	w.cycle()
	c := &chain{world: w, commits: []string{string(w.record.Root)}, n: 10}
	c.good()
	poisons["a large blob"](c)
	git(t, w.inner, "update-ref", "refs/heads/main", c.commits[2])
	c.remove(lost.commits[1])
	o := w.cycle()
	if len(o.Holds) != 1 || !strings.Contains(o.Holds[0].Message, "airlock.limit.blob") || !strings.Contains(o.Holds[0].Message, c.commits[2]) {
		t.Errorf("holds %+v", o.Holds)
	}
	if got, want := w.git("rev-parse", "main^{tree}"), git(t, w.inner, "rev-parse", c.commits[1]+"^{tree}"); got != want {
		t.Error("the commit before has not landed")
	}
}
