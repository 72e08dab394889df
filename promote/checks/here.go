package checks

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// hereFile is the file of an airlock's host state with the results that were found for it, one a line, as in the notes.
func hereFile(dir string) string { return filepath.Join(dir, "checks") }

// Keep adds a result that was found here to an airlock's host state.
func Keep(dir string, r Result) (err error) {
	r.stamp()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(hereFile(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the result of a check: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// The first newline ends a line that a full disk has cut short.
	_, err = f.Write(append(append([]byte{'\n'}, line...), '\n'))
	return err
}

// Here returns the results that were found for an airlock, by tree. For each command and system it returns the newest result. Only these
// results open the gate and get into evidence: the results in notes may come from anyone who can push notes.
func Here(dir string) (map[gitops.OID][]Result, error) {
	f, err := os.Open(hereFile(dir))
	if err != nil {
		return nil, gitops.Unless(err, fs.ErrNotExist)
	}
	defer f.Close()
	all := map[gitops.OID][]Result{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r Result
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Version != version {
			continue
		}
		all[r.Tree] = append(slices.DeleteFunc(all[r.Tree], r.replaces), r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the results of checks: %w", err)
	}
	return all, nil
}
