package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/git-airlock/git-airlock/gitops"
)

// readFile reads a state file into v. If the file is missing, v stays as it is. A file of another version is an
// error, because this program cannot interpret it.
func readFile(file string, version int, v any) error { //nolint:unparam // each file has a version of its own
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(content, &head); err != nil {
		return fmt.Errorf("read %q: %w", file, err)
	}
	if head.Version != version {
		return fmt.Errorf("read %q: its version is %d, and this program reads version %d", file, head.Version, version)
	}
	if err := json.Unmarshal(content, v); err != nil {
		return fmt.Errorf("read %q: %w", file, err)
	}
	return nil
}

// writeFile replaces a state file as a whole.
func writeFile(file string, v any) error {
	content, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return gitops.WriteFile(file, append(content, '\n'), 0o600)
}
