package prisons

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// rescueScript commits all changes without running a hook of the workspace, and prints the ref of the commit.
var rescueScript = []string{"sh", "-c", `git -c core.hooksPath=/dev/null add -A >&2 &&
if ! git diff --cached --quiet; then
git -c core.hooksPath=/dev/null commit -q --no-verify -m 'Uncommitted work' >&2 && { git symbolic-ref -q HEAD || echo HEAD; }
fi`}

const (
	// maxSaid bounds the output that is kept of a short command inside.
	maxSaid = 4096
	// rescueTime bounds the time of the commit in the workspace, whose content may make git slow.
	rescueTime = time.Minute
)

// Rescue commits the agent's uncommitted changes, and returns the ref of the commit. The workspace reports the ref, so it is not
// trusted.
func (p Prisons) Rescue(ctx context.Context, r airlock.Record) (ref string, err error) {
	box, err := p.Attach(ctx, r)
	if err != nil {
		return "", err
	}
	defer box.Close()
	said, where := prison.Capped{Max: maxSaid}, prison.Capped{Max: maxSaid}
	bounded, cancel := context.WithTimeout(ctx, rescueTime)
	defer cancel()
	status, err := box.Exec(bounded, prison.Process{Argv: rescueScript, Stdout: &where, Stderr: &said})
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		return "", environment.Advise(fmt.Errorf("commit the agent's uncommitted changes: git in the workspace did not end within %s", rescueTime),
			"git airlock visit -- git status")
	}
	if err != nil {
		return "", err
	}
	if status != 0 {
		return "", fmt.Errorf("commit the agent's uncommitted changes: %s", gitops.Text(said.String()))
	}
	return strings.TrimSpace(where.String()), nil
}
