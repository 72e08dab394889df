package evidence

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Store has all envelopes of a repository's notes.
type Store struct {
	noted    map[gitops.OID][]Envelope // by the object that has the note
	patches  map[string][]Envelope     // by patch-id
	sessions map[string][]Envelope     // each envelope once
	broken   map[gitops.OID]error      // why a line of an object's note cannot be read
}

// Read reads all notes with statements. It checks no signature. Without notes the store is empty.
func Read(ctx context.Context, repo *gitops.Repository) (*Store, error) {
	notes, err := repo.AllNotes(ctx, NotesRef)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", NotesRef, err)
	}
	return storeOf(notes), nil
}

func storeOf(notes map[gitops.OID]string) *Store {
	s := &Store{noted: map[gitops.OID][]Envelope{}, patches: map[string][]Envelope{}, sessions: map[string][]Envelope{}, broken: map[gitops.OID]error{}}
	seen := map[string]bool{}
	for object, note := range notes {
		s.add(object, note, seen)
	}
	return s
}

// add adds the lines of one note. seen has the digests of known envelopes, because the note of a commit and the note of its tree have the same
// lines.
func (s *Store) add(object gitops.OID, note string, seen map[string]bool) {
	n := 0
	for line := range strings.Lines(note) {
		if n++; n > gitops.NoteLines {
			break
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		e, err := Open([]byte(line))
		if err != nil {
			s.broken[object] = err
			continue
		}
		if of := e.Statement; object != of.Commit() && object != of.Tree() {
			s.broken[object] = fmt.Errorf("a statement about commit %s was copied here", of.Commit())
			continue
		}
		s.noted[object] = append(s.noted[object], e)
		if !seen[e.Digest] {
			seen[e.Digest] = true
			p := e.Statement.Predicate
			s.sessions[p.Session] = append(s.sessions[p.Session], e)
			if p.Landed != nil && p.Landed.PatchID != "" {
				s.patches[p.Landed.PatchID] = append(s.patches[p.Landed.PatchID], e)
			}
		}
	}
}

// How a statement was found.
const (
	ByCommit = "commit"
	ByTree   = "tree"
	ByPatch  = "patch-id"
)

// Find returns the statements about a commit, then those about its tree, and then those about a commit with the same patch, each once and with the
// way in which it was found. patch computes the patch-id, and is called only if the caller needs more than the others.
func (s *Store) Find(commit, tree gitops.OID, patch func() string) iter.Seq2[Envelope, string] {
	return func(yield func(Envelope, string) bool) {
		seen := map[string]bool{}
		each := func(found []Envelope, by string, is func(Statement) bool) bool {
			for _, e := range found {
				if e.Statement.Predicate.Landed == nil || !is(e.Statement) || seen[e.Digest] {
					continue
				}
				if seen[e.Digest] = true; !yield(e, by) {
					return false
				}
			}
			return true
		}
		if !each(s.noted[commit], ByCommit, func(of Statement) bool { return of.Commit() == commit && of.Tree() == tree }) ||
			!each(s.noted[tree], ByTree, func(of Statement) bool { return of.Tree() == tree }) || len(s.patches) == 0 {
			return
		}
		if id := patch(); id != "" {
			each(s.patches[id], ByPatch, func(Statement) bool { return true })
		}
	}
}

// Broken returns the reason why a line in the note of an object cannot be used, or nil if all lines can.
func (s *Store) Broken(object gitops.OID) error { return s.broken[object] }
