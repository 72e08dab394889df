package ledger

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// Numbers stores the numbers of commits in the list of a review. A commit keeps its number, and no other commit of the airlock gets it, so
// that a number always means the commit that the list showed.
type Numbers struct {
	Version int                `json:"version"`
	Last    int                `json:"last"` // the highest number that was given
	Of      map[gitops.OID]int `json:"of"`   // by inner commit
	// Before maps inner commits to the reviewed commits that they replaced when a list showed them first.
	Before map[gitops.OID]gitops.OID `json:"before,omitempty"`
}

// numbersKept bounds the number of commits in the file.
const numbersKept = 10_000

func numbersFile(dir string) string { return filepath.Join(dir, "numbers.json") }

// ReadNumbers reads the numbers stored in the host state dir.
func ReadNumbers(dir string) (Numbers, error) {
	n := Numbers{Version: version}
	err := readFile(numbersFile(dir), &n, &n.Version)
	if n.Of == nil {
		n.Of = map[gitops.OID]int{}
	}
	return n, err
}

// Write replaces the numbers stored in the host state dir.
func (n Numbers) Write(dir string) error { return writeFile(numbersFile(dir), n) }

// Give gives a number to each inner commit that has none. changed reports whether there was such a commit.
func (n *Numbers) Give(commits []gitops.OID) (changed bool) {
	for _, id := range commits {
		if n.Of[id] == 0 {
			n.Last++
			n.Of[id], changed = n.Last, true
		}
	}
	if more := len(n.Of) - numbersKept; more > 0 {
		oldest := slices.SortedFunc(maps.Keys(n.Of), func(a, b gitops.OID) int { return cmp.Compare(n.Of[a], n.Of[b]) })
		for _, id := range oldest[:more] {
			delete(n.Of, id)
			delete(n.Before, id)
		}
	}
	return changed
}

// Replace records that a commit replaces a reviewed one, unless it is known to replace one. changed reports whether it recorded this.
func (n *Numbers) Replace(commit, reviewed gitops.OID) (changed bool) {
	if n.Before[commit] != "" {
		return false
	}
	if n.Before == nil {
		n.Before = map[gitops.OID]gitops.OID{}
	}
	n.Before[commit] = reviewed
	return true
}

// Commit returns the inner commit with a number, or empty if none has it.
func (n Numbers) Commit(number int) gitops.OID {
	for id, of := range n.Of {
		if of == number {
			return id
		}
	}
	return ""
}
