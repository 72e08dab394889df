package land

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
)

// journal is written before the first visible change of a landing, and removed after the last. The changed paths are computed from the two commits.
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
	Holder  holder             `json:"holder"`          // the git process that holds the locks of the refs
	Locks   []lockFile         `json:"locks"`           // these locks
	// changed paths of the old commit that were missing in the working tree
	Absent []gitops.AnyName `json:"absent"`
	Lost   bool             `json:"lost"` // a recovery found that the landing had lost its lock on the index
}

// ScratchPrefix begins the names of the folders in which landings are prepared.
const ScratchPrefix = "landing-"

func (j journal) write(dir string) error { return durable.WriteJSON(gitops.JournalPath(dir), j) }

// readJournal returns nil if there is no journal.
func readJournal(dir string) (*journal, error) {
	content, err := os.ReadFile(gitops.JournalPath(dir))
	if err != nil {
		return nil, gitops.Unless(err, os.ErrNotExist)
	}
	var j journal
	if err := json.Unmarshal(content, &j); err != nil {
		return nil, fmt.Errorf("journal %q: %w", gitops.JournalPath(dir), err)
	}
	if j.Version != 1 || !strings.HasPrefix(j.Scratch, ScratchPrefix) || filepath.Base(j.Scratch) != j.Scratch {
		return nil, fmt.Errorf("journal %q: version %d is not known here", gitops.JournalPath(dir), j.Version)
	}
	return &j, nil
}

// removeJournal ends a landing. The changes of the landing must reach the disk before the removal of the journal.
// On one file system changes reach the disk in order; a different file system is synced first.
func removeJournal(r *gitops.Repository, dir string) error {
	if durable.OtherDevice(r.Top, dir) {
		if err := durable.SyncFileSystem(r.Top); err != nil {
			return err
		}
	}
	return os.Remove(gitops.JournalPath(dir))
}

// sweep removes the prepared files of landings that a crash interrupted.
func sweep(dir string) {
	for _, name := range gitops.Glob(dir, ScratchPrefix+"*") {
		_ = os.RemoveAll(name)
	}
	_ = os.Remove(gitops.JournalPath(dir) + ".new")
	_ = os.Remove(filepath.Join(dir, "token.new"))
}
