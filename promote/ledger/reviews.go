package ledger

import (
	"encoding/json"
	"path/filepath"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Reviews stores the numbers of commits in each state of a review, for the command status. Counting the blocked commits needs merges, which
// take time.
type Reviews struct {
	Version int           `json:"version"`
	Of      string        `json:"of"` // identifies the commits and decisions that were counted
	Counts  review.Counts `json:"counts"`
}

func reviewsFile(dir string) string { return filepath.Join(dir, "reviews.json") }

// ReadReviews reads the numbers stored in the host state dir.
func ReadReviews(dir string) (Reviews, error) {
	r := Reviews{Version: version}
	err := readFile(reviewsFile(dir), &r, &r.Version)
	return r, err
}

// Write replaces the numbers stored in the host state dir.
func (r Reviews) Write(dir string) error { return writeFile(reviewsFile(dir), r) }

// Fingerprint returns a hash of the decisions and of some names.
func (d Decisions) Fingerprint(names ...gitops.OID) (string, error) {
	content, err := json.Marshal(struct {
		D     Decisions
		Names []gitops.OID
	}{d, names})
	return string(gitops.HashObject("sha256", "blob", content)), err
}
