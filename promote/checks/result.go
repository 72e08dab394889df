package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// NotesRef is the ref of the notes with results. They are on trees. The notes are for people, here and in other clones: whoever can push notes
// can write them, so that they decide nothing. See [Here].
const NotesRef = "refs/notes/airlock-check"

// TimeOver is the exit status of a check that took too long. timeout(1) uses the same number.
const TimeOver = 124

// Result is the result of a check of one tree, as a line of the notes stores it.
type Result struct {
	Version int        `json:"v"`
	Tree    gitops.OID `json:"tree"`
	Command string     `json:"command_sha256"` // see [Digest]
	System  string     `json:"system"`         // the system in which the check ran
	Exit    int        `json:"exit"`
	At      time.Time  `json:"at"`
	Took    int64      `json:"ms"`
}

const (
	version   = 1
	lineLimit = 16 << 10 // bytes; longer lines are ignored
)

// Passed reports whether the tree is good.
func (r Result) Passed() bool { return r.Exit == 0 }

// Parse reads the results in the note of a tree, at most [gitops.NoteLines]. It ignores lines that it does not understand, that are too long,
// or that were copied from the note of another tree.
func Parse(note string, tree gitops.OID) []Result {
	var list []Result
	for line := range strings.Lines(note) {
		var r Result
		if len(list) == gitops.NoteLines {
			break
		}
		if len(line) <= lineLimit && json.Unmarshal([]byte(line), &r) == nil && r.Version == version && r.Tree == tree {
			list = append(list, r)
		}
	}
	return list
}

// In returns the newest result of a check in a system, nil if there is none. If a check was ended because its time was over, and the check
// may take longer now, the result does not count.
func In(list []Result, c Check, system string) *Result {
	var found *Result
	for i, r := range list {
		short := r.Exit == TimeOver && r.Took < c.Time.Milliseconds()
		if r.Command == Digest(c.Command) && r.System == system && !short && (found == nil || !r.At.Before(found.At)) {
			found = &list[i]
		}
	}
	return found
}

// Word returns "passed" or "failed" for the newest result of a command, or an empty string without a result. An empty command stands for
// all commands.
func Word(list []Result, command string) string {
	var newest Result
	word := ""
	for _, r := range list {
		if (command == "" || r.Command == Digest(command)) && (word == "" || !r.At.Before(newest.At)) {
			newest, word = r, map[bool]string{true: "passed", false: "failed"}[r.Passed()]
		}
	}
	return word
}

// Record adds a result to the note of its tree. The result replaces earlier results of the same command and system. who is the author of
// the change.
func Record(ctx context.Context, repo *gitops.Repository, who string, r Result) error {
	r.stamp()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err = gitops.RetryMoved(ctx, func() error { return write(ctx, repo, who, r, string(line)) }); err != nil {
		return fmt.Errorf("write the result of a check: %w", err)
	}
	return nil
}

func write(ctx context.Context, repo *gitops.Repository, who string, r Result, line string) error {
	from, err := repo.Ref(ctx, NotesRef)
	if err != nil {
		return err
	}
	note, err := repo.Note(ctx, NotesRef, r.Tree)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(note), "\n"), func(l string) bool {
		return l == "" || slices.ContainsFunc(Parse(l, r.Tree), r.replaces)
	})
	lines = append(lines, line)
	slices.Sort(lines)
	return repo.SetNote(ctx, gitops.NotesCommit{Ref: NotesRef, From: from, Who: who, Message: "airlock: check"}, r.Tree, strings.Join(slices.Compact(lines), "\n")+"\n")
}

// stamp gives a result the version and the precision of a stored one.
func (r *Result) stamp() { r.Version, r.At = version, r.At.UTC().Truncate(time.Second) }

// replaces reports whether the result takes the place of an older result for the same tree.
func (r Result) replaces(old Result) bool { return old.Command == r.Command && old.System == r.System }
