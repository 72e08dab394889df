package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hosttree"

	"golang.org/x/sys/unix"
)

// folderTask is work on the phantom's folders. Root does it itself; everybody else in a user
// namespace in which they are uid 0, the phantom is itself, and nobody else exists.
type folderTask struct {
	UID, GID int
	Make     []string // made mode 0700 and owned by the phantom; existing ones are errors
	Remove   []string
	Trial    bool // nothing but an attempt at what every prison needs
}

func (t folderTask) pack() folderTask {
	t.Make, t.Remove = packAll(t.Make), packAll(t.Remove)
	return t
}

func (t folderTask) run() error {
	if t.Trial {
		return tryNamespaces(t.UID, t.GID)
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

// do runs the task with the power over the phantom's files. A helper inherits the lock and holds it to its end, so that
// nobody believes its work done, or undone, when only who asked for it was killed.
func (t folderTask) do(ctx context.Context, lock *os.File) error {
	if len(t.Make)+len(t.Remove) == 0 {
		return nil
	}
	if os.Geteuid() == 0 {
		return t.run()
	}
	return child{
		role: roleHelper, config: t.pack(), namespaces: unix.CLONE_NEWUSER,
		uids:  []mapping{{0, os.Getuid()}, {t.UID, t.UID}},
		gids:  []mapping{{0, os.Getgid()}, {t.GID, t.GID}},
		files: []*os.File{lock},
	}.help(ctx)
}

// help starts a helper and waits for it to be done.
func (c child) help(ctx context.Context) error {
	p, link, err := c.start()
	if err != nil {
		return err
	}
	defer p.Wait()
	defer link.Close()
	defer context.AfterFunc(ctx, func() { p.Kill() })()
	if _, err := awaitReady(link, nil); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

func helperMain(config []byte, _ int) int {
	link, err := fileConn(inheritedFile(0))
	if err != nil {
		return 1
	}
	if _, err := link.recv(&announcement{}); err != nil {
		return 1
	}
	var t folderTask
	if err = json.Unmarshal(config, &t); err == nil {
		t.Make, t.Remove = unpackAll(t.Make), unpackAll(t.Remove)
		err = t.run()
	}
	var a announcement
	if err != nil {
		a.Error = err.Error()
	}
	link.send(a)
	return 0
}

// ownFolders are the phantom's folders in Spec.Dir.
var ownFolders = []string{homeName, homeWorkName, workName}

// Prepare implements [prison.Backend].
func (backend) Prepare(ctx context.Context, s prison.Spec) error {
	if err := check(s); err != nil {
		return err
	}
	if err := checkIDs(s); err != nil {
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

// ensureFolders makes what a start needs and a Wipe or an older version did not leave.
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
	lower := filepath.Join(s.Dir, lowerName)
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
	for _, name := range append(ownFolders, lowerName, commandName, logName) {
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
	if err := os.Remove(filepath.Join(s.Dir, lockName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("wipe: %w", err) // the last thing: until here it keeps others away
	}
	return nil
}
