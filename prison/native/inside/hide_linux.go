package inside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// programName must not occur in the name of any file inside.
const programName = "git-airlock"

// installedAt are the places below /usr and /usr/local in which an installation puts files. If one of them exists, all files in its
// folder with programName in their names are hidden.
var installedAt = []string{
	"bin/" + programName, "sbin/" + programName, "lib/git-core/" + programName, "libexec/git-core/" + programName,
	"share/man/man1/" + programName + ".1", "share/man/man1/" + programName + ".1.gz", "share/doc/" + programName,
	"share/man/man7/" + programName + "-recipe.7", "share/man/man7/" + programName + "-recipe.7.gz",
	"share/bash-completion/completions/" + programName, "share/zsh/site-functions/_" + programName,
	"share/zsh/vendor-completions/_" + programName, "share/fish/vendor_completions.d/" + programName + ".fish",
	"share/fish/vendor_conf.d/" + programName + ".fish", "share/" + programName,
}

// hideProgram hides this program's files in the shared folders. A file mounted over one of them would show its name
// in mountinfo, so the folder gets an overlay with whiteouts instead.
func (b *builder) hideProgram() error {
	hidden := map[string]map[string]bool{} // the names to hide, by folder
	prefixes := []string{"usr", "usr/local"}
	for _, t := range b.sources.tools {
		if !t.single {
			prefixes = append(prefixes, t.target())
		}
	}
	for _, prefix := range prefixes {
		for _, place := range append(installedAt, programName) {
			path := filepath.Join(prefix, place)
			if _, err := os.Lstat(path); err == nil {
				if err := collectNames(hidden, filepath.Dir(path)); err != nil {
					return err
				}
			}
		}
	}
	if own, ok := b.ownPath(); ok {
		folder := filepath.Dir(own)
		if hidden[folder] == nil {
			hidden[folder] = map[string]bool{}
		}
		hidden[folder][filepath.Base(own)] = true
	}
	n := 0
	for folder, names := range hidden {
		n++
		if err := b.whiteOut(folder, names, fmt.Sprintf("%s/hidden%d", layersName, n)); err != nil {
			return fmt.Errorf("hide program in /%s: %w", folder, err)
		}
	}
	return nil
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

// ownPath returns the path inside of this program's own file, which can have any name, and reports whether the file exists there.
func (b *builder) ownPath() (path string, shared bool) {
	exe, err := os.Readlink(fdPath(b.exe))
	if err != nil {
		return "", false
	}
	for _, t := range b.sources.tools {
		if rel, ok := strings.CutPrefix(exe, t.Path+"/"); ok && !t.single {
			path = filepath.Join(t.target(), rel)
			_, err := os.Lstat(path)
			return path, err == nil
		}
	}
	if b.sources.root >= 0 {
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

// whiteOut mounts an overlay over a folder in which the names do not exist. Its whiteouts are character devices
// 0:0, which need no privilege (mknod(2)).
func (b *builder) whiteOut(folder string, names map[string]bool, layer string) error {
	upper, err := openLayer(layer)
	if err != nil {
		return err
	}
	defer unix.Close(upper)
	for name := range names {
		if err := unix.Mknod(filepath.Join(layer, name), unix.S_IFCHR, 0); err != nil {
			return err
		}
	}
	lower, err := layerAt(b.origin(folder))
	if err != nil {
		return err
	}
	defer unix.Close(lower)
	return shareLayers(folder, upper, lower)
}

// origin returns the original of a shared folder. The kernel limits how deep overlays can be nested, and an overlay
// of the original is one level less deep than an overlay of the shared folder.
func (b *builder) origin(folder string) string {
	for _, t := range b.sources.tools {
		if rel, ok := strings.CutPrefix(folder+"/", t.target()+"/"); ok && !t.single {
			return filepath.Join(fdPath(t.folder), rel)
		}
	}
	if b.sources.root >= 0 {
		return filepath.Join(fdPath(b.sources.root), folder)
	}
	return "/" + folder
}
