package checking

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/git-airlock/git-airlock/promote/airlock"
)

// programFolders are where the programs of a system are, and packageLists what its package managers write. Their times change with
// the programs.
var (
	programFolders = []string{"bin", "sbin", "lib", "usr/bin", "usr/sbin", "usr/lib", "usr/local/bin", "usr/local/lib", "usr/local", "opt"}
	packageLists   = []string{"var/lib/dpkg/status", "var/lib/rpm", "lib/apk/db/installed", "var/lib/pacman/local"}
)

// System returns the name of the system in which checks of an airlock run. Two systems have the same name only if they have the same
// programs, as far as that can be known without reading them.
func (c Runner) System(ctx context.Context, r airlock.Record) (string, error) {
	backend := c.Prisons.Backend(r)
	image, err := c.Prisons.ImageID(ctx, r)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", []string{backend.Name(), r.Runtime, image, r.Rootfs})
	if !backend.Traits(r.Runtime).Images {
		root := "/"
		if r.Rootfs != "" {
			root = r.Rootfs
		}
		release, _ := os.ReadFile(filepath.Join(root, "etc/os-release"))
		fmt.Fprintf(h, "%q\n", release)
		for _, name := range slices.Concat(programFolders, packageLists) {
			note(h, filepath.Join(root, name))
		}
	}
	for _, t := range r.Tools {
		fmt.Fprintf(h, "%q\n", t.Name)
		note(h, t.Path)
		note(h, filepath.Join(t.Path, "bin"))
	}
	return fmt.Sprintf("%s %s/%s %x", backend.Name(), runtime.GOOS, runtime.GOARCH, h.Sum(nil)[:6]), nil
}

// note adds a file or folder, as it would change with another version of a program.
func note(h hash.Hash, path string) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // it is not part of this system
	}
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
}
