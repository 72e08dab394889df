package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// sources holds the descriptors of the root file system and the tools in a spec.
type sources struct {
	root  int // -1 if the system folders are the host's
	tools []tool
}

// tool is a tool of the spec.
type tool struct {
	prison.Tool
	single bool // the tool is a single file
	asIs   int  // the tool itself
	folder int  // the tool, or the folder of a single file
}

// openSources opens the root file system and the tools while this process is still the host's user, see [hostDirs].
func (b *builder) openSources() error {
	b.sources.root = -1
	if b.Spec.Root != "" {
		fd, err := layerAt(b.Spec.Root)
		if err != nil {
			return err
		}
		b.sources.root = fd
	}
	for _, given := range b.Spec.Tools {
		info, err := os.Stat(given.Path)
		if err != nil {
			return err
		}
		t, path := tool{Tool: given, single: !info.IsDir()}, given.Path
		if t.single {
			path = filepath.Dir(path)
		}
		if t.folder, err = layerAt(path); err != nil {
			return err
		}
		if t.asIs, err = unix.Open(t.Path, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return &os.PathError{Op: "open", Path: t.Path, Err: err}
		}
		b.sources.tools = append(b.sources.tools, t)
	}
	return nil
}

func layerAt(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// layersName is a folder for the layers of overlays. It exists while the root is built.
const layersName = ".layers"

// withLayers runs the steps with a folder for the layers of overlays. The folder is on a file system of its own,
// since an overlay keeps the file system of its layers in use. The folder is not visible inside afterwards.
func (b *builder) withLayers(steps ...func() error) (err error) {
	if err := os.Mkdir(layersName, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", layersName, "tmpfs", privateFlags, "mode=0755,size=4m"); err != nil {
		return fmt.Errorf("mount layers: %w", err)
	}
	if b.empty, err = openLayer(filepath.Join(layersName, "empty")); err != nil {
		return err
	}
	defer unix.Close(b.empty)
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := unix.Unmount(layersName, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount layers: %w", err)
	}
	return os.Remove(layersName)
}

// shareLayers mounts folders given by descriptors, the first of them on top, read-only at target. mountinfo shows
// no path of a layer.
func shareLayers(target string, layers ...int) error {
	paths := make([]string, len(layers))
	for i, fd := range layers {
		paths[i] = fdPath(fd)
	}
	options := "lowerdir=" + strings.Join(paths, ":") + ",userxattr"
	return unix.Mount("shared", target, "overlay", privateFlags|unix.MS_RDONLY, options)
}

// openLayer makes an empty layer.
func openLayer(path string) (int, error) {
	if err := os.Mkdir(path, 0o755); err != nil {
		return -1, err
	}
	return layerAt(path)
}

// notOfRoot are the folders of a given root file system that the prison replaces by its own.
var notOfRoot = []string{"dev", "proc", "sys", "tmp", "run", "home", "root", "mnt", "media", "boot", "lost+found", "etc", "var",
	strings.TrimPrefix(prison.Workspace, "/"), strings.TrimPrefix(prison.Tools, "/")}

// shareRoot mounts the programs and libraries of a given root file system.
func (b *builder) shareRoot() error {
	entries, err := os.ReadDir(fdPath(b.sources.root))
	if err != nil {
		return fmt.Errorf("read root: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if slices.Contains(notOfRoot, name) {
			continue
		}
		switch {
		case e.Type()&os.ModeSymlink != 0:
			link, err := os.Readlink(filepath.Join(fdPath(b.sources.root), name))
			if err != nil {
				return err
			}
			if err := os.Symlink(link, name); err != nil {
				return err
			}
		case e.IsDir():
			if err := b.shareOfRoot(name, b.empty); err != nil {
				return fmt.Errorf("share /%s: %w", name, err)
			}
		}
	}
	return nil
}

func (b *builder) shareOfRoot(name string, above int) error {
	if err := os.Mkdir(name, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	fd, err := unix.Openat(b.sources.root, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = shareLayers(name, above, fd)
	if err == nil || above != b.empty {
		return err
	}
	if bindErr := bind(fd, "", name, readOnlyAttr); bindErr != nil {
		return fmt.Errorf("overlay: %w, bind: %w", err, bindErr)
	}
	b.lacks(prison.HostPath, fmt.Sprintf("the host path of the root's /%s is visible in mountinfo (overlay: %v)", name, err))
	return nil
}

// completeRoot adds the files of the given root to /etc and /var, above which the files made for the prison stay
// visible.
func (b *builder) completeRoot() error {
	if b.sources.root < 0 {
		return nil
	}
	for _, name := range []string{"etc", "var"} {
		own, err := layerAt(name)
		if err != nil {
			return err
		}
		err = b.shareOfRoot(name, own)
		unix.Close(own)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("complete /%s: %w", name, err)
		}
	}
	return nil
}

// target returns the path of a tool while the root is built.
func (t tool) target() string { return filepath.Join(strings.TrimPrefix(prison.Tools, "/"), t.Name) }

// shareTools mounts the given tools.
func (b *builder) shareTools() error {
	if len(b.sources.tools) == 0 {
		return nil
	}
	if err := os.Mkdir(strings.TrimPrefix(prison.Tools, "/"), 0o755); err != nil {
		return err
	}
	for i, t := range b.sources.tools {
		if err := b.shareTool(t, fmt.Sprintf("%s/tool%d", layersName, i)); err != nil {
			return fmt.Errorf("share tool %s: %w", t.Name, err)
		}
	}
	return nil
}

// shareTool mounts a tool through an overlay. The kernel refuses to use a folder as a layer if something is mounted
// in it (EINVAL, see clone_private_mount in fs/namespace.c), which is likely for /tmp. Such a folder becomes a bind
// mount. aside is a place for the overlay of a single file's folder.
func (b *builder) shareTool(t tool, aside string) (err error) {
	target := t.target()
	var overlayErr error
	if t.single {
		if err := os.WriteFile(target, nil, 0o755); err != nil {
			return err
		}
		overlayErr = b.shareFile(filepath.Base(t.Path), target, aside, t.folder)
	} else {
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		overlayErr = shareLayers(target, b.empty, t.folder)
	}
	if overlayErr == nil {
		return nil
	}
	if err := bind(t.asIs, "", target, readOnlyAttr); err != nil {
		return fmt.Errorf("overlay: %w, bind: %w", overlayErr, err)
	}
	b.lacks(prison.HostPath, fmt.Sprintf("the host path of the tool %s is visible in mountinfo (overlay: %v)", t.Name, overlayErr))
	return nil
}

// shareFile mounts one file of a folder, through an overlay at aside that is unmounted afterwards, so that the
// other files are never visible.
func (b *builder) shareFile(name, target, aside string, folder int) error {
	if err := os.Mkdir(aside, 0o755); err != nil {
		return err
	}
	if err := shareLayers(aside, b.empty, folder); err != nil {
		return err
	}
	return bind(unix.AT_FDCWD, filepath.Join(aside, name), target, readOnlyAttr)
}
