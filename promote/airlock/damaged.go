package airlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
)

// DamagedError reports that the record of an airlock exists and cannot be read. Other airlocks of the repository are not affected.
type DamagedError struct {
	ID    string
	Known Record // the fields that could be read, for a record of another version; otherwise the zero value
	cause error  // names the file
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("airlock %s cannot be used: %s", e.ID, e.cause)
}

// Unwrap returns the reason.
func (e *DamagedError) Unwrap() error { return e.cause }

// Next returns the commands to type.
func (e *DamagedError) Next() []string {
	return []string{RemainsHint(e.ID)}
}

// RemainsHint returns the command that removes the remains of an airlock without a record that can be read.
func RemainsHint(id string) string {
	return "git airlock clear --remains=" + id + "  # removes all of it, also what has not landed"
}

// Damaged returns the airlocks whose records cannot be read.
func (s Store) Damaged() ([]*DamagedError, error) {
	_, damaged, err := s.read()
	return damaged, err
}

// IDs returns the ids of all airlocks, also of those whose records cannot be read.
func (s Store) IDs() (ids []string, err error) {
	records, damaged, err := s.read()
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	for _, d := range damaged {
		ids = append(ids, d.ID)
	}
	return ids, err
}

// damagedHere returns an error if the airlock of this worktree may be one whose record cannot be read. If the record does not name its
// worktree, the airlock is here if its workspace is, or if the workspace is in the host state, where every worktree can have it.
func (s Store) damagedHere(damaged []*DamagedError) error {
	for _, d := range damaged {
		here := d.Known.Worktree == s.repo.WorktreeID()
		if d.Known.ID == "" {
			here = len(WorkspacesIn(d.ID, s.repo.Top, s.Dir(d.ID))) > 0
		}
		if here {
			return d
		}
	}
	return nil
}

// IDOfWorkspace returns the id in the name of a workspace. ok is false if no workspace can have this name.
func IDOfWorkspace(name string) (id string, ok bool) { return identity.ParseWorkspaceName(name) }

// IDOfRef returns the id of the airlock to which a ref belongs, and the rest of the ref's name. ok is false for other refs, such as those of
// runs.
func IDOfRef(ref string) (id, rest string, ok bool) {
	id, rest, _ = strings.Cut(strings.TrimPrefix(ref, "refs/airlock/"), "/")
	_, ok = identity.ParseWorkspaceName(".a-" + id)
	return id, rest, ok && strings.HasPrefix(ref, refsOf(id)+"/")
}

// WorkspacesIn returns the paths of the workspaces with an id in some folders.
func WorkspacesIn(id string, folders ...string) (found []string) {
	for _, dir := range folders {
		for _, path := range gitops.Glob(dir, ".*-"+id) {
			if of, ok := identity.ParseWorkspaceName(filepath.Base(path)); ok && of == id {
				found = append(found, path)
			}
		}
	}
	return found
}

// read reads all records.
func (s Store) read() (records []Record, damaged []*DamagedError, err error) {
	entries, err := os.ReadDir(s.root())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		r, err := s.Load(e.Name())
		if broken, ok := errors.AsType[*DamagedError](err); ok {
			damaged = append(damaged, broken)
		} else if err == nil {
			records = append(records, r)
		} else if !errors.Is(err, fs.ErrNotExist) { // without a record: left by a start that was killed before its first write, or by a clear after its last
			return nil, nil, err
		}
	}
	return records, damaged, nil
}

// Load reads one record. The error wraps [fs.ErrNotExist] if there is none, and is a [DamagedError] if it cannot be read.
func (s Store) Load(id string) (Record, error) {
	content, err := os.ReadFile(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, err
	}
	var r Record
	if err == nil {
		r, err = decode(content, s.file(id))
	}
	if err == nil {
		return r, nil
	}
	d := &DamagedError{ID: id, cause: err}
	if r.ID == id { // the record of another version
		d.Known = r
	}
	return Record{}, d
}
