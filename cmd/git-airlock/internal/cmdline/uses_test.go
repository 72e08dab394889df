package cmdline

import (
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// TestFailedSince distinguishes failures and silence since a command began from those that the network kept of earlier ones.
func TestFailedSince(t *testing.T) {
	begun := time.Unix(1<<30, 0)
	now := begun.Add(time.Minute)
	for name, c := range map[string]struct {
		before, after control.CredentialUse
		want          bool
	}{
		"an earlier failure":             {control.CredentialUse{Requests: 3, Status: 529}, control.CredentialUse{Requests: 3, Status: 529}, false},
		"a failure":                      {control.CredentialUse{Requests: 3}, control.CredentialUse{Requests: 4, Status: 529}, true},
		"an earlier silence":             {control.CredentialUse{Requests: 3, Silent: time.Hour}, control.CredentialUse{Requests: 3, Silent: time.Hour}, false},
		"a short wait after a silence":   {control.CredentialUse{Requests: 3, Silent: time.Hour}, control.CredentialUse{Requests: 4, Silent: time.Hour, Since: now.Add(-time.Second)}, false},
		"a wait of an agent beside this": {control.CredentialUse{Requests: 3, Since: begun.Add(-time.Second)}, control.CredentialUse{Requests: 3, Since: begun.Add(-time.Second)}, false},
		"an end of this wait":            {control.CredentialUse{Requests: 3, Since: begun.Add(-time.Minute)}, control.CredentialUse{Requests: 4, Silent: 61 * time.Second}, false},
		"a wait":                         {control.CredentialUse{Requests: 3}, control.CredentialUse{Requests: 4, Since: begun.Add(time.Second)}, true},
		"a silence":                      {control.CredentialUse{Requests: 3}, control.CredentialUse{Requests: 4, Silent: 40 * time.Second}, true},
	} {
		c.before.Name, c.after.Name = "typed", "typed"
		f := Uses{begun, []control.CredentialUse{c.before}}
		if got := f.failedSince(c.after, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if f := (Uses{at: begun}); !f.failedSince(control.CredentialUse{Name: "typed", Requests: 1, Status: 500}, now) {
		t.Error("a first failure is not reported")
	}
}
