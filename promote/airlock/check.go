package airlock

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/identity"
)

// NoID takes the place of an airlock's id in a check without an airlock. Its host state has no record, and exists only during the check.
const NoID = "check"

// CheckLock is the lock of an airlock's checks in its host state.
const CheckLock = "check.lock"

// LockCheck lets one check at a time run for an airlock, and one in the repository without an airlock. The latter uses flock(2) on a
// folder of git's, so that it leaves no lock file behind.
func (s Store) LockCheck(ctx context.Context, id string) (unlock func(), err error) {
	if id == NoID {
		return s.lock(ctx, filepath.Join(s.repo.CommonDir, "objects"), os.O_RDONLY, unix.LOCK_EX, nil)
	}
	return s.LockFile(ctx, id, CheckLock)
}

// LockTest lets one self-test at a time run in the prison of an airlock: two would take each other's processes for an agent's or the
// host's. It uses flock(2) on the airlock's folder in the host state, so that it works where nothing can be written.
func (s Store) LockTest(ctx context.Context, id string) (unlock func(), err error) {
	return s.lock(ctx, s.Dir(id), os.O_RDONLY, unix.LOCK_EX, nil)
}

// TryLockCheck is like LockCheck, but returns [ErrBusy] instead of waiting.
func (s Store) TryLockCheck(id string) (unlock func(), err error) { return s.LockCheck(atOnce, id) }

// CheckPhantom returns the user id and the group id for the processes of a check. No airlock uses these ids. If the user has no ids left,
// CheckPhantom returns those of the record.
func (s Store) CheckPhantom(r Record) (identity.Phantom, error) {
	others, err := s.List()
	if err != nil {
		return r.Phantom, err
	}
	p, err := newPhantom(r, others)
	if err != nil && r.Phantom != (identity.Phantom{}) {
		return r.Phantom, nil
	}
	return p, err
}

// RemoveNoID removes the empty folder of a check without an airlock, and the folder above it if there are no airlocks.
func (s Store) RemoveNoID() {
	_ = os.Remove(s.Dir(NoID))
	if unlock, err := s.TryLock(); err == nil { // otherwise a start may be making a folder there
		_ = os.Remove(s.root())
		unlock()
	}
}
