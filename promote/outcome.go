package promote

import (
	"context"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Outcome is what the last cycle left.
type Outcome struct {
	Version      int        `json:"version"`
	Inner        gitops.OID `json:"inner"` // tip of the inner main that was promoted last
	Holds        []Hold     `json:"holds"`
	Onto         gitops.OID `json:"onto"`  // where the branch stood when what is pending was built
	Apart        bool       `json:"apart"` // it was built without the user's own commits, since they conflict
	LastLandedAt *time.Time `json:"last_landed_at"`
	Dropped      int        `json:"dropped"` // commits that have not landed and that the user leaves out
	Waits        int        `json:"waits"`   // commits that Inner has and that are still to land
	Total        int        `json:"total"`   // commits that have landed since the airlock was made
	// Failure is why the last cycle could not be made, empty if it could.
	Failure string `json:"failure,omitempty"`

	Landed  int           `json:"-"` // commits landed by this cycle
	Pending int           `json:"-"` // commits that wait
	Retry   time.Duration `json:"-"` // after which another cycle may get further; 0: when something changes
}

const outcomeVersion = 1

func outcomeFile(dir string) string { return filepath.Join(dir, "outcome.json") }

// readOutcome reads what the last cycle left; before the first one that is nothing.
func readOutcome(dir string) (Outcome, error) {
	o := Outcome{Version: outcomeVersion}
	err := readState(outcomeFile(dir), outcomeVersion, &o)
	return o, err
}

// LastExported is the inner main as the quarantine of an airlock last took it in, empty if it never did.
func LastExported(dir string) (gitops.OID, error) {
	o, err := readOutcome(dir)
	return o.Inner, err
}

// TotalLanded is how many commits of an airlock had landed when its last cycle ended.
func TotalLanded(dir string) (int, error) {
	o, err := readOutcome(dir)
	return o.Total, err
}

// Failing tells whether the last cycle of an airlock could not be made.
func Failing(dir string) (bool, error) {
	o, err := readOutcome(dir)
	return o.Failure != "", err
}

// Forget drops what the last cycle said of a worktree that an airlock has left.
func Forget(dir string) error {
	o, err := readOutcome(dir)
	if err != nil {
		return err
	}
	o.Holds, o.Failure = nil, ""
	return o.write(dir)
}

// failureLimit is how many characters of a failure are kept: enough for what git says.
const failureLimit = 2000

// fail writes down that a cycle could not be made after this outcome; an interruption is no failure.
func (o Outcome) fail(ctx context.Context, dir string, cause error) error {
	said := gitops.Escape(cause.Error())
	said = said[:min(len(said), failureLimit)]
	if ctx.Err() != nil || said == o.Failure {
		return nil
	}
	o.Failure = said
	return o.write(dir)
}

func (o Outcome) write(dir string) error { return writeState(outcomeFile(dir), o) }
