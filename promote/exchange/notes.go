package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Bounds of the notes of a remote.
const (
	listLimit  = 64 << 20  // bytes in the list of the notes of one ref
	notesLimit = 256 << 20 // bytes in all notes of one ref that are new or changed
)

var (
	errLarge  = fmt.Errorf("more than %d MiB", gitops.NoteLimit>>20)
	errCommit = errors.New("it is not a commit")
	errMany   = fmt.Errorf("the list of its notes has more than %d MiB", listLimit>>20)
	errAll    = fmt.Errorf("its notes have more than %d MiB", notesLimit>>20)
)

// note is one note in a tree of notes.
type note struct {
	path string
	blob gitops.OID
}

// notesIn returns the notes in a commit, by their objects. It returns an error if the tree contains anything but notes.
func notesIn(ctx context.Context, r *gitops.Repository, commit gitops.OID) (map[gitops.OID]note, error) {
	kind, err := r.Output(ctx, "cat-file", "-t", string(commit))
	if err != nil {
		return nil, err
	}
	if kind != "commit" {
		return nil, fmt.Errorf("%w, but a %s", errCommit, kind)
	}
	entries, err := r.Records(ctx, gitops.Call{Args: []string{"ls-tree", "-r", "-z", "--full-tree", string(commit)}, Limit: listLimit})
	if errors.Is(err, gitops.ErrOutput) {
		err = errMany
	}
	if err != nil {
		return nil, err
	}
	notes := map[gitops.OID]note{}
	for _, entry := range entries {
		about, path, _ := strings.Cut(entry, "\t")
		id, err := gitops.ParseOID(strings.ReplaceAll(path, "/", ""))
		fields := strings.Fields(about) // mode, type and name
		if err != nil || len(id) != len(commit) || len(fields) != 3 || fields[0] != "100644" {
			return nil, fmt.Errorf("%s in it is not a note", gitops.Pasteable(path))
		}
		if _, twice := notes[id]; twice {
			return nil, fmt.Errorf("it has two notes on %s", id)
		}
		notes[id] = note{path, gitops.OID(fields[2])}
	}
	return notes, nil
}

// small returns an error if one of the notes is not a blob in the repository, or has more than [gitops.NoteLimit] bytes, or if all together
// have more than notesLimit.
func small(ctx context.Context, r *gitops.Repository, notes []note) error {
	if len(notes) == 0 {
		return nil
	}
	var ask strings.Builder
	for _, n := range notes {
		fmt.Fprintln(&ask, n.blob)
	}
	var out bytes.Buffer
	call := gitops.Call{Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer"}, Stdin: strings.NewReader(ask.String()), Stdout: &out}
	if err := r.Look(ctx, call); err != nil {
		return err
	}
	var all int64
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, n := range notes {
		if i >= len(lines) {
			return fmt.Errorf("git read %d of %d notes", i, len(notes))
		}
		digits, isBlob := strings.CutPrefix(lines[i], "blob ")
		size, err := strconv.ParseInt(digits, 10, 64)
		id := strings.ReplaceAll(n.path, "/", "")
		switch {
		case !isBlob || err != nil:
			return fmt.Errorf("the note on %s is missing", id)
		case size > gitops.NoteLimit:
			return fmt.Errorf("the note on %s: %w", id, errLarge)
		}
		if all += size; all > notesLimit {
			return errAll
		}
	}
	return nil
}

// few returns an error if one of the notes has more than [gitops.NoteLines] lines.
func few(ctx context.Context, r *gitops.Repository, notes []note) error {
	blobs := make([]gitops.OID, len(notes))
	for i, n := range notes {
		blobs[i] = n.blob
	}
	return r.Blobs(ctx, blobs, gitops.NoteLimit, func(n int, head []byte, _ int64) error {
		if bytes.Count(head, []byte{'\n'}) > gitops.NoteLines {
			return fmt.Errorf("the note on %s: %w", strings.ReplaceAll(notes[n].path, "/", ""), errLines)
		}
		return nil
	})
}

// read returns the texts of notes.
func read(ctx context.Context, r *gitops.Repository, blobs []gitops.OID) ([]string, error) {
	texts := make([]string, len(blobs))
	err := r.Blobs(ctx, blobs, gitops.NoteLimit, func(n int, head []byte, size int64) error {
		if size > gitops.NoteLimit {
			return fmt.Errorf("a note: %w", errLarge)
		}
		texts[n] = string(head)
		return nil
	})
	return texts, err
}
