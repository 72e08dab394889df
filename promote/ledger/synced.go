package ledger

import (
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
)

// Synced records the commits with which the agent got the user's newer commits. An entry is written before the agent gets its
// commit, and means nothing as long as the agent's history does not have that commit.
type Synced struct {
	Version int `json:"version"`
	// Colleague is the invented author of these commits, who is not the agent's own ghost.
	Colleague identity.Ghost `json:"colleague"`
	Commits   []SyncedCommit `json:"commits"` // oldest first
}

// SyncedCommit is one commit for the agent.
type SyncedCommit struct {
	Pair Pair       `json:"pair"`
	Onto gitops.OID `json:"onto"` // its parent
	// Open reports that the agent's branch may not have been moved to it yet, or its files only in part.
	Open bool `json:"open,omitempty"`
}

const syncedVersion = 1

func syncedFile(dir string) string { return filepath.Join(dir, "synced.json") }

// ReadSynced reads the record in the host state dir.
func ReadSynced(dir string) (Synced, error) {
	s := Synced{Version: syncedVersion}
	err := readFile(syncedFile(dir), syncedVersion, &s)
	return s, err
}

// Write replaces the record in the host state dir.
func (s Synced) Write(dir string) error { return writeFile(syncedFile(dir), s) }

// Open returns the entry whose commit the agent may have only in part, or nil.
func (s Synced) Open() *SyncedCommit {
	if n := len(s.Commits); n > 0 && s.Commits[n-1].Open {
		return &s.Commits[n-1]
	}
	return nil
}

// readSynced replaces the synced pairs by those in the host state dir.
func (l *Ledger) readSynced(dir string) error {
	for _, p := range l.Synced {
		delete(l.pairs, p.Inner)
	}
	l.Synced = nil
	s, err := ReadSynced(dir)
	for _, c := range s.Commits {
		if _, landed := l.pairs[c.Pair.Inner]; landed {
			continue
		}
		c.Pair.Synced = true
		l.Synced = append(l.Synced, c.Pair)
		l.pairs[c.Pair.Inner] = c.Pair
	}
	return err
}
