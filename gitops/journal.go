package gitops

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// journal is written before the first visible change of a landing and removed after the last.
// All paths follow from the two commits.
type journal struct {
	Version int         `json:"version"`
	Branch  anyName     `json:"branch"`
	Old     OID         `json:"old"`
	New     OID         `json:"new"`
	First   []RefUpdate `json:"first"`
	Refs    []RefUpdate `json:"refs"`
	Message string      `json:"message"`
	Begun   OID         `json:"begun,omitempty"` // see [Landing]
	Scratch string      `json:"scratch"`         // name of the folder in which the landing was prepared
	Holder  holder      `json:"holder"`          // the git that holds the refs
	Locks   []lockFile  `json:"locks"`           // the locks by which it does
	Absent  []anyName   `json:"absent"`          // changed paths of the old commit that the working tree did not have; null in journals of old
	Lost    bool        `json:"lost"`            // the index was without our lock for a while
}

// scratchPrefix begins the names of the folders in which landings are prepared.
const scratchPrefix = "landing-"

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

func hasJournal(dir string) bool {
	_, err := os.Lstat(journalPath(dir))
	return err == nil
}

func (j journal) write(dir string) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return WriteFile(journalPath(dir), content, 0o600)
}

// readJournal returns nil if there is none.
func readJournal(dir string) (*journal, error) {
	content, err := os.ReadFile(journalPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j journal
	if err := json.Unmarshal(content, &j); err != nil {
		return nil, fmt.Errorf("journal %q: %w", journalPath(dir), err)
	}
	if j.Version != 1 || !strings.HasPrefix(j.Scratch, scratchPrefix) || filepath.Base(j.Scratch) != j.Scratch {
		return nil, fmt.Errorf("journal %q: version %d is not known here", journalPath(dir), j.Version)
	}
	return &j, nil
}

// removeJournal ends a landing. What it did must not be younger on the disk than the journal's end: on one
// file system changes reach the disk in order, another one is synced first.
func (r *Repository) removeJournal(dir string) error {
	if otherDevice(r.Top, dir) {
		if err := syncFileSystem(r.Top); err != nil {
			return err
		}
	}
	return os.Remove(journalPath(dir))
}

// sweep removes what landings prepared and a crash left behind.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(globQuote(dir), scratchPrefix+"*"))
	for _, name := range left {
		_ = os.RemoveAll(name)
	}
	_ = os.Remove(journalPath(dir) + ".new")
	_ = os.Remove(filepath.Join(dir, "token.new"))
}

// globQuote takes the meaning from the characters that [filepath.Glob] knows.
func globQuote(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
