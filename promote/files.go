package promote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/git-airlock/git-airlock/gitops"
)

// readState reads one of promotion's files in the host state into v. A file that is not there leaves v as it is; one of
// another version is an error: it is not known what it means.
func readState(file string, version int, v any) error {
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
		return fmt.Errorf("read %q: its version is %d, and this program knows %d", file, head.Version, version)
	}
	if err := json.Unmarshal(content, v); err != nil {
		return fmt.Errorf("read %q: %w", file, err)
	}
	return nil
}

// writeState replaces such a file as a whole.
func writeState(file string, v any) error {
	content, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return gitops.WriteFile(file, append(content, '\n'), 0o600)
}
