package airlock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/identity"
)

// Store reads and writes the records of a repository's airlocks.
type Store struct {
	repo    *gitops.Repository
	waiting Waiting // may be nil
}

// Open returns the store of a repository, seen from one of its worktrees.
func Open(repo *gitops.Repository) Store { return Store{repo: repo} }

func (s Store) root() string { return filepath.Join(s.repo.CommonDir, "airlock") }

// Ours reports whether the repository has airlocks and the current user owns them.
func (s Store) Ours() bool {
	info, err := os.Stat(s.root())
	return err == nil && gitops.OwnedByUs(info)
}

// Foreign returns the user who owns the airlocks, if that is another user and it matters: root may do everything, and
// other users cannot read them. (Some file systems report one owner for all files.)
func (s Store) Foreign() (uid int, yes bool) {
	var st unix.Stat_t
	if unix.Stat(s.root(), &st) != nil || int(st.Uid) == os.Geteuid() {
		return 0, false
	}
	const all = unix.R_OK | unix.W_OK | unix.X_OK
	return int(st.Uid), os.Geteuid() == 0 || unix.Access(s.root(), all) != nil
}

// Dir returns the host state of one airlock.
func (s Store) Dir(id string) string { return filepath.Join(s.root(), id) }

// RestoreFile is the journal of a restore of the workspace in the host state. It exists from before the first change until the prison's
// processes go on.
const RestoreFile = "restore.json"

// ErrRestoring reports that a restore of the workspace was interrupted and has not been finished yet.
var ErrRestoring = errors.New("a restore of the workspace was interrupted, and could not be finished yet")

// Restoring reports whether a restore of the workspace is running, or was interrupted.
func (s Store) Restoring(id string) bool {
	_, err := os.Lstat(filepath.Join(s.Dir(id), RestoreFile))
	return err == nil
}

func (s Store) file(id string) string { return filepath.Join(s.Dir(id), "state.json") }

// List returns every airlock of the repository whose record can be read. [Store.Damaged] returns the others.
func (s Store) List() ([]Record, error) {
	records, _, err := s.read()
	return records, err
}

// Here returns the airlock of this worktree, or nil if there is none. The error is a [DamagedError] if its record cannot be read.
func (s Store) Here() (*Record, error) {
	records, damaged, err := s.read()
	for _, r := range records {
		if r.Worktree == s.repo.WorktreeID() {
			return &r, err
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, s.damagedHere(damaged)
}

// newSuffix ends the names of files that are not renamed into place yet.
const newSuffix = ".new"

// Sweep removes the remains of a start, stop or clear that was killed between two writes: folders without a record,
// and files that were not renamed into place. It leaves files of an agent that this user cannot remove, see [Store.Unrecorded]. The caller
// holds Lock.
func (s Store) Sweep() error {
	remains := gitops.Glob(s.root(), "*"+newSuffix)
	ids, err := s.Unrecorded()
	for _, id := range ids {
		remains = append(remains, s.Dir(id))
	}
	for _, path := range remains {
		if err := os.RemoveAll(path); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if err != nil {
		return err
	}
	// This fails while other airlocks exist, as it should. After the last one, nothing is left.
	_ = os.Remove(s.root())
	return nil
}

// Unrecorded returns the names of the folders in the host state that have no record.
func (s Store) Unrecorded() (ids []string, err error) {
	entries, err := os.ReadDir(s.root())
	if err != nil {
		return nil, gitops.Unless(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != NoID && missing(s.file(e.Name())) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Save writes a record.
func (s Store) Save(r Record) error {
	content, err := encode(r)
	if err != nil {
		return err
	}
	err = durable.WriteFile(s.file(r.ID), content, 0o600)
	if gitops.NoRoom(err) {
		return s.overwrite(r.ID, content, err)
	}
	return err
}

// overwrite replaces a record in place, for a full disk that has no room for a second file. It only accepts a record
// of the same length, which differs in one word: "running" and "stopped" have the same length, and a crash cannot
// leave a mixture of them.
func (s Store) overwrite(id string, content []byte, cause error) error {
	f, err := os.OpenFile(s.file(id), os.O_RDWR, 0)
	if err != nil {
		return cause
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() != int64(len(content)) {
		return cause
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return cause
	}
	return f.Sync()
}

// Create records a new airlock as starting, and hides its workspace from the user's git. It chooses the workspace's
// name, the id and the phantom, so that no other airlock has them.
func (s Store) Create(ctx context.Context, r Record) (Record, error) {
	refs, err := s.repo.Refs(ctx, "refs/airlock")
	if err != nil {
		return r, err
	}
	others, err := s.List()
	if err != nil {
		return r, err
	}
	if r.Phantom, err = newPhantom(r, others); err != nil {
		return r, err
	}
	r.Workspace, r.ID, err = identity.WorkspaceName(func(id string) bool { return s.idTaken(id, refs) })
	if err != nil {
		return r, err
	}
	r.Phase = Starting
	if err := os.MkdirAll(s.Dir(r.ID), 0o700); err != nil {
		return r, err
	}
	// The parent folder also gets these permissions, whatever the umask and core.sharedRepository would set.
	if err := errors.Join(os.Chmod(s.root(), 0o700), os.Chmod(s.Dir(r.ID), 0o700), s.Save(r)); err != nil {
		return r, err
	}
	_, err = s.Exclude(r)
	return r, err
}

// newPhantom chooses a phantom from the user's own ids if there are any. It does so for a container as well, because the host can then read
// the workspace without the engine.
func newPhantom(r Record, others []Record) (identity.Phantom, error) {
	taken := func(uid int) bool {
		return slices.ContainsFunc(others, func(r Record) bool { return r.Phantom.UID == uid || r.Phantom.GID == uid })
	}
	p, err := identity.NewPhantom(taken)
	if _, ok := errors.AsType[*identity.NoRange](err); ok && r.Image != "" {
		return identity.NewEnginePhantom(taken)
	}
	return p, err
}

func (s Store) idTaken(id string, refs map[string]gitops.OID) bool {
	if _, err := os.Lstat(s.Dir(id)); err == nil {
		return true
	}
	for _, name := range []string{"base", "promoted", "pending"} {
		if _, ok := refs[refsOf(id)+"/"+name]; ok {
			return true
		}
	}
	return len(gitops.Glob(s.repo.Top, ".*-"+id)) > 0
}

// Remove removes every trace of an airlock except its workspace: refs, the exclude line, the host state. It can be
// repeated after an interruption, because it removes the record last. The caller holds Lock.
func (s Store) Remove(ctx context.Context, r Record) error {
	refs, err := s.repo.Refs(ctx, refsOf(r.ID))
	if err != nil {
		return err
	}
	var updates []gitops.RefUpdate
	for name, at := range refs {
		updates = append(updates, gitops.RefUpdate{Ref: name, Old: at})
	}
	if len(updates) > 0 {
		if err := s.repo.UpdateRefs(ctx, "airlock: clear", updates...); err != nil {
			return fmt.Errorf("remove the refs of airlock %s: %w", r.ID, err)
		}
	}
	if r.Inside {
		if err := s.unexclude(r.Workspace); err != nil {
			return err
		}
	}
	return s.removeState(r.ID)
}

// removeBusy removes a folder, and tries again if the folder is not empty at the end: a process that checks whether something runs may
// have created a lock file in it meanwhile.
func removeBusy(dir string) (err error) {
	for range 20 {
		if err = os.RemoveAll(dir); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

func (s Store) removeState(id string) error {
	dir := s.Dir(id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == filepath.Base(s.file(id)) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := removeBusy(dir); err != nil {
		return err
	}
	return s.Sweep()
}
