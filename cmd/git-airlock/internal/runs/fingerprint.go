package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/promote/record"
)

const (
	// maxFingerprint bounds the files that a fingerprint counts.
	maxFingerprint = 100_000
	// maxIndex bounds the bytes of the index that a fingerprint reads.
	maxIndex = 256 << 20
)

// fingerprint returns the fingerprint of the user's index and work tree. It reads names, sizes, modes and times, but no
// contents. What cannot be read is left out.
func (k Keeper) fingerprint() record.Fingerprint {
	var f record.Fingerprint
	if index, err := os.Open(filepath.Join(k.Prisons.Repo.GitDir, "index")); err == nil {
		h := sha256.New()
		if _, err := io.CopyN(h, index, maxIndex); err == io.EOF { //nolint:errorlint // CopyN returns it as it is
			f.Index = hex.EncodeToString(h.Sum(nil))
		}
		index.Close()
	}
	top, tree := k.Prisons.Repo.Top, sha256.New()
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is left out
		}
		if name := d.Name(); name == ".git" || path == filepath.Join(top, k.Record.Workspace) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if f.Files == maxFingerprint {
			f.Cut = true
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil {
			f.Files++
			fmt.Fprintf(tree, "%s\x00%d %o %d\n", path[len(top):], info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return nil
	})
	f.Tree = hex.EncodeToString(tree.Sum(nil))
	return f
}
