package review

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// NotesRef is the ref of the notes with verdicts.
const NotesRef = "refs/notes/airlock-review"

// Word is the kind of a verdict.
type Word string

// The verdicts.
const (
	Approve Word = "approve" // the commit may land
	Reject  Word = "reject"  // the commit is left out
	Fix     Word = "fix"     // the commit waits until the agent has amended it
	Undone  Word = "undone"  // the commit landed, and an undo took it back; not in notes
	Seen    Word = "seen"    // somebody has looked at paths of the commit
)

// LeavesOut reports whether later commits land without a commit that has this verdict.
func (w Word) LeavesOut() bool { return w == Reject || w == Undone }

// Verdict is one person's verdict on one commit, as a line of the notes stores it.
type Verdict struct {
	Version int                   `json:"v"`
	Word    Word                  `json:"verdict"`
	By      string                `json:"by"` // name and address
	At      time.Time             `json:"at"`
	Commit  gitops.OID            `json:"commit"` // the built commit
	Inner   gitops.OID            `json:"inner"`
	Patch   string                `json:"patch"` // of git patch-id --stable; empty for a commit without a patch
	Tree    gitops.OID            `json:"tree"`  // of the built commit
	Paths   map[string]gitops.OID `json:"paths"` // the blobs that were looked at, by path; see [gitops.ToText]
	Reason  string                `json:"reason"`
}

const (
	version = 1
	// lineLimit and nameLimit bound a line and the name in it, in bytes, because everybody who can push notes can write them.
	lineLimit = 64 << 10
	nameLimit = 500
	// ReasonLimit is the number of bytes in a reason.
	ReasonLimit = 8 << 10
)

// ErrReason reports that a reason is too long.
var ErrReason = errors.New("the reason is longer than 8 KiB")

// Line returns the verdict as a line of a note, without a newline. Paths that would make the line too long are left out.
func (v Verdict) Line() (string, error) {
	v.Version = version
	if len(v.Reason) > ReasonLimit {
		return "", ErrReason
	}
	if v.Paths == nil {
		v.Paths = map[string]gitops.OID{}
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // people read the notes with git log
	err := encoder.Encode(v)
	if line.Len() > lineLimit && len(v.Paths) > 0 {
		v.Paths = nil
		return v.Line()
	}
	return strings.TrimSuffix(line.String(), "\n"), err
}

// Parse reads the verdicts in a note, at most [gitops.NoteLines], and sorts them by time. It ignores lines that it does not understand or
// that are too long.
func Parse(note string) []Verdict {
	var list []Verdict
	for line := range strings.Lines(note) {
		if len(list) == gitops.NoteLines {
			break
		}
		if v, ok := parseLine(line); ok {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b Verdict) int { return a.At.Compare(b.At) })
	return list
}

func parseLine(line string) (v Verdict, ok bool) {
	if len(line) > lineLimit || json.Unmarshal([]byte(line), &v) != nil || v.Version != version || len(v.Reason) > ReasonLimit || len(v.By) > nameLimit {
		return v, false
	}
	for _, id := range []gitops.OID{v.Commit, v.Inner, v.Tree} {
		if _, err := gitops.ParseOID(string(id)); err != nil && id != "" {
			return v, false
		}
	}
	return v, slices.Contains([]Word{Approve, Reject, Fix, Seen}, v.Word)
}

// IsBy reports whether an address is the author's of a verdict.
func (v Verdict) IsBy(address string) bool {
	own := addressOf(v.By)
	return own != "" && strings.EqualFold(own, addressOf(address))
}

// addressOf returns the address in "Name <address>", or the text itself if it has no brackets.
func addressOf(by string) string {
	_, address, bracketed := strings.Cut(by, "<")
	if !bracketed {
		return strings.TrimSpace(by)
	}
	address, _, _ = strings.Cut(address, ">")
	return strings.TrimSpace(address)
}

// Add returns a note with one more line. Its lines are sorted, and each is there once, as after a merge of notes.
func Add(note, line string) string {
	lines := strings.Split(strings.TrimSpace(note), "\n")
	lines = slices.DeleteFunc(append(lines, line), func(l string) bool { return strings.TrimSpace(l) == "" })
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}
