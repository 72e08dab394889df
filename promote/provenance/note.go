// Package provenance writes the notes of refs/notes/airlock, in the format of version 1.
package provenance

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// withoutNamed bounds the number of commits that a note names as left out.
const withoutNamed = 100

// Note makes the note of one commit of an airlock. without lists the inner commits before it that were left out. reviewed is the user's
// verdict, or nil.
func Note(r airlock.Record, p ledger.Pair, innerAuthor string, result *ledger.GateResult, reviewed *ledger.Reviewed, without []gitops.OID, now time.Time) quarantine.Note {
	if r.Partial {
		p.Merged = true // merged with the files that the snapshot left out
	}
	var b strings.Builder
	fmt.Fprintf(&b, "landed by airlock %s\n\n", r.ID)
	for _, line := range []struct {
		key   string
		value any
	}{
		{"Version", 1},
		{"Commit", p.Outer},
		{"Session", r.Session},
		{"Inner-Commit", p.Inner},
		{"Inner-Author", gitops.Text(innerAuthor)},
		{"Base", r.Base},
		{"Backend", r.Backend},
		{"Isolation", fmt.Sprintf("runtime=%s network=%s uid=%d", cmp.Or(r.Isolation.Runtime, "none"), r.Isolation.Network, r.Phantom.UID)},
		{"Tree", p.Tree()},
		{"Policy", result.Word()},
		{"Landed-At", now.UTC().Format(time.RFC3339)},
	} {
		fmt.Fprintf(&b, "Airlock-%s: %v\n", line.key, line.value)
	}
	for _, s := range p.Supersedes {
		fmt.Fprintf(&b, "Airlock-Supersedes: %s\n", s)
	}
	for _, w := range without[:min(len(without), withoutNamed)] {
		fmt.Fprintf(&b, "Airlock-Without: %s\n", w)
	}
	if reviewed != nil && reviewed.Word == review.Approve {
		fmt.Fprintf(&b, "Airlock-Reviewed-By: %s %s\n", gitops.Text(reviewed.By), reviewed.At.UTC().Format(time.RFC3339))
	}
	return quarantine.Note{Commit: p.Outer, Text: b.String()}
}
