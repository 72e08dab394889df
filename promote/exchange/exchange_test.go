package exchange

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/review"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

var who = User{Name: "A <a@example.org>"}

// texts returns the notes in a ref, by their objects.
func texts(t *testing.T, w *gitopstest.Repo, ref string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(w.Run("notes", "--ref="+ref, "list")) {
		_, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		note, err := w.Note(t.Context(), ref, gitops.OID(id))
		gitopstest.Check(t, err)
		all[id] = note
	}
	return all
}

// sides makes two values of a notes ref with a common beginning. The remote may also remove and change notes.
func sides(t *testing.T, w *gitopstest.Repo, rng *rand.Rand, ref string, obeying bool) (ours, theirs gitops.OID) {
	t.Helper()
	var objects []gitops.OID
	for i := range 8 {
		objects = append(objects, w.Blob(fmt.Sprint("object ", i)))
	}
	value := func() gitops.OID { return gitops.OID(strings.TrimSpace(w.Run("rev-parse", ref))) }
	write := func(side string, n int) {
		for i := range n {
			object := string(objects[rng.IntN(len(objects))])
			switch {
			case !obeying && side == "theirs" && i%3 == 0:
				w.Run("notes", "--ref="+ref, "remove", "--ignore-missing", object)
			case !obeying && side == "theirs" && i%3 == 1:
				w.Run("notes", "--ref="+ref, "add", "-f", "-m", fmt.Sprint("changed ", i), object)
			default:
				w.Run("notes", "--ref="+ref, "append", "-m", fmt.Sprintf("{%q:%d}", side, rng.IntN(9)), object)
			}
		}
	}
	write("base", 4)
	base := value()
	write("theirs", 5)
	theirs = value()
	w.Run("update-ref", ref, string(base))
	write("ours", rng.IntN(4))
	return value(), theirs
}

// TestMergeIsThatOfGit checks that notes of lines are merged as git notes merge does, if the remote has only added to them.
func TestMergeIsThatOfGit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, format := range []string{"sha1", "sha256"} {
		w := gitopstest.New(t, "--object-format="+format)
		for range 4 {
			ours, theirs := sides(t, w, rng, review.NotesRef, true)
			w.Run("update-ref", Fetched(review.NotesRef), string(theirs))
			w.Run("notes", "--ref="+review.NotesRef, "merge", "-q", "-s", "cat_sort_uniq", Fetched(review.NotesRef))
			want := withoutOrder(texts(t, w, review.NotesRef))
			w.Run("update-ref", review.NotesRef, string(ours))
			_, err := merge(t.Context(), w.Repository, who, []string{review.NotesRef}, map[string]gitops.OID{Fetched(review.NotesRef): theirs})
			gitopstest.Check(t, err)
			if got := withoutOrder(texts(t, w, review.NotesRef)); !maps.Equal(got, want) {
				t.Errorf("merged to %q, git merges to %q", got, want)
			}
			w.Run("merge-base", "--is-ancestor", string(ours), review.NotesRef)
			w.Run("merge-base", "--is-ancestor", string(theirs), review.NotesRef)
		}
	}
}

// withoutOrder sorts the lines of notes that only one side has changed, which git leaves as they are.
func withoutOrder(of map[string]string) map[string]string {
	for id, note := range of {
		of[id] = review.Add(note, "")
	}
	return of
}

// TestNothingIsLost checks that notes here have all their lines after a merge, or all their text, whatever the remote does.
func TestNothingIsLost(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, ref := range []string{promote.NotesRef, review.NotesRef} {
		w := gitopstest.New(t)
		for range 6 {
			_, theirs := sides(t, w, rng, ref, false)
			before := texts(t, w, ref)
			_, err := merge(t.Context(), w.Repository, who, []string{ref}, map[string]gitops.OID{Fetched(ref): theirs})
			gitopstest.Check(t, err)
			after := texts(t, w, ref)
			for id, note := range before {
				for line := range strings.Lines(note) {
					if line != "\n" && !strings.Contains("\n"+after[id], "\n"+line) || !OfLines(ref) && after[id] != note {
						t.Errorf("%s: the note on %s was %q and is %q", ref, id, note, after[id])
					}
				}
			}
			w.Run("merge-base", "--is-ancestor", string(theirs), ref)
		}
	}
}

// TestWithoutFetched checks that no ref is removed when another fetch has removed what this one fetched.
func TestWithoutFetched(t *testing.T) {
	w := gitopstest.New(t)
	ours, _ := sides(t, w, rand.New(rand.NewPCG(5, 6)), review.NotesRef, true)
	if _, err := merge(t.Context(), w.Repository, who, []string{review.NotesRef}, nil); err == nil {
		t.Error("merged without anything fetched")
	}
	if at := w.At(review.NotesRef); at != ours {
		t.Errorf("%s is at %s, was at %s", review.NotesRef, at, ours)
	}
}
