package ledger

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
)

// version is the version of every file so far.
const version = 1

// readFile reads a state file into v, whose field for the file's version is at found. If the file is missing, v stays as it is. A
// file of another version is an error, because this program cannot interpret it.
func readFile(file string, v any, found *int) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return gitops.Unless(err, fs.ErrNotExist)
	}
	*found = 0
	if err = json.Unmarshal(content, v); err != nil {
		var head struct {
			Version int `json:"version"`
		}
		if json.Unmarshal(content, &head) != nil || head.Version == version {
			return fmt.Errorf("read %q: %w", file, err)
		}
		*found = head.Version
	}
	if *found != version {
		return fmt.Errorf("read %q: its version is %d, and this program reads version %d", file, *found, version)
	}
	return nil
}

// writeFile replaces a state file as a whole.
func writeFile(file string, v any) error {
	content, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return durable.WriteFile(file, append(content, '\n'), 0o600)
}
