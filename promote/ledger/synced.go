package ledger

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Synced records what the agent got from outside: commits that stand for newer commits of the user, and reasons of verdicts. The entry of a
// commit is written before the agent gets the commit, and has no effect while the agent's history does not have the commit. The entry of a
// reason is written after the agent got it as a note. A process that is killed in between does no harm, since the same reason is not added
// to a note twice.
type Synced struct {
	Version int `json:"version"`
	// Colleague is the invented author of the commits and notes, who is not the agent's own ghost.
	Colleague identity.Ghost `json:"colleague"`
	Commits   []SyncedCommit `json:"commits"` // oldest first
	Sent      []Sent         `json:"sent,omitempty"`
	// Wanted is what the daemon brings once the agent's work is not in the way; nil for nothing.
	Wanted *Wanted `json:"wanted,omitempty"`
}

// Wanted is a request to bring the user's newer commits later.
type Wanted struct {
	Secrets bool `json:"secrets,omitempty"` // files come even if they contain secrets
}

// Sent is a text about an inner commit that the agent got.
type Sent struct {
	Commit gitops.OID `json:"commit"`
	Text   string     `json:"text"`
}

// SyncedCommit is one commit for the agent.
type SyncedCommit struct {
	Pair Pair       `json:"pair"`
	Onto gitops.OID `json:"onto"` // its parent
	// Open reports that the agent's branch may not name the commit yet, or that only a part of its files may be written.
	Open bool `json:"open,omitempty"`
}

// Unsent returns the reasons of verdicts that the agent did not get yet, as texts about inner commits.
func (s Synced) Unsent(d Decisions) []Sent {
	var list []Sent
	for _, r := range d.Reviewed {
		word := map[review.Word]string{review.Approve: "approved", review.Reject: "rejected", review.Fix: "changes requested"}[r.Word]
		if word == "" || r.Reason == "" {
			continue
		}
		if t := (Sent{r.Inner, word + ": " + r.Reason}); !slices.Contains(s.Sent, t) {
			list = append(list, t)
		}
	}
	return list
}

// MarkSent records that the agent got a text. It forgets the texts about commits without a verdict.
func (s *Synced) MarkSent(t Sent, d Decisions) {
	s.Sent = slices.DeleteFunc(append(s.Sent, t), func(t Sent) bool { return d.ReviewOf(t.Commit) == nil })
}

// InventColleague chooses the name of the colleague, once.
func (s *Synced) InventColleague(ghost identity.Ghost) {
	for s.Colleague.Name == "" || s.Colleague.Name == ghost.Name || s.Colleague.Login() == ghost.Login() {
		s.Colleague = identity.NewGhost()
	}
}

func syncedFile(dir string) string { return filepath.Join(dir, "synced.json") }

// ReadSynced reads the record in the host state dir.
func ReadSynced(dir string) (Synced, error) {
	s := Synced{Version: version}
	err := readFile(syncedFile(dir), &s, &s.Version)
	return s, err
}

// Write replaces the record in the host state dir.
func (s Synced) Write(dir string) error { return writeFile(syncedFile(dir), s) }

// SetWanted records in the host state dir what the daemon must bring. The caller holds the store's lock.
func SetWanted(dir string, wanted *Wanted) error {
	s, err := ReadSynced(dir)
	if err != nil || s.Wanted == wanted || s.Wanted != nil && wanted != nil && *s.Wanted == *wanted {
		return err
	}
	s.Wanted = wanted
	return s.Write(dir)
}

// Open returns the entry that is still open, or nil.
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

// Stamp changes whenever what waits for the agent may have changed.
type Stamp struct{ synced, decisions fileStamp }

type fileStamp struct {
	size    int64
	written time.Time
}

// StampOf returns the stamp of the host state dir.
func StampOf(dir string) Stamp { return Stamp{stampOf(syncedFile(dir)), stampOf(DecisionsFile(dir))} }

func stampOf(file string) fileStamp {
	info, err := os.Lstat(file)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}
