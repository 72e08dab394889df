package airlock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
)

// startupName is the file of the host state that says which startup commands have run to their end. It is none of the
// record's, as it changes while nobody holds Lock: such commands take their time.
const startupName = "startup"

// Startup is what was given to SetStartup last, empty for nothing.
func (s Store) Startup(id string) (string, error) {
	content, err := os.ReadFile(filepath.Join(s.Dir(id), startupName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

// toldName marks an airlock whose user was told where landed commits say what they came out of.
const toldName = "told"

// Tell reports whether the user is to be told now where landed commits say what they came out of: once for each airlock.
func (s Store) Tell(id string) bool {
	file, err := os.OpenFile(filepath.Join(s.Dir(id), toldName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// SetStartup remembers a digest of the startup commands that have run to their end.
func (s Store) SetStartup(id, digest string) error {
	return gitops.WriteFile(filepath.Join(s.Dir(id), startupName), []byte(digest), 0o600)
}
