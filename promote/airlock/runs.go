package airlock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

// runsName is the file of the host state that the commands have locked together which run something in the prison to
// its end. There is something in it if one of them has started the prison, which the last one out then stops.
const runsName = "runs"

// Use keeps the prison from being stopped by another [Store.LastOut] until leave is called. It waits for one that is at it.
func (s Store) Use(ctx context.Context, id string) (leave func(), err error) {
	leave, err = lock(ctx, filepath.Join(s.Dir(id), runsName), os.O_RDWR|os.O_CREATE, unix.LOCK_SH)
	if gitops.NoRoom(err) {
		return func() {}, nil // there is no such file, and nobody is the last one out
	}
	return leave, err
}

// StopAfterUse says that the prison is to be stopped by the last one out, or that it is not.
func (s Store) StopAfterUse(id string, yes bool) error {
	name := filepath.Join(s.Dir(id), runsName)
	if !yes {
		err := os.Truncate(name, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	// Others may have it locked: it stays the same file.
	return os.WriteFile(name, []byte("stop\n"), 0o600)
}

// StopsAfterUse tells which of them was said.
func (s Store) StopsAfterUse(id string) bool {
	info, err := os.Stat(filepath.Join(s.Dir(id), runsName))
	return err == nil && info.Size() > 0
}

// LastOut reports whether nobody uses the prison, and keeps others from it until done is called: [ErrBusy].
func (s Store) LastOut(id string) (done func(), err error) {
	return lock(atOnce, filepath.Join(s.Dir(id), runsName), os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
}
