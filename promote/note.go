package promote

import (
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// withoutNamed bounds the number of commits that a note names as left out.
const withoutNamed = 100

// note makes the provenance note of one landed commit, in the format of version 1. without lists the inner commits before
// it that were left out.
func (e *Engine) note(p ledger.Pair, innerAuthor string, verdict *ledger.Verdict, without []gitops.OID, now time.Time) quarantine.Note {
	r := e.Record
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
		{"Isolation", fmt.Sprintf("runtime=%s network=%s uid=%d", orNone(r.Isolation.Runtime), r.Isolation.Network, r.Phantom.UID)},
		{"Tree", p.Tree()},
		{"Policy", verdict.Word()},
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
	return quarantine.Note{Commit: p.Outer, Text: b.String()}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
