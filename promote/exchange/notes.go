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
	errLarge   = fmt.Errorf("more than %d MiB", gitops.NoteLimit>>20)
	errMissing = errors.New("its text is missing")
	errCommit  = errors.New("it is not a commit")
	errMany    = fmt.Errorf("the list of its notes has more than %d MiB", listLimit>>20)
	errAll     = fmt.Errorf("its notes have more than %d MiB", notesLimit>>20)
)

// note is one note in a tree of notes.
type note struct {
	path string
	blob gitops.OID
}

// on returns the object that a note is on.
func (n note) on() gitops.OID { return gitops.OID(strings.ReplaceAll(n.path, "/", "")) }

// formError reports that a ref does not have the form of notes.
type formError struct{ error }

// notesIn returns the notes in a commit, by their objects. It returns a [formError] if the tree contains anything but notes.
func notesIn(ctx context.Context, r *gitops.Repository, commit gitops.OID) (map[gitops.OID]note, error) {
	kind, err := r.Output(ctx, "cat-file", "-t", string(commit))
	if err != nil {
		return nil, err
	}
	if kind != "commit" {
		return nil, formError{fmt.Errorf("%w, but a %s", errCommit, kind)}
	}
	entries, err := r.Records(ctx, gitops.Call{Args: []string{"ls-tree", "-r", "-z", "--full-tree", string(commit)}, Limit: listLimit})
	if errors.Is(err, gitops.ErrOutput) {
		err = formError{errMany}
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
			return nil, formError{fmt.Errorf("%s in it is not a note", gitops.Pasteable(path))}
		}
		if _, twice := notes[id]; twice {
			return nil, formError{fmt.Errorf("it has two notes on %s", id)}
		}
		notes[id] = note{path, gitops.OID(fields[2])}
	}
	return notes, nil
}

// unreadable returns the notes that readers could not read completely, with the reasons, by their paths. Such a note is not a blob in the
// repository, or has more than [gitops.NoteLimit] bytes, or, with lines, more than [gitops.NoteLines] lines. If all together have more than
// notesLimit bytes, it returns a [formError].
func unreadable(ctx context.Context, r *gitops.Repository, notes []note, lines bool) (map[string]error, error) {
	unfit := map[string]error{}
	if len(notes) == 0 {
		return unfit, nil
	}
	var ask strings.Builder
	for _, n := range notes {
		fmt.Fprintln(&ask, n.blob)
	}
	var out bytes.Buffer
	call := gitops.Call{Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer"}, Stdin: strings.NewReader(ask.String()), Stdout: &out}
	if err := r.Look(ctx, call); err != nil {
		return nil, err
	}
	var all int64
	var blobs []gitops.OID // of the notes that are not too large
	var paths []string
	sizes := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, n := range notes {
		if i >= len(sizes) {
			return nil, fmt.Errorf("git read %d of %d notes", i, len(notes))
		}
		digits, isBlob := strings.CutPrefix(sizes[i], "blob ")
		size, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case !isBlob || err != nil:
			unfit[n.path] = errMissing
		case size > gitops.NoteLimit:
			unfit[n.path] = errLarge
		default:
			blobs, paths = append(blobs, n.blob), append(paths, n.path)
			all += size
		}
		if all > notesLimit {
			return nil, formError{errAll}
		}
	}
	if !lines {
		return unfit, nil
	}
	return unfit, r.Blobs(ctx, blobs, gitops.NoteLimit, func(n int, head []byte, _ int64) error {
		if bytes.Count(head, []byte{'\n'}) > gitops.NoteLines {
			unfit[paths[n]] = errLines
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
