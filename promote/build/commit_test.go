package build

import (
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestOneInnerCommitForEachOuter checks that a commit that is built in the same second as an equal one before it gets another name,
// also if that one is pending and goes now, because the agent has amended it. A commit that is built again keeps its name.
func TestOneInnerCommitForEachOuter(t *testing.T) {
	t.Parallel()
	id := func(digit string) gitops.OID { return gitops.OID(strings.Repeat(digit, 40)) }
	base := ledger.Pair{Inner: id("0"), Outer: id("1")}
	l, err := ledger.Read(t.TempDir(), base, base.Outer, "")
	if err != nil {
		t.Fatal(err)
	}
	now, user := time.Unix(1700000000, 0).UTC(), "Ursula User <ursula@host.example>"
	content := gitops.Commit{Tree: id("2"), Parents: []gitops.OID{base.Outer}, Author: user + " 1700000000 +0100", Message: []byte("same\n")}
	build := func(inner gitops.OID) gitops.OID {
		t.Helper()
		b := newBuilder(Request{Format: "sha1", Plan: &history.Plan{Facts: history.Facts{Ledger: l}}}, nil, base.Outer, merged, now)
		c := b.date(content, user, inner)
		return gitops.HashObject("sha1", "commit", c.Bytes())
	}
	old := build(id("a"))
	if err := l.SetTail([]ledger.Pair{{Inner: id("a"), Outer: old}}); err != nil {
		t.Fatal(err)
	}
	amended := build(id("b"))
	if amended == old {
		t.Error("the amended commit has the name of the one before it")
	}
	if again := build(id("a")); again != old {
		t.Errorf("the commit has become %s, and was %s", again, old)
	}
	l.Land(old)
	if next := build(id("b")); next == old {
		t.Error("the amended commit has the name of a landed one")
	}
}
