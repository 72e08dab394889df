package session

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/teams"
)

var (
	// ErrNoAirlock reports that there is no airlock in this worktree.
	ErrNoAirlock = errors.New("no airlock here")
	// ErrCleared reports that another command has cleared the airlock meanwhile.
	ErrCleared = fmt.Errorf("%w: another command has cleared it", ErrNoAirlock)

	errInside = errors.New("this is the workspace of an airlock; run git airlock outside of it")
)

// RequestError is an invalid request, such as one with an image for a backend without images.
type RequestError struct{ Text string }

func (e *RequestError) Error() string { return e.Text }

func requestErrorf(format string, args ...any) error {
	return &RequestError{fmt.Sprintf(format, args...)}
}

// Next returns the commands to type after an error, nil if there are none.
func Next(err error) []string {
	var refused *environment.Refusal
	var advised *environment.Advised
	var unavailable *prison.Unavailable
	var noRange *identity.NoRange
	var foreign *gitops.ForeignError
	var setting *gitops.SettingError
	var locked *gitops.LockedError
	var unreadable *teams.PolicyError
	var rule *network.RuleError
	var own interface { // an error with commands of its own
		error
		Next() []string
	}
	switch {
	case errors.As(err, &own):
		return own.Next()
	case errors.As(err, &rule):
		return rule.Next
	case errors.As(err, &unreadable):
		return unreadable.Next
	case errors.As(err, &advised):
		return advised.Next
	case errors.As(err, &refused):
		return refused.Next
	case errors.As(err, &unavailable):
		return unavailable.Mend
	case errors.As(err, &noRange):
		return noRange.Mend
	case errors.As(err, &locked):
		return hold.RefLocked(locked).Next
	case errors.As(err, &setting):
		return []string{"git config --show-origin --get-all " + gitops.Pasteable(setting.Key)}
	case errors.As(err, &foreign):
		return []string{"git config --global --add safe.directory " + gitops.Pasteable(foreign.Path)}
	}
	for _, known := range nextAfter {
		if errors.Is(err, known.err) {
			return known.next
		}
	}
	if gitops.NoRoom(err) {
		return []string{"df -h .", "df -i ."}
	}
	return nil
}

// nextAfter lists errors without a type of their own, with the next commands. The first match counts.
var nextAfter = []struct {
	err  error
	next []string
}{
	{ErrNoAirlock, []string{"git airlock start"}},
	{daemon.ErrElsewhere, []string{"git airlock stop  # where it was started"}},
	{prison.ErrElsewhere, []string{"git airlock stop  # where it was started"}},
	{prison.ErrNotRunning, []string{"git airlock start"}},
	{prison.ErrFlooded, []string{"git airlock stop"}},
	{prison.ErrFrozen, []string{"git airlock stop"}},
	{identity.ErrNoUser, []string{`git config --global user.name "Your Name"`, "git config --global user.email you@example.com"}},
	{gitops.ErrUnborn, []string{"git commit --allow-empty -m 'Initial commit'"}},
	{gitops.ErrDetached, []string{"git switch -c BRANCH"}},
	{gitops.ErrTwoRepositories, []string{"unset GIT_DIR GIT_WORK_TREE"}},
	{gitops.ErrBare, []string{"git worktree add PATH BRANCH"}},
	{airlock.ErrRestoring, []string{"git airlock checkpoint list  # tries again"}},
	{syscall.EROFS, []string{"findmnt --target ."}},
	{syscall.EMFILE, []string{"ulimit -n 1024"}},
	{airlock.ErrBusy, []string{"git airlock status"}},
}
