package promote_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// commit is an inner commit with the values that the agent wrote.
type commit struct {
	id       gitops.OID
	files    tree
	parents  []*commit
	author   string // name and mail
	when     string // seconds and zone
	encoding string
	message  string
}

// agent makes a random history. The same seed makes the same history.
type agent struct {
	t       testing.TB
	r       *rand.Rand
	objects objects
	ghost   string
	root    *commit
	main    *commit
	sides   []*commit
	made    int
}

func newAgent(w *world, base tree, seed uint64) *agent {
	root := &commit{id: w.record.Root, files: base}
	return &agent{t: w.t, r: rand.New(rand.NewPCG(seed, 0)), objects: objects{filepath.Join(w.inner, ".git"), w.Format},
		ghost: w.record.Ghost.String(), root: root, main: root}
}

// publish moves the inner main to the agent's newest commit.
func (a *agent) publish() {
	a.t.Helper()
	moveRef(a.t, a.objects.dir, inner.Main, a.main.id)
}

// commit makes a commit object.
func (a *agent) commit(files tree, parents ...*commit) *commit {
	a.t.Helper()
	c := &commit{files: files, parents: parents, author: one(a.r, []string{a.ghost, a.ghost, "Somebody Else <else@x.example>", "Ünï Çödé <>"}), when: someTime(a.r)}
	c.message, c.encoding = someMessage(a.r, a.made)
	a.store(c)
	return c
}

// store writes the object of a commit. The committer's date exists only inside: commits that differ only in it must
// still be two commits outside.
func (a *agent) store(c *commit) {
	a.t.Helper()
	a.made++
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", a.objects.tree(a.t, c.files))
	for _, p := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", p.id)
	}
	fmt.Fprintf(&b, "author %s %s\ncommitter %s %d +0000\n", c.author, c.when, a.ghost, 1700000000+a.made)
	if a.r.IntN(8) == 0 {
		b.WriteString(one(a.r, strangeHeaders))
	}
	if c.encoding != "" {
		fmt.Fprintf(&b, "encoding %s\n", c.encoding)
	}
	if a.r.IntN(8) == 0 {
		b.WriteString(one(a.r, strangeHeaders))
	}
	b.WriteString("\n" + c.message)
	c.id = a.objects.store(a.t, "commit", b.String())
}

// strangeHeaders do not come outside, not even those that look like known headers.
var strangeHeaders = []string{
	"gpgsig -----BEGIN PGP SIGNATURE-----\n \n author Evil <evil@x.example> 9 +0000\n -----END PGP SIGNATURE-----\n",
	"mergetag object 0000\n type commit\n tag v1\n tagger Evil <evil@x.example> 9 +0000\n \n text\n",
	"HG:extra amend_source:00\n", "x-unknown yes\n",
	"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor Evil <evil@x.example> 9 +0000\n",
}

func someTime(r *rand.Rand) string {
	seconds := one(r, []int64{0, 1, 100000000, 1234567890, 1700000000, 2147483648, 4070908800, 253402300799})
	seconds += r.Int64N(1000)
	zone := one(r, []string{"+0000", "-0000", "+0100", "-0330", "+1245", "-1200", "+1400", "+0545"})
	if zone[0] == '-' {
		seconds = max(seconds, 12*60*60) // git does not show dates before 1970
	}
	return fmt.Sprint(seconds, " ", zone)
}

var messages = []string{
	"", "\n", "\n\n\n", "plain\n", "no final newline", "\n\n  leading and trailing  \n\n\n", "subject\nsecond line of it\n\nbody\n", "# not a comment\n",
	"cut here\n---\n a | 1 +\n\ndiff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+evil\n", "Index: x\n--- x\n+++ x\n",
	"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: Evil <evil@x.example>\nDate: Thu, 1 Jan 1970 00:00:00 +0000\nSubject: [PATCH] x\n\nbody\n",
	"From: Evil <evil@x.example>\n\nbody\n", ">From here\n", "body\n\n-- \n2.39.5\n", "-- \nsignature\n", "# ------------------------ >8 ------------------------\nDo not modify\n", "-- >8 --\nx\n",
	"[tag] and [PATCH 1/2] Re: subject\n", "fixup! squash! amend! x\n", "crlf\r\n\r\nbody\r\n", "lone\rcr\r", "bytes \xff\xfe and \x01 \x1b[31m\n", "Grüße 🎉 \u202e\n",
	"subject\n\nbody\n\nSigned-off-by: A <a@b.example>\nAirlock-Commit: 0000\nAirlock-Supersedes: 0000\nCo-authored-by: X <x@y.example>\n",
	"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 0\nauthor Evil <evil@x.example> 9 +0000\n\nx\n", "encoding UTF-7\n\nx", "gpgsig x\n y\n",
	strings.Repeat("3,000 characters ", 177) + "\n", strings.Repeat("x", 3000), "tab\tand  spaces \n\n\tindented\n", "\xef\xbb\xbfbom\n", "done\n", "data 5\nhello\n",
}

// someMessage returns a message of one or two shapes, sometimes in another encoding.
func someMessage(r *rand.Rand, number int) (message, encoding string) {
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf("Latin-1 %d: Gr\xfc\xdfe\n", number), one(r, []string{"ISO-8859-1", "latin1", "windows-1252"})
	case 1:
		return one(r, messages) + one(r, messages), one(r, []string{"", "UTF-8", "no-such-encoding"})
	case 2:
		return fmt.Sprintf("commit %d\n", number), ""
	}
	return one(r, messages), ""
}

// step continues the history without removing a commit from main.
func (a *agent) step() {
	a.t.Helper()
	switch n := a.r.IntN(20); {
	case n < 8:
		a.main = a.next(a.main)
	case n < 9:
		a.main = a.commit(a.main.files, a.main) // empty
	case n < 13:
		a.side()
	case n < 14: // the same change again, at another time
		twin := *one(a.r, a.recent(6))
		if twin.parents != nil {
			a.store(&twin)
			a.sides = append(a.sides, &twin)
		}
	case n < 15: // a separate history
		files := tree{}
		files.change(a.r)
		if f, both := a.root.files[shared]; both {
			files[shared] = f
		}
		a.sides = append(a.sides, a.commit(files))
	case len(a.sides) > 0:
		a.merge()
	}
}

// next makes a commit with some changes.
func (a *agent) next(on *commit) *commit {
	files := maps.Clone(on.files)
	for range 1 + a.r.IntN(4) {
		files.change(a.r)
	}
	if f, both := files[shared]; both {
		files[shared] = f.edit(a.r, "agent", fmt.Sprint(a.made))
	}
	return a.commit(files, on)
}

// side continues a side branch, or makes one.
func (a *agent) side() {
	if len(a.sides) > 0 && a.r.IntN(2) == 0 {
		i := a.r.IntN(len(a.sides))
		a.sides[i] = a.next(a.sides[i])
		return
	}
	a.sides = append(a.sides, a.next(one(a.r, a.recent(6))))
}

// recent returns the newest commits of main's first-parent history.
func (a *agent) recent(n int) []*commit {
	var found []*commit
	for c := a.main; len(found) < n; c = c.parents[0] {
		found = append(found, c)
		if len(c.parents) == 0 {
			break
		}
	}
	return found
}

// merge merges one or more side branches into main, in one of several ways.
func (a *agent) merge() {
	arms := []*commit{a.takeSide()}
	for len(a.sides) > 0 && a.r.IntN(3) == 0 {
		arms = append(arms, a.takeSide()) // an octopus
	}
	files := maps.Clone(a.main.files)
	for _, arm := range arms {
		for name, f := range arm.files {
			if _, taken := files[name]; !taken || a.r.IntN(2) == 0 {
				files.put(name, f) // where both sides have the path, a conflict was resolved for one of them
			}
		}
	}
	switch a.r.IntN(7) {
	case 0: // a file of neither side
		files.change(a.r)
	case 1: // ours
		files = a.main.files
	case 2: // theirs
		files = arms[0].files
	case 3: // a criss-cross
		other := a.commit(arms[0].files, arms[0], a.main)
		a.main = a.commit(a.main.files, a.main, arms[0])
		arms = []*commit{other}
	case 4: // the side branch continues after the merge
		a.sides = append(a.sides, arms[0])
	case 5: // a parent twice
		arms = append(arms, arms[0])
	}
	a.main = a.commit(files, append([]*commit{a.main}, arms...)...)
}

func (a *agent) takeSide() *commit {
	i := a.r.IntN(len(a.sides))
	side := a.sides[i]
	a.sides = slices.Delete(a.sides, i, i+1)
	return side
}

// rewrite removes commits from main in some way.
func (a *agent) rewrite() {
	a.t.Helper()
	recent := a.recent(6)
	switch a.r.IntN(7) {
	case 0: // amend
		a.main = a.commit(one(a.r, []tree{a.main.files, a.next(a.main).files}), a.main.parents...)
	case 1: // reset
		a.main = one(a.r, recent)
	case 2: // reset and continue from there
		a.main = a.next(one(a.r, recent))
	case 3: // rebase: the same changes without one of them, on another commit
		on := one(a.r, append(a.recent(8), a.root))
		for _, c := range slices.Backward(recent[:len(recent)-1]) {
			if a.r.IntN(3) > 0 {
				on = a.commit(c.files, on)
			}
		}
		a.main = on
	case 4: // main becomes a side branch, and the side branch main
		if len(a.sides) > 0 {
			i := a.r.IntN(len(a.sides))
			a.main, a.sides[i] = a.sides[i], a.main
		}
	case 5: // a merge brings the removed commits back
		before := one(a.r, recent)
		a.main = a.commit(a.main.files, a.next(before), a.main)
	case 6: // a merge in the other direction: the previous main is the second parent
		if len(a.sides) > 0 {
			side := a.takeSide()
			a.main = a.commit(side.files.with(a.main.files), side, a.main)
		}
	}
}

// reached lists the commits that a commit reaches, without the known ones, parents before children.
func reached(tip *commit, known func(*commit) bool) []*commit {
	var order []*commit
	seen := map[*commit]bool{}
	var visit func(*commit)
	visit = func(c *commit) {
		if seen[c] || known(c) {
			return
		}
		seen[c] = true
		for _, p := range c.parents {
			visit(p)
		}
		order = append(order, c)
	}
	visit(tip)
	return order
}
