package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hosttree"
	"github.com/git-airlock/git-airlock/prison/native/inside"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"golang.org/x/sys/unix"
)

// folderTask is work on the phantom's folders. Root does the work itself. For other users, a helper does the work
// in a user namespace in which the user is uid 0, the phantom has its own uid, and no other uids exist.
type folderTask struct {
	UID, GID int
	Make     []string // folders to create with mode 0700, owned by the phantom; an existing one is an error
	Remove   []string // folders to remove with everything in them
	Trial    bool     // only try the steps that every prison needs
	Pair     bool     // only try to make a pair of interfaces
}

func (t folderTask) run() error {
	if t.Trial {
		return inside.Try(t.UID, t.GID)
	}
	if t.Pair {
		_, err := usernet.MakePair()
		return err
	}
	for _, path := range t.Make {
		if err := makeOwned(path, t.UID, t.GID); err != nil {
			return err
		}
	}
	var errs []error
	for _, path := range t.Remove {
		errs = append(errs, hosttree.Remove(path))
	}
	return errors.Join(errs...)
}

func makeOwned(path string, uid, gid int) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if err := os.Lchown(path, uid, gid); err != nil {
		os.Remove(path)
		return err
	}
	return nil
}

// do runs the task with access to the phantom's files. A helper inherits the lock and holds it until it ends. So
// the lock is not free while the work is incomplete, even if the process that started the helper is killed.
func (t folderTask) do(ctx context.Context, lock *os.File) error {
	if len(t.Make)+len(t.Remove) == 0 {
		return nil
	}
	if os.Geteuid() == 0 {
		return t.run()
	}
	if err := walls.CheckIDs(prison.Spec{UID: t.UID, GID: t.GID}); err != nil {
		return err
	}
	t.Make, t.Remove = wire.PackAll(t.Make), wire.PackAll(t.Remove)
	return walls.Child{
		Role: wire.Helper, Config: t, Namespaces: unix.CLONE_NEWUSER,
		UIDs:  []walls.Mapping{{Inside: 0, Outside: os.Getuid()}, {Inside: t.UID, Outside: t.UID}},
		GIDs:  []walls.Mapping{{Inside: 0, Outside: os.Getgid()}, {Inside: t.GID, Outside: t.GID}},
		Files: []*os.File{lock},
	}.Help(ctx)
}

func helperMain(link wire.Conn, t folderTask) int {
	if _, err := link.Recv(&wire.Announcement{}); err != nil {
		return 1
	}
	t.Make, t.Remove = wire.UnpackAll(t.Make), wire.UnpackAll(t.Remove)
	var a wire.Announcement
	if err := t.run(); err != nil {
		a = wire.Failed(err)
	}
	link.Send(a)
	return 0
}

// ownFolders are the phantom's folders in Spec.Dir.
var ownFolders = []string{inside.Home, inside.HomeWork, inside.WorkspaceWork}

// Prepare implements [prison.Backend].
func (backend) Prepare(ctx context.Context, s prison.Spec) error {
	if err := check(s); err != nil {
		return err
	}
	lock, err := lockStopped(s.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	t, err := missingFolders(s)
	if err != nil {
		return err
	}
	t.Make = append([]string{s.Workspace}, t.Make...)
	if err := t.do(ctx, lock); err != nil {
		return fmt.Errorf("make workspace: %w", err)
	}
	return nil
}

// ensureFolders creates folders that a start needs and that are missing after a Wipe.
func ensureFolders(ctx context.Context, s prison.Spec) error {
	t, err := missingFolders(s)
	if err != nil || len(t.Make) == 0 {
		return err
	}
	lock, err := lockStopped(s.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := t.do(ctx, lock); err != nil {
		return fmt.Errorf("make home: %w", err)
	}
	return nil
}

// lockStopped takes the lock of a prison that does not run.
func lockStopped(dir string) (*os.File, error) {
	lock, err := tryLock(dir)
	if err == nil && lock == nil {
		err = errRunning
	}
	return lock, err
}

func missingFolders(s prison.Spec) (t folderTask, err error) {
	t = folderTask{UID: s.UID, GID: s.GID}
	if s.ReadOnly {
		return t, nil
	}
	for _, name := range ownFolders {
		path := filepath.Join(s.Dir, name)
		if _, err := os.Lstat(path); err != nil {
			t.Make = append(t.Make, path)
		}
	}
	lower := filepath.Join(s.Dir, inside.Lower)
	if err := os.Mkdir(lower, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return t, err
	}
	return t, os.Chmod(lower, 0o755)
}

// Wipe implements [prison.Backend].
func (backend) Wipe(ctx context.Context, s prison.Spec) error {
	lock, err := tryLock(s.Dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("wipe: %w", err)
	case err == nil && lock == nil:
		return errors.New("wipe: the prison is running")
	case lock != nil:
		defer lock.Close()
	}
	t := folderTask{UID: s.UID, GID: s.GID}
	paths := []string{s.Workspace}
	for _, name := range slices.Concat(ownFolders, []string{inside.Lower, commandName, logName, timesName}, execs.Files) {
		paths = append(paths, filepath.Join(s.Dir, name))
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			t.Remove = append(t.Remove, path)
		}
	}
	if err := t.do(ctx, lock); err != nil {
		return fmt.Errorf("wipe: %w", err)
	}
	walls.Sweep(s)
	if err := os.Remove(filepath.Join(s.Dir, lockName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("wipe: %w", err) // last, since until now the lock keeps other processes away
	}
	return nil
}

// Probe implements [prison.Backend]. It first checks for known reasons. Then it creates the namespaces for a moment, since some obstacles
// (a container's filter, AppArmor) appear only when a process tries.
func (backend) Probe(ctx context.Context) error {
	if err := walls.CheckKernel(); err != nil {
		return err
	}
	err := try(ctx, folderTask{Trial: true})
	var u *prison.Unavailable
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.As(err, &u):
		return walls.RefusedBy(err)
	}
	return err
}

// ProbeOf implements [prison.Backend].
func (b backend) ProbeOf(ctx context.Context, s prison.Spec) error {
	if err := walls.CheckIDs(s); err != nil {
		return err
	}
	return b.Probe(ctx)
}

// try runs a trial task in new namespaces, with the ids of a trial phantom.
func try(ctx context.Context, t folderTask) (err error) {
	if t.UID, t.GID, err = walls.TrialPhantom(); err != nil {
		return err
	}
	return walls.Child{
		Role: wire.Helper, Config: t, Namespaces: walls.Namespaces,
		UIDs: []walls.Mapping{{Inside: t.UID, Outside: t.UID}}, GIDs: []walls.Mapping{{Inside: t.GID, Outside: t.GID}},
	}.Help(ctx)
}

// tryPair tries to make a pair of interfaces, which replaces a TUN device. Some kernels cannot do that. It tries once in each process.
var tryPair = sync.OnceValue(func() error { return try(context.Background(), folderTask{Pair: true}) })
