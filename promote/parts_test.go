package promote_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// imports makes many inner commits at once, each with its own new file that has no verdict yet.
func (w *world) imports(first, last int, name func(int) string) {
	w.t.Helper()
	var stream strings.Builder
	for n := first; n <= last; n++ {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter G <g@x> %d +0000\ndata 4\n%04d", n, n)
		if n == first {
			stream.WriteString("\nfrom refs/heads/main^0")
		}
		fmt.Fprintf(&stream, "\nM 100644 inline %s\ndata 4\n%04d\n", name(n), n)
	}
	if out, err := tryGit(w.inner, stream.String(), "fast-import", "--quiet"); err != nil {
		w.t.Fatal(out, err)
	}
}

// TestManyCommits lands so many commits that they are checked in parallel parts. The held commits must be the same as
// in a check one by one, and the other commits land.
func TestManyCommits(t *testing.T) {
	t.Parallel()
	const n, held = 300, 260
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.imports(1, n, func(i int) string {
		switch i {
		case held, held + 20:
			return recipe
		}
		return fmt.Sprintf("d%d/f%d", i%7, i)
	})
	o := w.cycle()
	if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.Policy || o.Landed != n-2 || o.Pending != 2 {
		t.Fatalf("%+v", o)
	}
	if got := w.git("log", "-1", "--format=%s", w.record.Branch); got != fmt.Sprintf("%04d", n) {
		t.Errorf("the last to land is %q", got)
	}
	notes := w.notes()
	if len(notes) != n {
		t.Errorf("%d notes, want %d", len(notes), n)
	}
	for commit, note := range notes {
		want := "clean"
		switch subject := w.git("log", "-1", "--format=%s", string(commit)); subject {
		case fmt.Sprintf("%04d", held), fmt.Sprintf("%04d", held+20):
			want = "held recipe"
		}
		if got := noteValue(note, "Policy"); got != want {
			t.Errorf("%s: policy %q, want %q", commit, got, want)
		}
	}
	w.git("config", "airlock.policy.recipe", "off")
	if o := w.cycle(); o.Pending != 0 || w.git("rev-parse", w.record.Branch+"^{tree}") != w.agent("rev-parse", "main^{tree}") {
		t.Errorf("%+v", o)
	}
	w.git("fsck", "--strict", "--no-dangling")
	w.nothingLeft()
}

// TestQuarantineHasFewPacks exports many times. The quarantine must have few packs and lose no object.
func TestQuarantineHasFewPacks(t *testing.T) {
	notShort(t)
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	for i := range 45 {
		w.imports(i, i, func(i int) string { return fmt.Sprint("f", i) })
		if o := w.cycle(); o.Landed != 1 || len(o.Holds) != 0 {
			t.Fatalf("%d: %+v", i, o)
		}
	}
	if packs := w.packs(); packs > 25 {
		t.Errorf("%d packs", packs)
	}
	if got, want := w.git("rev-parse", w.record.Branch+"^{tree}"), w.agent("rev-parse", "main^{tree}"); got != want {
		t.Errorf("tree %s, want %s", got, want)
	}
	// Everything that was exported is there, so a history that ends in it is complete.
	w.agent("reset", "-q", "--hard", "main~40")
	w.imports(99, 99, func(int) string { return "again" })
	if o := w.cycle(); o.Landed != 1 || len(o.Holds) != 0 {
		t.Errorf("%+v", o)
	}
	w.nothingLeft()
}

// packs counts the quarantine's packs.
func (w *world) packs() int {
	w.t.Helper()
	dir := promote.QuarantineDir(w.engine.Dir())
	found, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	check(w.t, err)
	if out, err := tryGit(dir, "", "--git-dir=.", "fsck", "--no-dangling"); err != nil {
		w.t.Error(out, err)
	}
	return len(found)
}
