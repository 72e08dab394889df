package airlock

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
)

// startupName is the file of the host state with the progress of services and startup commands. It is not part of the
// record, because it changes while nobody holds Lock: startup commands can take long.
const startupName = "startup"

// Startup returns the text of the last SetStartup, or an empty one if there was none.
func (s Store) Startup(id string) (string, error) {
	content, err := os.ReadFile(filepath.Join(s.Dir(id), startupName))
	return string(content), gitops.Unless(err, fs.ErrNotExist)
}

// hintName is a file of the host state. It exists if the user of the airlock has seen the hint about notes.
const hintName = "told"

// MarkHintShown reports whether the hint about the notes of landed commits has not been shown for an airlock of this repository yet,
// and records that it has been shown for this one.
func (s Store) MarkHintShown(id string) bool {
	shown := slices.ContainsFunc(gitops.Glob(s.root(), "*"), func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, hintName))
		return err == nil
	})
	file, err := os.OpenFile(filepath.Join(s.Dir(id), hintName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil && !shown
}

// SetStartup records the progress of services and startup commands as a text.
func (s Store) SetStartup(id, progress string) error {
	return durable.WriteFile(filepath.Join(s.Dir(id), startupName), []byte(progress), 0o600)
}
