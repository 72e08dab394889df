package land

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// journal is written before the first visible change of a landing and removed after the last.
// All paths follow from the two commits.
type journal struct {
	Version int                `json:"version"`
	Branch  gitops.AnyName     `json:"branch"`
	Old     gitops.OID         `json:"old"`
	New     gitops.OID         `json:"new"`
	First   []gitops.RefUpdate `json:"first"`
	Refs    []gitops.RefUpdate `json:"refs"`
	Message string             `json:"message"`
	Begun   gitops.OID         `json:"begun,omitempty"` // see [Landing]
	Scratch string             `json:"scratch"`         // name of the folder in which the landing was prepared
	Holder  holder             `json:"holder"`          // the git that holds the refs
	Locks   []lockFile         `json:"locks"`           // the locks by which it does
	Absent  []gitops.AnyName   `json:"absent"`          // changed paths of the old commit that the working tree did not have; null in journals of old
	Lost    bool               `json:"lost"`            // the index was without our lock for a while
}

// scratchPrefix begins the names of the folders in which landings are prepared.
const scratchPrefix = "landing-"

func (j journal) write(dir string) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return gitops.WriteFile(gitops.JournalPath(dir), content, 0o600)
}

// readJournal returns nil if there is none.
func readJournal(dir string) (*journal, error) {
	content, err := os.ReadFile(gitops.JournalPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j journal
	if err := json.Unmarshal(content, &j); err != nil {
		return nil, fmt.Errorf("journal %q: %w", gitops.JournalPath(dir), err)
	}
	if j.Version != 1 || !strings.HasPrefix(j.Scratch, scratchPrefix) || filepath.Base(j.Scratch) != j.Scratch {
		return nil, fmt.Errorf("journal %q: version %d is not known here", gitops.JournalPath(dir), j.Version)
	}
	return &j, nil
}

// removeJournal ends a landing. What it did must not be younger on the disk than the journal's end: on one
// file system changes reach the disk in order, another one is synced first.
func removeJournal(r *gitops.Repository, dir string) error {
	if gitops.OtherDevice(r.Top, dir) {
		if err := gitops.SyncFileSystem(r.Top); err != nil {
			return err
		}
	}
	return os.Remove(gitops.JournalPath(dir))
}

// sweep removes what landings prepared and a crash left behind.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(gitops.GlobQuote(dir), scratchPrefix+"*"))
	for _, name := range left {
		_ = os.RemoveAll(name)
	}
	_ = os.Remove(gitops.JournalPath(dir) + ".new")
	_ = os.Remove(filepath.Join(dir, "token.new"))
}
