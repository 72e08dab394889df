package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// Folders of the host are shared through overlays of two layers: an empty one above the folder. Their files are other files than the
// host's. A bind mount could be read-only as well, but inotify(7) inside would report every program that the host starts, and flock(2)
// inside would block processes outside that lock the same file.

// shareSystem mounts the host's programs and libraries.
func (b *builder) shareSystem() error {
	if b.sources.root >= 0 {
		return b.shareRoot()
	}
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if err := b.shareAsIs("/"+name, name, ""); err != nil {
			return fmt.Errorf("share /%s: %w", name, err)
		}
	}
	return nil
}

// shareAsIs mounts a host path read-only at target. A symbolic link is copied, and a missing path is skipped. If an
// overlay of the path's folder is mounted, aside is the path in that overlay.
func (b *builder) shareAsIs(path, target, aside string) error {
	info, err := os.Lstat(path)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		link, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	case info.IsDir():
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		if aside != "" {
			return bind(unix.AT_FDCWD, aside, target, readOnlyAttr)
		}
		return b.shareFolder(path, target)
	case info.Mode().IsRegular():
		return b.shareSingle(path, target, info)
	}
	return nil
}

// maxParted is the largest number of parts of a folder that cannot be shared as a whole.
const maxParted = 64

// shareFolder mounts a folder with what is mounted below it. A mount below the folder may cover files, and then the
// kernel refuses an overlay of the whole folder. Such a folder gets an overlay for each part.
func (b *builder) shareFolder(path, target string) error {
	if !slices.ContainsFunc(b.mounts, func(m string) bool { return strings.HasPrefix(m, path+"/") }) {
		if err := b.shareOver(path, target); err != nil {
			return b.shareBound(path, target, err)
		}
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) > maxParted {
		return b.shareBound(path, target, errors.New("others are mounted in it"))
	}
	for _, e := range entries {
		if err := b.shareAsIs(filepath.Join(path, e.Name()), filepath.Join(target, e.Name()), ""); err != nil {
			return err
		}
	}
	return nil
}

// maxCopied is the largest size of a single file that is copied.
const maxCopied = 1 << 20

// shareSingle shares a file of a folder that is not shared as a whole. It copies the file, since an overlay of a
// file is impossible.
func (b *builder) shareSingle(path, target string, info os.FileInfo) error {
	var content []byte
	if info.Size() <= maxCopied {
		var err error
		if content, err = os.ReadFile(path); err != nil {
			return nil // a file that cannot be read is left out
		}
	}
	if err := os.WriteFile(target, content, info.Mode().Perm()); err != nil || info.Size() <= maxCopied {
		return err
	}
	return b.shareBound(path, target, errors.New("a single file"))
}

// shareOver mounts a folder through an overlay, without what is mounted below the folder.
func (b *builder) shareOver(path, target string) error {
	fd, err := layerAt(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return shareLayers(target, fd, b.empty)
}

// shareBound mounts a path by a bind mount, for use where an overlay is impossible.
func (b *builder) shareBound(path, target string, why error) error {
	if err := bind(unix.AT_FDCWD, path, target, readOnlyAttr); err != nil {
		return err
	}
	b.bound = append(b.bound, path)
	if b.boundWhy == nil {
		b.boundWhy = why
	}
	return nil
}

// tellBound records one weakness for all bind mounts.
func (b *builder) tellBound() error {
	if len(b.bound) == 0 {
		return nil
	}
	first, more := b.bound, ""
	if len(first) > 3 {
		first, more = first[:3], fmt.Sprintf(" and %d more", len(first)-3)
	}
	b.lacks(prison.SharedSystem, fmt.Sprintf("system files are not covered by an overlay (%s%s: %v): "+
		"inside one can watch the host use them, and lock them", strings.Join(first, ", "), more, b.boundWhy))
	return nil
}

// shareAside mounts an overlay of a folder at a place that nothing inside sees, as a source for parts of it. If
// that is impossible, it returns an empty path.
func (b *builder) shareAside(path string) (aside string) {
	aside = filepath.Join(layersName, "aside")
	if os.Mkdir(aside, 0o755) != nil || b.shareOver(path, aside) != nil {
		return ""
	}
	return aside
}

// mountPoints returns the paths of all mount points.
func mountPoints() (points []string, err error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	for line := range strings.Lines(string(mountinfo)) {
		before, _, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); len(fields) > 4 {
			points = append(points, unescapeMount(fields[4]))
		}
	}
	return points, nil
}

// unescapeMount decodes the octal escapes of proc_pid_mountinfo(5).
func unescapeMount(path string) string {
	var out strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(path[i])
	}
	return out.String()
}
