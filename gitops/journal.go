package gitops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// journal is written before the first visible change of a landing and removed after the last.
// All paths follow from the two commits.
type journal struct {
	Version int         `json:"version"`
	Branch  string      `json:"branch"`
	Old     OID         `json:"old"`
	New     OID         `json:"new"`
	Refs    []RefUpdate `json:"refs"`
	Token   string      `json:"token"` // what our index.lock holds
}

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

func hasJournal(dir string) bool {
	_, err := os.Lstat(journalPath(dir))
	return err == nil
}

func (j journal) write(dir string) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return WriteFile(journalPath(dir), content, 0o600)
}

// WriteFile replaces a file atomically and durably: a new file, synced, renamed over the old
// one, the folder synced.
func WriteFile(name string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeJournal(dir string) error {
	if err := os.Remove(journalPath(dir)); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, "staging"))
}

// Recover finishes or takes back a landing that a crash interrupted, if there is one in dir: finished
// if the branch has moved, taken back if it has not. It removes only a lock that holds the
// journal's token, and never writes a path whose bytes are neither the old nor the new ones: those
// are returned in a *[CollisionError] and the journal stays.
func (r *Repository) Recover(ctx context.Context, dir string) error {
	content, err := os.ReadFile(journalPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		_ = os.RemoveAll(filepath.Join(dir, "staging"))
		return nil
	}
	if err != nil {
		return err
	}
	if r.dry {
		return ErrDryRun
	}
	var j journal
	if err := json.Unmarshal(content, &j); err != nil || j.Version != 1 {
		return fmt.Errorf("journal %s: not readable (version %d): %w", journalPath(dir), j.Version, err)
	}
	tip, err := r.Ref(ctx, j.Branch)
	if err != nil {
		return err
	}
	if tip == j.New || tip != j.Old && tip != "" && r.IsAncestor(ctx, j.New, tip) {
		err = r.rollForward(ctx, dir, j)
	} else {
		err = r.rollBack(ctx, dir, j)
	}
	if err != nil {
		return fmt.Errorf("recover the landing of %s: %w", j.New, err)
	}
	unlockIndex(filepath.Join(r.GitDir, "index.lock"), j.Token)
	_ = os.Remove(filepath.Join(dir, "index"))
	return removeJournal(dir)
}

// IsAncestor tells whether a commit is reachable from another.
func (g *Git) IsAncestor(ctx context.Context, ancestor, of OID) bool {
	return g.Look(ctx, Call{Args: []string{"merge-base", "--is-ancestor", string(ancestor), string(of)}}) == nil
}

// rollForward completes what follows the move of the branch: other refs of the transaction (git moves the
// refs of one transaction one file after the other) and the index.
func (r *Repository) rollForward(ctx context.Context, dir string, j journal) error {
	for _, u := range j.Refs {
		now, err := r.Ref(ctx, u.Ref)
		if err != nil {
			return err
		}
		if now == u.Old && now != u.New {
			if err := r.UpdateRefs(ctx, "airlock: recover", u); err != nil {
				return err
			}
		}
	}
	index := filepath.Join(r.GitDir, "index")
	lock, err := os.ReadFile(index + ".lock")
	if err == nil && string(lock) == j.Token {
		// Our lock kept everybody else out: the prepared index is still the one to be.
		err := os.Rename(filepath.Join(dir, "index"), index)
		if errors.Is(err, os.ErrNotExist) {
			return nil // renamed before the crash
		}
		return err
	}
	return r.carryIndex(ctx, dir, j)
}

// carryIndex moves whatever the user's index is now from the old tree to the new one, if that is still needed.
func (r *Repository) carryIndex(ctx context.Context, dir string, j journal) error {
	if r.Look(ctx, Call{Args: []string{"diff-index", "--cached", "--quiet", string(j.New)}}) == nil {
		return nil
	}
	index := filepath.Join(r.GitDir, "index")
	token := j.Token
	if err := lockIndex(index+".lock", token); err != nil {
		return err
	}
	defer unlockIndex(index+".lock", token)
	next := filepath.Join(dir, "index")
	if _, err := copyIndex(index, next); err != nil {
		return err
	}
	g := r.with("GIT_INDEX_FILE=" + next)
	if err := g.Change(ctx, Call{Args: []string{"read-tree", "-i", "-m", string(j.Old), string(j.New)}}); err != nil {
		return nil // the user has staged something else at these paths since: theirs counts
	}
	return os.Rename(next, index)
}

// rollBack gives every changed path its old bytes again.
func (r *Repository) rollBack(ctx context.Context, dir string, j journal) error {
	changes, err := r.Diff(ctx, j.Old, j.New)
	if err != nil {
		return err
	}
	notOld, err := r.differing(ctx, filepath.Join(dir, "index-old"), j.Old, changes)
	if err != nil {
		return err
	}
	notNew, err := r.differing(ctx, filepath.Join(dir, "index-new"), j.New, changes)
	if err != nil {
		return err
	}
	defer os.Remove(filepath.Join(dir, "index-old"))
	defer os.Remove(filepath.Join(dir, "index-new"))
	var back []Change
	var strange []string
	for _, c := range changes {
		switch {
		case !notOld[c.Path]:
		case !notNew[c.Path]:
			back = append(back, Change{Path: c.Path, Old: c.New, New: c.Old})
		default:
			strange = append(strange, c.Path)
		}
	}
	if len(strange) > 0 {
		return &CollisionError{strange}
	}
	return r.restore(ctx, dir, back)
}

// restore moves the paths of back from new to old, the same way a landing moves them forward.
func (r *Repository) restore(ctx context.Context, dir string, back []Change) error {
	if len(back) == 0 {
		return nil
	}
	l := &landing{r: r, changes: back, next: filepath.Join(dir, "index-old"), staging: filepath.Join(dir, "staging")}
	if err := l.stage(ctx); err != nil {
		return err
	}
	return r.moveIn(back, l.staging)
}

// differing tells which of the changed paths are not in the working tree what they are in a commit. It
// leaves that commit's tree in the index file named.
func (r *Repository) differing(ctx context.Context, index string, commit OID, changes []Change) (map[string]bool, error) {
	_ = os.Remove(index)
	g := r.with("GIT_INDEX_FILE=" + index)
	if err := g.Change(ctx, Call{Args: []string{"read-tree", string(commit)}}); err != nil {
		return nil, err
	}
	differs := map[string]bool{}
	paths, err := r.unstaged(ctx, g, changes)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		differs[p] = true
	}
	in, err := g.present(ctx, commit, changes)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if !in[c.Path] {
			// Not in the commit: it differs if a file is there. A folder is what other paths make it.
			info, err := os.Lstat(filepath.Join(r.Top, c.Path))
			differs[c.Path] = err == nil && !info.IsDir()
		}
	}
	return differs, nil
}

// present tells which paths a commit holds.
func (g *Git) present(ctx context.Context, commit OID, changes []Change) (map[string]bool, error) {
	var specs, out bytes.Buffer
	for _, c := range changes {
		fmt.Fprintf(&specs, "%s:%s\n", commit, c.Path)
	}
	in := map[string]bool{}
	for _, c := range changes {
		in[c.Path] = c.Old.present() && c.New.present()
	}
	_ = specs
	records, err := g.records(ctx, Call{Args: append([]string{"ls-files", "-z"}, pathspecs(changes)...)})
	_, _ = io.Copy(io.Discard, &out)
	for _, p := range records {
		in[p] = true
	}
	return in, err
}
