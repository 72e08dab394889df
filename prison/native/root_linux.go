package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// Names in Spec.Dir.
const (
	socketName  = "control"
	lockName    = "lock"
	stateName   = "state.json"
	commandName = "command.json"
	logName     = "command.log"

	homeWorkName = "home.work"      // overlayfs's scratch folder
	workName     = "workspace.work" // overlayfs's scratch folder
	lowerName    = "lower"          // the empty lower layer of both overlays
)

const (
	sharedAttr   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnlyAttr = sharedAttr | unix.MOUNT_ATTR_RDONLY
	privateFlags = unix.MS_NOSUID | unix.MS_NODEV
)

// baseFolder returns the folder above the two. The builder starts with it as working directory: root
// without capabilities over the host (the builder has them in its namespaces only) may not come down to
// it from / when it lies in somebody's closed home.
func baseFolder(s prison.Spec) string {
	base := filepath.Dir(s.Workspace)
	for {
		rel, err := filepath.Rel(base, s.Dir)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") || base == "/" {
			return base
		}
		base = filepath.Dir(base)
	}
}

// hostDirs are the folders of the host that a prison shares, opened while the process still is the
// host's user: the phantom could not reach them.
type hostDirs struct{ workspace, work, home, homeWork, lower int }

func (b *builder) openHostDirs() (d hostDirs, err error) {
	open := func(path string) int {
		path, relErr := filepath.Rel(b.Base, path)
		if relErr != nil && err == nil {
			err = relErr
		}
		fd, openErr := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if openErr != nil && err == nil {
			err = &os.PathError{Op: "open", Path: path, Err: openErr}
		}
		return fd
	}
	d.workspace = open(b.Spec.Workspace)
	if b.Shared {
		d.work = open(filepath.Join(b.Spec.Dir, workName))
		d.home = open(filepath.Join(b.Spec.Dir, homeName))
		d.homeWork = open(filepath.Join(b.Spec.Dir, homeWorkName))
		d.lower = open(filepath.Join(b.Spec.Dir, lowerName))
	}
	return d, err
}

// buildRoot makes a new root on a memory file system and leaves the host's behind.
func (b *builder) buildRoot() error {
	dirs, err := b.openHostDirs()
	if err != nil {
		return err
	}
	if err := b.openGiven(); err != nil {
		return err
	}
	if err := b.openTun(); err != nil {
		return err
	}
	if err := errors.Join(becomePhantom(b.Spec.UID, b.Spec.GID), b.endWithKeeper()); err != nil {
		return err
	}
	unix.Umask(0o022)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Any folder would do as the place: it is our own copy of the host's mounts, and what is covered
	// here has been opened already.
	const place = "/tmp"
	if err := unix.Mount("root", place, "tmpfs", privateFlags, "mode=0755,size=16m"); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	if err := unix.Chdir(place); err != nil {
		return err
	}
	if b.mounts, err = mountPoints(); err != nil {
		return err
	}
	if err := b.withLayers(
		b.shareSystem,
		b.makeEtc,
		b.makeDev,
		b.makeScratch,
		b.completeRoot,
		b.shareTools,
		func() error { return b.shareWorkspace(dirs) },
		func() error { return b.shareHome(dirs) },
		b.makeProc,
		b.hideProgram,
		b.tellBound,
	); err != nil {
		return err
	}
	return leaveHost()
}

// leaveHost makes the new root the only one: pivot_root(2), "pivot_root(".", ".")".
func leaveHost() error {
	if err := os.Remove(emptyName); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach host root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return seal("/")
}

// seal makes a file system that is complete read-only, and leaves those mounted on it as they are.
func seal(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

// bind shows what dir and path name, with the mounts below it, at target.
func bind(dir int, path, target string, attrs uint64) error {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_EMPTY_PATH
	tree, err := unix.OpenTree(dir, path, flags)
	if err != nil {
		return fmt.Errorf("copy mount: %w", err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: attrs}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("set mount attributes: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach mount: %w", err)
	}
	return nil
}

func (b *builder) shareWorkspace(d hostDirs) error {
	target := strings.TrimPrefix(prison.Workspace, "/")
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	attr := uint64(sharedAttr)
	if b.Spec.ReadOnly {
		attr = readOnlyAttr
	}
	if !b.Shared || b.Spec.ReadOnly {
		// A second overlay over the same folder would be undefined behaviour, and only the real
		// folder reports the agent's changes to inotify(7).
		if err := bind(d.workspace, "", target, attr); err != nil {
			return fmt.Errorf("mount workspace: %w", err)
		}
		return nil
	}
	return b.shareWritable("the workspace's", target, d.workspace, d.work, d.lower)
}

func (b *builder) shareHome(d hostDirs) error {
	target := b.home()
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if !b.Shared || b.Spec.ReadOnly {
		return mountTmpfs(target, b.Spec, "0700")
	}
	return b.shareWritable("the home's", target, d.home, d.homeWork, d.lower)
}

func (b *builder) home() string { return "home/" + b.Spec.User }

// shareWritable mounts a host folder as the upper layer of an overlay over an empty one, given by
// descriptors, since mountinfo would show the host path of a bind mount. Where overlayfs
// cannot (its own kind below, no extended attributes, another file system), it is a bind mount.
func (b *builder) shareWritable(whose, target string, dir, work, lower int) error {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", fdPath(lower), fdPath(dir), fdPath(work))
	overlayErr := unix.Mount("shared", target, "overlay", privateFlags, options)
	if overlayErr == nil {
		return nil
	}
	if err := bind(dir, "", target, sharedAttr); err != nil {
		return fmt.Errorf("mount %s: overlay: %w, bind: %w", target, overlayErr, err)
	}
	b.lacks(prison.HostPath, fmt.Sprintf("%s host path is visible in mountinfo (overlay: %v)", whose, overlayErr))
	return nil
}

func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
