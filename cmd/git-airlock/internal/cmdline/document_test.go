package cmdline

import (
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestSpentLimit checks that a limit of requests that is used up counts for its day only, as in the network itself.
func TestSpentLimit(t *testing.T) {
	today := ui.Now()
	for name, c := range map[string]struct {
		last   time.Time
		status int
		shown  int // number of refused credentials
		limit  int
	}{
		"today":                       {today, 429, 1, 3},
		"today, and the server":       {today, 401, 1, 3},
		"yesterday":                   {today.Add(-24 * time.Hour), 429, 0, 0},
		"last week, and the server":   {today.Add(-7 * 24 * time.Hour), 401, 1, 0},
		"tomorrow, by a wrong clock":  {today.Add(24 * time.Hour), 429, 1, 3},
		"yesterday, without a status": {today.Add(-24 * time.Hour), 0, 0, 0},
	} {
		var recent network.Recent
		recent.Rules.Credentials = []control.Credential{{Name: "typed", Limit: 3}}
		recent.Uses = []control.CredentialUse{{Name: "typed", Today: 3, Requests: 3, Last: c.last, Status: c.status, Ended: true}}
		found := RefusedCredentials(recent)
		if len(found) != c.shown {
			t.Errorf("%s: %+v", name, found)
		} else if len(found) > 0 && found[0].Limit != c.limit {
			t.Errorf("%s: the limit is %d", name, found[0].Limit)
		}
	}
}
