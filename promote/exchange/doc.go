// Package exchange gets the notes of a remote, and merges them into the notes here.
//
// A remote can belong to somebody else, and whoever can push to it can write any notes. A merge therefore adds notes and lines to the notes
// here, and removes none, even if the remote has removed or changed them. git notes merge cannot do this: if the remote has removed a note
// since the last merge, it removes the note here as well.
//
// Until they are merged, the fetched values are below refs/airlock/fetched. Below refs/notes, git would show them if notes.displayRef is
// refs/notes/*, and would pass them on with a push or fetch of refs/notes/*.
package exchange

import (
	"strings"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/evidence"
	"github.com/git-airlock/git-airlock/promote/review"
)

// NoteRefs are the notes refs that users share.
var NoteRefs = []string{promote.NotesRef, review.NotesRef, promote.EgressRef, checks.NotesRef, evidence.NotesRef}

// OfLines reports whether each line of the notes in a ref stands alone, so that two notes on one object can be merged line by line. In other
// refs a note is one text.
func OfLines(ref string) bool {
	return ref == review.NotesRef || ref == checks.NotesRef || ref == evidence.NotesRef
}

const fetched = "refs/airlock/fetched"

// Fetched returns the ref that holds the remote's value of a notes ref until it is merged.
func Fetched(ref string) string { return fetched + "/" + strings.TrimPrefix(ref, "refs/notes/") }
