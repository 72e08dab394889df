// Package exchange gets the notes of a remote, and merges them into the notes here.
//
// A remote can be somebody else's, and whoever can push to it can write any notes. A merge therefore adds to the notes here, and
// takes nothing away: a note that the remote has removed or changed stays as it is. This is why it is not left to git notes merge, which
// obeys a remote that has removed a note since the last merge.
//
// The fetched values are below refs/airlock/fetched until they are merged. Below refs/notes, a notes.displayRef=refs/notes/* would show
// them, and a push or fetch of refs/notes/* would pass them on.
package exchange

import (
	"strings"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/review"
)

// NoteRefs are the refs of notes for others.
var NoteRefs = []string{promote.NotesRef, review.NotesRef, promote.EgressRef, checks.NotesRef, evidence.NotesRef}

// OfLines reports whether each line of a note stands alone, so that two notes on one object can be united. Other notes are one text.
func OfLines(ref string) bool {
	return ref == review.NotesRef || ref == checks.NotesRef || ref == evidence.NotesRef
}

const fetched = "refs/airlock/fetched"

// Fetched returns the ref at which the remote's value of a notes ref is until it is merged.
func Fetched(ref string) string { return fetched + "/" + strings.TrimPrefix(ref, "refs/notes/") }
