package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/walls"

	"golang.org/x/sys/unix"
)

// Names of the folders in Spec.Dir that a prison mounts.
const (
	Home          = "home"           // the agent's home
	HomeWork      = "home.work"      // work folder of overlayfs
	WorkspaceWork = "workspace.work" // work folder of overlayfs
	Lower         = "lower"          // the empty lower layer of both overlays
)

const (
	sharedAttr   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readOnlyAttr = sharedAttr | unix.MOUNT_ATTR_RDONLY
	privateFlags = unix.MS_NOSUID | unix.MS_NODEV
)

// hostDirs are descriptors of the host folders that a prison shares. The builder opens them while it still is the host's user, since the
// phantom could not reach them.
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
	if b.Shared || b.Spec.Alone {
		d.work = open(filepath.Join(b.Spec.Dir, WorkspaceWork))
		d.lower = open(filepath.Join(b.Spec.Dir, Lower))
	}
	if b.Shared {
		d.home = open(filepath.Join(b.Spec.Dir, Home))
		d.homeWork = open(filepath.Join(b.Spec.Dir, HomeWork))
	}
	return d, err
}

// buildRoot makes a new root on a memory file system and unmounts the host's.
func (b *builder) buildRoot() error {
	dirs, err := b.openHostDirs()
	if err != nil {
		return err
	}
	if err := b.openSources(); err != nil {
		return err
	}
	b.tap = -1
	if b.Spec.Network != prison.NetworkNone {
		b.tap, b.noDevice = usernet.OpenDevice()
	}
	if err := errors.Join(walls.BecomePhantom(b.Spec.UID, b.Spec.GID), b.endWithKeeper()); err != nil {
		return err
	}
	unix.Umask(0o022)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Any folder would do as the mount point: this process has its own copy of the host's mounts, and has opened all files below the
	// mount point that it needs.
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

// leaveHost makes the new root the only one, as pivot_root(2) describes under "pivot_root(".", ".")".
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

// seal makes a complete file system read-only, except for other file systems mounted in it.
func seal(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

// bind mounts the path in dir, with the mounts below it, at target.
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
	if !b.Shared && !b.Spec.Alone || b.Spec.ReadOnly {
		// With a second overlay over the same folder the result would be undefined, and only the real folder reports the agent's changes
		// to inotify(7).
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

// shareWritable mounts a host folder as the upper layer of an overlay above an empty layer. Both are given by
// descriptors, since mountinfo would show the host path of a bind mount. Where overlayfs cannot do that (an overlay
// below it, no extended attributes, different file systems), the folder becomes a bind mount.
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

// Try tries the steps of building a prison that some machines refuse. It runs in new namespaces with no other process.
func Try(uid, gid int) error {
	if err := walls.BecomePhantom(uid, gid); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("root", "/tmp", "tmpfs", privateFlags, ""); err != nil {
		return fmt.Errorf("mount memory file system: %w", err)
	}
	for _, name := range []string{"/tmp/proc", "/tmp/etc"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", "/tmp/proc", "proc", privateFlags, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return bind(unix.AT_FDCWD, "/etc", "/tmp/etc", readOnlyAttr)
}
