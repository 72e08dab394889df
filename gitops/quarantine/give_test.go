package quarantine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

func TestReceiveAndGive(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		for name, n := range map[string]int{"few": 1, "many": packedHere/3 + 5} {
			t.Run(format+" "+name, func(t *testing.T) {
				t.Parallel()
				i := newInner(t, gitopstest.Files{"a": "1", "big": randomText(1, 20<<10)}, "--object-format="+format)
				for k := range n {
					i.Write(gitopstest.Files{"a": fmt.Sprint(k), fmt.Sprint("d/", k): "new", "big": randomText(1, 20<<10) + fmt.Sprint(k)})
					i.Run("add", "-A")
					i.Run("commit", "-q", "-m", "c")
				}
				tip := gitops.OID(i.Run("rev-parse", "HEAD"))
				i.receive(tip, i.root)
				gitopstest.Check(t, i.q.Connected(t.Context(), tip, []gitops.OID{i.root}, inner.DefaultLimits))
				gitopstest.Check(t, i.q.CheckSizes(t.Context(), tip, []gitops.OID{i.root}, inner.DefaultLimits))
				links, err := i.q.History(t.Context(), tip, []gitops.OID{i.root})
				if err != nil || len(links) != n {
					t.Fatalf("History: %d links, %v", len(links), err)
				}
				outer := i.give(t, links)
				i.outer.Run("update-ref", "refs/heads/got", string(outer))
				i.outer.Run("fsck", "--no-dangling", "--strict")
				if got, want := i.outer.Run("rev-parse", "got^{tree}"), i.Run("rev-parse", "HEAD^{tree}"); got != want {
					t.Errorf("tree %s, want %s", got, want)
				}
				if count := i.outer.Run("count-objects", "-v"); !strings.Contains(count, "packs: 1\n") {
					t.Errorf("%d commits: %s", n, count)
				}
			})
		}
	}
}

// mapped builds the outer commits for links on top of the base.
func (i *airlock) mapped(b *Bridge, look *Inspector, links []Link) gitops.OID {
	i.T.Helper()
	last := i.base
	for _, l := range links {
		c, err := look.Commit(i.T.Context(), l.Commit)
		gitopstest.Check(i.T, err)
		c.Parents = []gitops.OID{last}
		last = b.Make("commit", c.Bytes())
	}
	return last
}

// One commit can bring more objects, or bytes, than the user's repository should have as loose objects.
func TestGiveOneLargeCommit(t *testing.T) {
	t.Parallel()
	many := gitopstest.Files{}
	for k := range 3 * packedHere {
		many[fmt.Sprint("d/", k)] = fmt.Sprint(k)
	}
	for name, f := range map[string]gitopstest.Files{"objects": many, "bytes": {"big": randomText(1, inHand+1)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInner(t, gitopstest.Files{"a": "1"})
			tip := i.CommitAll(f)
			i.receive(tip, i.root)
			outer := i.give(t, []Link{{Commit: tip, Parents: []gitops.OID{i.root}}})
			i.outer.Run("update-ref", "refs/heads/got", string(outer))
			i.outer.Run("fsck", "--no-dangling", "--strict")
			if count := i.outer.Run("count-objects", "-v"); !strings.Contains(count, "packs: 1") {
				t.Errorf("stored loose: %s", count)
			}
		})
	}
}

func TestGiveReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	b, look := i.bridge(t)
	missing := gitops.OID(strings.Repeat("12", 20))
	lacking := b.Make("commit", gitops.Commit{Tree: missing, Parents: []gitops.OID{i.base}, Author: "G <g@x> 1 +0000", Committer: "G <g@x> 1 +0000"}.Bytes())
	for name, err := range map[string]error{
		"the commit": b.Give(t.Context(), look, missing, []gitops.OID{i.base}),
		"its tree":   b.Give(t.Context(), look, lacking, []gitops.OID{i.base}),
		"another":    b.Give(t.Context(), look, "", nil, missing),
	} {
		if err == nil {
			t.Errorf("%s is not there: no error", name)
		}
	}
	i.outer.Run("fsck", "--strict")
}

// bridge is a bridge and its inspector.
func (i *airlock) bridge(t *testing.T) (*Bridge, *Inspector) {
	t.Helper()
	b, err := i.q.Bridge(i.outer.Repository, nil, filepath.Join(t.TempDir(), "bridge"))
	gitopstest.Check(t, err)
	t.Cleanup(func() { gitopstest.Check(t, b.Close()) })
	inside := i.q.Inspect(t.Context())
	look := b.Inspect(t.Context(), inside)
	t.Cleanup(func() { gitopstest.Check(t, errors.Join(inside.Close(), look.Close())) })
	return b, look
}

// give copies the outer commits of links through a new bridge, and returns the last one.
func (i *airlock) give(t *testing.T, links []Link) gitops.OID {
	t.Helper()
	b, look := i.bridge(t)
	outer := i.mapped(b, look, links)
	gitopstest.Check(t, b.Give(t.Context(), look, outer, []gitops.OID{i.base}))
	return outer
}

// All new objects are copied, however many there are, and their size in memory stays below the limit.
func TestMadeIsBounded(t *testing.T) {
	t.Parallel()
	i := newInner(t, gitopstest.Files{"a": "1"})
	b, err := i.q.Bridge(i.outer.Repository, nil, filepath.Join(t.TempDir(), "bridge"))
	gitopstest.Check(t, err)
	defer b.Close()
	look := b.Inspect(t.Context(), nil)
	defer look.Close()
	base, err := look.Commit(t.Context(), i.base)
	gitopstest.Check(t, err)
	last, n := i.base, madeHeld>>20+8
	for k := range n {
		c := base
		c.Parents, c.Message = []gitops.OID{last}, fmt.Appendf(nil, "%d\n%s", k, strings.Repeat("m", 1<<20))
		last = b.Make("commit", c.Bytes())
	}
	if b.held > madeHeld {
		t.Errorf("%d bytes are held", b.held)
	}
	gitopstest.Check(t, b.Give(t.Context(), look, last, []gitops.OID{i.base}))
	i.outer.Run("update-ref", "refs/heads/got", string(last))
	i.outer.Run("fsck", "--no-dangling", "--strict")
	if got := i.outer.Run("rev-list", "--count", string(i.base)+"..got"); got != fmt.Sprint(n) {
		t.Errorf("%s commits of %d", got, n)
	}
}
