package airlock

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

// runsName is a file of the host state. Each command that runs something in the prison holds a shared lock on this file. If one of these
// commands has started the prison, the file has content, and the last of the commands stops the prison.
const runsName = "runs"

// Use keeps [Store.LockUnused] from stopping the prison until leave is called. It waits while another process is inside
// LockUnused.
func (s Store) Use(ctx context.Context, id string) (leave func(), err error) {
	leave, err = s.lock(ctx, filepath.Join(s.Dir(id), runsName), os.O_RDWR|os.O_CREATE, unix.LOCK_SH, nil)
	if gitops.NoRoom(err) {
		return func() {}, nil // without the file, LockUnused fails as well, and no command stops the prison
	}
	return leave, err
}

// StopAfterUse records whether the last command that uses the prison must stop it.
func (s Store) StopAfterUse(id string, yes bool) error {
	name := filepath.Join(s.Dir(id), runsName)
	if !yes {
		return gitops.Unless(os.Truncate(name, 0), fs.ErrNotExist)
	}
	// Other processes may have the file locked, so it must stay the same file.
	return os.WriteFile(name, []byte("stop\n"), 0o600)
}

// StopsAfterUse reports the value that StopAfterUse recorded.
func (s Store) StopsAfterUse(id string) bool {
	info, err := os.Stat(filepath.Join(s.Dir(id), runsName))
	return err == nil && info.Size() > 0
}

// LockUnused checks that no command uses the prison, and keeps others from using it until done is called. If one uses
// it, it returns [ErrBusy].
func (s Store) LockUnused(id string) (done func(), err error) {
	return s.lock(atOnce, filepath.Join(s.Dir(id), runsName), os.O_RDWR|os.O_CREATE, unix.LOCK_EX, nil)
}
