package native

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// programName is what no file inside may be called.
const programName = "git-airlock"

// installedAt are the places below /usr and /usr/local where an installation puts files.
var installedAt = []string{
	"bin/" + programName, "sbin/" + programName, "lib/git-core/" + programName, "libexec/git-core/" + programName,
	"share/man/man1/" + programName + ".1", "share/man/man1/" + programName + ".1.gz", "share/doc/" + programName,
	"share/bash-completion/completions/" + programName, "share/zsh/site-functions/_" + programName,
	"share/zsh/vendor-completions/_" + programName, "share/fish/vendor_completions.d/" + programName + ".fish",
}

// hideProgram removes this program's files from the shared folders' view. A file mounted over one of
// them would show its name in mountinfo, so the folder gets an overlay with whiteouts instead.
func (b *builder) hideProgram() error {
	hidden := map[string]map[string]bool{} // folder to names
	for _, prefix := range []string{"usr", "usr/local"} {
		for _, place := range installedAt {
			path := filepath.Join(prefix, place)
			if _, err := os.Lstat(path); err == nil {
				if err := collectNames(hidden, filepath.Dir(path)); err != nil {
					return err
				}
			}
		}
	}
	if own, ok := b.ownName(); ok {
		folder := filepath.Dir(own)
		if hidden[folder] == nil {
			hidden[folder] = map[string]bool{}
		}
		hidden[folder][filepath.Base(own)] = true
	}
	if len(hidden) == 0 {
		return nil
	}
	return whiteOutAll(hidden)
}

// whiteOutAll keeps the layers with the names on a file system of their own that nothing inside sees:
// an overlay holds on to its layers.
func whiteOutAll(hidden map[string]map[string]bool) error {
	const layers = ".layers"
	if err := os.Mkdir(layers, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", layers, "tmpfs", privateFlags, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mount layers: %w", err)
	}
	n := 0
	for folder, names := range hidden {
		n++
		if err := whiteOut(folder, names, fmt.Sprintf("%s/%d", layers, n)); err != nil {
			return fmt.Errorf("hide program in /%s: %w", folder, err)
		}
	}
	if err := unix.Unmount(layers, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount layers: %w", err)
	}
	return os.Remove(layers)
}

func collectNames(hidden map[string]map[string]bool, folder string) error {
	if hidden[folder] != nil {
		return nil
	}
	hidden[folder] = map[string]bool{}
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if strings.Contains(e.Name(), programName) {
			hidden[folder][e.Name()] = true
		}
	}
	return err
}

// ownName returns where this program's own file, whatever its name, is inside, if it is there.
func (b *builder) ownName() (path string, shared bool) {
	exe, err := os.Readlink(fdPath(b.exe))
	if err != nil {
		return "", false
	}
	path = strings.TrimPrefix(exe, "/")
	for _, root := range []string{"usr/", "bin/", "sbin/", "lib/", "lib32/", "lib64/", "libx32/"} {
		if strings.HasPrefix(path, root) {
			_, err := os.Lstat(path)
			return path, err == nil
		}
	}
	return "", false
}

// whiteOut covers a folder by an overlay in which the names do not exist. The character device 0:0
// is the whiteout that needs no privilege (mknod(2)).
func whiteOut(folder string, names map[string]bool, layer string) error {
	if err := os.Mkdir(layer, 0o755); err != nil {
		return err
	}
	for name := range names {
		if err := unix.Mknod(filepath.Join(layer, name), unix.S_IFCHR, 0); err != nil {
			return err
		}
	}
	upper, err := unix.Open(layer, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(upper)
	lower, err := unix.Open(folder, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(lower)
	options := fmt.Sprintf("lowerdir=%s:%s,userxattr", fdPath(upper), fdPath(lower))
	return unix.Mount("shared", folder, "overlay", privateFlags|unix.MS_RDONLY, options)
}
