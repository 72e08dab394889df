package gitops

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestReceiveAndGive(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for name, n := range map[string]int{"few": 1, "many": packedHere/3 + 5} {
			t.Run(format+" "+name, func(t *testing.T) {
				t.Parallel()
				i := newInner(t, files{"a": "1", "big": randomText(1, 20<<10)}, "--object-format="+format)
				for k := range n {
					i.write(files{"a": fmt.Sprint(k), fmt.Sprint("d/", k): "new", "big": randomText(1, 20<<10) + fmt.Sprint(k)})
					i.git("add", "-A")
					i.git("commit", "-q", "-m", "c")
				}
				tip := OID(i.git("rev-parse", "HEAD"))
				i.receive(tip, i.root)
				check(t, i.q.Connected(t.Context(), tip, []OID{i.root}, DefaultLimits))
				check(t, i.q.CheckSizes(t.Context(), tip, []OID{i.root}, DefaultLimits))
				links, err := i.q.History(t.Context(), tip, []OID{i.root})
				if err != nil || len(links) != n {
					t.Fatalf("History: %d links, %v", len(links), err)
				}
				outer := i.give(t, links)
				i.outer.git("update-ref", "refs/heads/got", string(outer))
				i.outer.git("fsck", "--no-dangling", "--strict")
				if got, want := i.outer.git("rev-parse", "got^{tree}"), i.git("rev-parse", "HEAD^{tree}"); got != want {
					t.Errorf("tree %s, want %s", got, want)
				}
				if count := i.outer.git("count-objects", "-v"); !strings.Contains(count, "packs: 1\n") {
					t.Errorf("%d commits: %s", n, count)
				}
			})
		}
	}
}

// mapped builds the outer images of links on top of the base.
func (i *inner) mapped(b *Bridge, look *Inspector, links []Link) OID {
	i.t.Helper()
	last := i.base
	for _, l := range links {
		c, err := look.Commit(i.t.Context(), l.Commit)
		check(i.t, err)
		c.Parents = []OID{last}
		last = b.Make("commit", c.Bytes())
	}
	return last
}

// One commit can bring more than belongs loose into the user's repository: objects, or bytes.
func TestGiveOneLargeCommit(t *testing.T) {
	t.Parallel()
	many := files{}
	for k := range 3 * packedHere {
		many[fmt.Sprint("d/", k)] = fmt.Sprint(k)
	}
	for name, f := range map[string]files{"objects": many, "bytes": {"big": randomText(1, inHand+1)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInner(t, files{"a": "1"})
			tip := i.commit(f)
			i.receive(tip, i.root)
			outer := i.give(t, []Link{{Commit: tip, Parents: []OID{i.root}}})
			i.outer.git("update-ref", "refs/heads/got", string(outer))
			i.outer.git("fsck", "--no-dangling", "--strict")
			if count := i.outer.git("count-objects", "-v"); !strings.Contains(count, "packs: 1") {
				t.Errorf("stored loose: %s", count)
			}
		})
	}
}

func TestGiveReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	i := newInner(t, files{"a": "1"})
	b, look := i.bridge(t)
	missing := OID(strings.Repeat("12", 20))
	lacking := b.Make("commit", Commit{Tree: missing, Parents: []OID{i.base}, Author: "G <g@x> 1 +0000", Committer: "G <g@x> 1 +0000"}.Bytes())
	for name, err := range map[string]error{
		"the commit": b.Give(t.Context(), look, missing, []OID{i.base}),
		"its tree":   b.Give(t.Context(), look, lacking, []OID{i.base}),
		"another":    b.Give(t.Context(), look, "", nil, missing),
	} {
		if err == nil {
			t.Errorf("%s is not there: no error", name)
		}
	}
	i.outer.git("fsck", "--strict")
}

// bridge is a bridge with its inspector.
func (i *inner) bridge(t *testing.T) (*Bridge, *Inspector) {
	t.Helper()
	b, err := i.q.Bridge(i.outer.Repository, filepath.Join(t.TempDir(), "bridge"))
	check(t, err)
	t.Cleanup(func() { check(t, b.Close()) })
	inside := i.q.Inspect(t.Context())
	look := b.Inspect(t.Context(), inside)
	t.Cleanup(func() { check(t, errors.Join(inside.Close(), look.Close())) })
	return b, look
}

// give gives the outer images of links, by a bridge of its own, and returns the last.
func (i *inner) give(t *testing.T, links []Link) OID {
	t.Helper()
	b, look := i.bridge(t)
	outer := i.mapped(b, look, links)
	check(t, b.Give(t.Context(), look, outer, []OID{i.base}))
	return outer
}

// What is made is given, whole, however much it is, and no more of it is held in memory than is bounded.
func TestMadeIsBounded(t *testing.T) {
	t.Parallel()
	i := newInner(t, files{"a": "1"})
	b, err := i.q.Bridge(i.outer.Repository, filepath.Join(t.TempDir(), "bridge"))
	check(t, err)
	defer b.Close()
	look := b.Inspect(t.Context(), nil)
	defer look.Close()
	base, err := look.Commit(t.Context(), i.base)
	check(t, err)
	last, n := i.base, madeHeld>>20+8
	for k := range n {
		c := base
		c.Parents, c.Message = []OID{last}, fmt.Appendf(nil, "%d\n%s", k, strings.Repeat("m", 1<<20))
		last = b.Make("commit", c.Bytes())
	}
	if b.held > madeHeld {
		t.Errorf("%d bytes are held", b.held)
	}
	check(t, b.Give(t.Context(), look, last, []OID{i.base}))
	i.outer.git("update-ref", "refs/heads/got", string(last))
	i.outer.git("fsck", "--no-dangling", "--strict")
	if got := i.outer.git("rev-list", "--count", string(i.base)+"..got"); got != fmt.Sprint(n) {
		t.Errorf("%s commits of %d", got, n)
	}
}
