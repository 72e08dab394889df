package prisons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// rescueScript commits all changes except those below the paths in its arguments, without running a hook of the workspace, and prints the
// ref of the commit. Git add ends with an error if it must exclude a path that is ignored, or a path below a submodule or a link, so the
// script does not name such a path. The script does not exclude a path if the index has files below it.
var rescueScript = []string{"sh", "-c", `for p; do
	shift
	git check-ignore -q -- "./$p" # takes no literal pathspecs, but none with "./" has magic
	[ $? = 1 ] && [ -z "$(git ls-files -- ":(top,literal)$p/" | head -c 1)" ] && set -- "$@" ":(top,exclude,literal)$p"
done
git -c core.hooksPath=/dev/null add -A -- :/ "$@" >&2 &&
if ! git diff --cached --quiet; then
git -c core.hooksPath=/dev/null commit -q --no-verify -m 'Uncommitted work' >&2 && { git symbolic-ref -q HEAD || echo HEAD; }
fi`, "sh"}

const (
	// maxSaid bounds the output that is kept of a short command inside.
	maxSaid = 4096
	// rescueTime bounds the time of the commit in the workspace, whose content may make git slow.
	rescueTime = time.Minute
)

// Rescue commits the agent's uncommitted changes, and returns the ref of the commit. The workspace reports the ref, so it is not
// trusted. Rescue also returns the agent's other work trees, whose changes it does not commit: git would commit only the ids of their HEADs.
func (p Prisons) Rescue(ctx context.Context, r airlock.Record) (ref string, places []inner.Place, err error) {
	box, err := p.Attach(ctx, r)
	if err != nil {
		return "", nil, err
	}
	defer box.Close()
	exporter, err := p.OpenExporter(ctx, r)
	if err != nil {
		return "", nil, err
	}
	defer exporter.Close()
	if places, err = exporter.Places(ctx); err != nil {
		return "", nil, err
	}
	ref, err = rescueIn(ctx, box, inner.Below(places))
	return ref, places, err
}

// rescueIn commits the changes in a prison, except for those below paths.
func rescueIn(ctx context.Context, box prison.Prison, except []string) (ref string, err error) {
	said, where := prison.Capped{Max: maxSaid}, prison.Capped{Max: maxSaid}
	bounded, cancel := context.WithTimeout(ctx, rescueTime)
	defer cancel()
	status, err := box.Exec(bounded, prison.Process{Argv: append(slices.Clip(rescueScript), except...), Stdout: &where, Stderr: &said})
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
