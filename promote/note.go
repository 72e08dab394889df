package promote

import (
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// note is the provenance of one landed commit, in the format of version 1.
func (c *cycle) note(p pair, innerAuthor string, now time.Time) string {
	r := c.Record
	tree := p.tree()
	if r.Part {
		tree = mergedTree // with what was left out
	}
	var b strings.Builder
	fmt.Fprintf(&b, "landed by airlock %s\n\n", r.ID)
	for _, line := range []struct {
		key   string
		value any
	}{
		{"Version", 1},
		{"Commit", p.outer},
		{"Session", r.Session},
		{"Inner-Commit", p.inner},
		{"Inner-Author", gitops.Escape(innerAuthor)},
		{"Base", r.Base},
		{"Backend", r.Backend},
		{"Isolation", fmt.Sprintf("runtime=%s network=%s uid=%d", orNone(r.Isolation.Runtime), r.Isolation.Network, r.Phantom.UID)},
		{"Tree", tree},
		{"Policy", c.gate.verdicts.of(p.outer).word()},
		{"Landed-At", now.UTC().Format(time.RFC3339)},
	} {
		fmt.Fprintf(&b, "Airlock-%s: %v\n", line.key, line.value)
	}
	for _, s := range p.supersedes {
		fmt.Fprintf(&b, "Airlock-Supersedes: %s\n", s)
	}
	return b.String()
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
