package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/promote/record"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

const session = "20261125T100000Z-7f3a"

// run returns a record with some content.
func run(t *testing.T, n int, previous gitops.OID) record.Run {
	t.Helper()
	m := record.Manifest{Session: session, ID: "7f3a", Run: n, Previous: previous, Kind: record.Direct, Argv: []string{"true"},
		Started: time.Unix(1700000000, 0).UTC(), Ended: time.Unix(1700000060, 0).UTC(), Status: record.Completed, Absent: map[string]string{}}
	for _, name := range record.Names() {
		m.Absent[name] = "not in this test"
	}
	r, err := record.New(m, map[string][]byte{record.StdoutName: []byte(strings.Repeat("output\n", 100)), record.EventsName: []byte("{}\n")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// three stores three records.
func three(t *testing.T, format string) (*gitops.Repository, []Entry) {
	t.Helper()
	w := gitopstest.New(t, "--object-format="+format)
	var previous gitops.OID
	for n := range 3 {
		commit, err := (Place{Repo: w.Repository, Mark: "mark", Who: "A <a@example.org>"}).Put(t.Context(), run(t, n+1, previous))
		if err != nil {
			t.Fatal(err)
		}
		previous = commit
	}
	return w.Repository, list(t, w.Repository)
}

func list(t *testing.T, r *gitops.Repository) []Entry {
	t.Helper()
	all, err := List(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPutAndVerify(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		r, all := three(t, format)
		for i, e := range all {
			if e.Number != i+1 || e.Err != nil || e.Manifest.Run != i+1 {
				t.Fatalf("%+v", e)
			}
			if faults := Verify(t.Context(), r, e, all); len(faults) > 0 {
				t.Errorf("%s: %q", e.Name(), faults)
			}
			run, err := Load(t.Context(), r, e)
			if err != nil || len(run.Files) != 4 || run.Ref != e.Ref {
				t.Errorf("%+v, %v", run, err)
			}
		}
		if _, err := (Place{Repo: r, Mark: "mark", Who: "A <a@example.org>"}).Put(t.Context(), run(t, 3, all[1].Commit)); err == nil {
			t.Error("a record was replaced")
		}
		if keeps, _ := filepath.Glob(filepath.Join(r.CommonDir, "objects", "pack", "*.keep")); len(keeps) > 0 {
			t.Error(keeps)
		}
	}
}

// TestFlippedContent changes a bit of a file, or of the commit, and stores the objects anew, as somebody would who may write to the
// repository. Each record but the newest is held by the chain as well.
func TestFlippedContent(t *testing.T) {
	r, all := three(t, "sha1")
	at := Place{Repo: r, Mark: "mark", Who: "A <a@example.org>"}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		e := all[random.IntN(len(all))]
		changed := run(t, e.Number, previousOf(all, e.Number))
		names := slices.Sorted(maps.Keys(changed.Files))
		name := names[random.IntN(len(names))]
		content := bytes.Clone(changed.Files[name])
		content[random.IntN(len(content))] ^= 1 << random.IntN(8)
		changed.Files[name] = content
		objects, ids, err := at.objectsOf(changed)
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(3) == 0 { // in the commit instead
			objects, ids, err = at.objectsOf(run(t, e.Number, previousOf(all, e.Number)))
			if err != nil {
				t.Fatal(err)
			}
			last := &objects[len(objects)-1]
			last.Content = bytes.Clone(last.Content)
			at := bytes.Index(last.Content, []byte("\n\n")) + 2
			last.Content[at+random.IntN(len(last.Content)-at)] ^= 1 << random.IntN(8)
			ids[len(ids)-1], name = gitops.HashObject(r.Format, "commit", last.Content), "the message"
		}
		if err := at.kept().Store(objects, ids); err != nil {
			t.Fatal(err)
		}
		e.Commit = ids[len(ids)-1]
		others := slices.Clone(all)
		others[e.Number-1] = e
		if faults := Verify(t.Context(), r, e, others); len(faults) == 0 {
			t.Errorf("seed %d: a changed bit in %s of run %d is not found", seed, name, e.Number)
		}
	}
}

func previousOf(all []Entry, n int) gitops.OID {
	if n == 1 {
		return ""
	}
	return all[n-2].Commit
}

// TestFlippedDisk changes a bit in the files of the object store. The record is either as before or found.
func TestFlippedDisk(t *testing.T) {
	r, all := three(t, "sha1")
	whole := run(t, 3, all[1].Commit)
	packs, _ := filepath.Glob(filepath.Join(r.CommonDir, "objects", "pack", "*.pack"))
	if len(packs) != 3 {
		t.Fatal(packs)
	}
	found := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		file := packs[random.IntN(len(packs))]
		content, err := os.ReadFile(file)
		gitopstest.Check(t, err)
		changed := bytes.Clone(content)
		changed[random.IntN(len(changed))] ^= 1 << random.IntN(8)
		gitopstest.Check(t, os.Chmod(file, 0o600))
		gitopstest.Check(t, os.WriteFile(file, changed, 0o600))
		for i, e := range all {
			if len(Verify(t.Context(), r, e, all)) > 0 {
				found++
				continue
			}
			run, err := Load(t.Context(), r, e)
			if err != nil || i == 2 && !maps.EqualFunc(run.Files, whole.Files, bytes.Equal) {
				t.Fatalf("seed %d: run %d is said to be whole: %v", seed, e.Number, err)
			}
		}
		gitopstest.Check(t, os.WriteFile(file, content, 0o600))
	}
	if found < 50 {
		t.Errorf("only %d changes found", found)
	}
}

func TestFind(t *testing.T) {
	var all []Entry
	for _, s := range []string{"20261124T100000Z-0001", session} {
		for n := range 3 {
			all = append(all, Entry{Ref: record.Ref(s, n+1), Session: s, Number: n + 1, Manifest: record.Manifest{Ended: time.Unix(int64(n), 0)}})
		}
	}
	for _, c := range []struct{ name, here, want string }{
		{"3", session, session + "/3"},
		{"last", session, session + "/3"},
		{"last", "", session + "/3"},
		{session + "/2", "", session + "/2"},
		{record.Ref(session, 1), "x", session + "/1"},
		{"20261124T100000Z-0001/1", session, "20261124T100000Z-0001/1"},
		{"3", "", ""}, {"4", session, ""}, {"", session, ""}, {"-1", session, ""},
	} {
		e, err := Find(all, c.name, c.here)
		if got := e.Name(); (err != nil) != (c.want == "") || err == nil && got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

// TestFindAfterClockChange finds the newest run although the clock was set back after an earlier one of its session.
func TestFindAfterClockChange(t *testing.T) {
	entry := func(session string, n int, ended int64) Entry {
		return Entry{Ref: record.Ref(session, n), Session: session, Number: n, Manifest: record.Manifest{Ended: time.Unix(ended, 0)}}
	}
	const older, newer = "20261124T100000Z-0001", "20261124T120000Z-0002"
	all := []Entry{entry(older, 1, 100), entry(older, 2, 9000), entry(older, 3, 200), entry(newer, 1, 300), entry(newer, 2, 250)}
	for here, want := range map[string]string{older: older + "/3", newer: newer + "/2", "": newer + "/2", "x": newer + "/2"} {
		if e, err := Find(all, "last", here); err != nil || e.Name() != want {
			t.Errorf("last in the session %q: %s, %v, want %s", here, e.Name(), err, want)
		}
	}
}

// TestHostileRefs lists and verifies refs that are not records.
func TestHostileRefs(t *testing.T) {
	w := gitopstest.New(t)
	commit := w.CommitAll(gitopstest.Files{"manifest.json": "{\"version\":1}", "x": "y"})
	blob := w.Blob("x")
	for n, target := range []gitops.OID{commit, blob} {
		w.Run("update-ref", record.Ref(session, n+1), string(target))
	}
	all := list(t, w.Repository)
	if len(all) != 2 {
		t.Fatal(all)
	}
	for _, e := range all {
		if e.Err == nil || len(Verify(t.Context(), w.Repository, e, all)) == 0 {
			t.Errorf("%+v", e)
		}
		if _, err := Load(t.Context(), w.Repository, e); err == nil {
			t.Error("it can be loaded")
		}
	}
	if got := fmt.Sprint(Verify(t.Context(), w.Repository, Entry{Ref: record.Ref(session, 3), Session: session, Number: 3, Commit: gitops.OID(strings.Repeat("1", 40))}, nil)); !strings.Contains(got, "not in this repository") {
		t.Error(got)
	}
}

// TestPackRefs stores more records than refs that stay in files.
func TestPackRefs(t *testing.T) {
	w := gitopstest.New(t)
	commit := w.CommitAll(gitopstest.Files{"x": "y"})
	var updates []gitops.RefUpdate
	for n := range maxLoose {
		updates = append(updates, gitops.RefUpdate{Ref: record.Ref(session, n+2), New: commit})
	}
	gitopstest.Check(t, w.UpdateRefs(t.Context(), "", updates...))
	loose := func() int {
		files, _ := filepath.Glob(filepath.Join(w.CommonDir, record.RefPrefix, "*", "*"))
		return len(files)
	}
	PackRefs(t.Context(), w.Repository)
	if n := loose(); n != maxLoose {
		t.Errorf("%d files, want %d", n, maxLoose)
	}
	if _, err := (Place{Repo: w.Repository, Mark: "mark", Who: "A <a@example.org>"}).Put(t.Context(), run(t, 1, "")); err != nil {
		t.Fatal(err)
	}
	if n := loose(); n != 0 {
		t.Errorf("%d files, want none", n)
	}
	if all, err := Refs(t.Context(), w.Repository); err != nil || len(all) != maxLoose+1 {
		t.Errorf("%d records, %v", len(all), err)
	}
}
