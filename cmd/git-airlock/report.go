package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

// refusal is what waits for the user to act: status 3.
type refusal struct {
	text  string
	hints []string
}

func (e *refusal) Error() string { return e.text }

// hinted is an error with what to type next.
type hinted struct {
	error
	hints []string
}

func (e *hinted) Unwrap() error { return e.error }

// childStatus is the exit status of the command that visit and run ran.
type childStatus int

func (s childStatus) Error() string { return fmt.Sprintf("the command ended with status %d", int(s)) }

// ownFailure is a failure of visit and run themselves, which is kept apart from the command's statuses.
type ownFailure struct{ error }

func (e ownFailure) Unwrap() error { return e.error }

var (
	errNoAirlock = errors.New("no airlock here")
	errCleared   = fmt.Errorf("%w: another command has cleared it", errNoAirlock)
	// errNothingAsked is the error of git airlock alone, which prints the usage and, as git does, ends with status 1.
	errNothingAsked = errors.New("no command")
	errInside       = errors.New("this is the workspace of an airlock; git airlock works from outside")
)

// report tells the user of an error and returns the exit status, which is decided here and nowhere else.
func report(w io.Writer, err error) int {
	var child childStatus
	var usage *ui.UsageError
	var refused *refusal
	var setting *promote.SettingError
	var scanSetting *scan.SettingError
	var unreadable *promote.PolicyError
	var unavailable *prison.Unavailable
	var noRange *identity.NoRange
	var own ownFailure
	var wrong recipe.Errors
	var signaled ended
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNothingAsked):
		return 1
	case errors.As(err, &child):
		return int(child)
	}
	for _, line := range linesOf(err) {
		ui.Say(w, "%s", gitops.Escape(line))
	}
	ui.Hint(w, hints(err)...)
	switch {
	case errors.As(err, &signaled):
		return 128 + int(signaled.signal)
	case errors.Is(err, context.Canceled): // a git of ours got the terminal's ^C before us
		return 128 + int(syscall.SIGINT)
	case errors.As(err, &own) && errors.Is(err, prison.ErrNotExecutable):
		return 126
	case errors.As(err, &own) && errors.Is(err, prison.ErrNotFound):
		return 127
	case errors.As(err, &own):
		return 125
	case errors.As(err, &usage), errors.As(err, &setting), errors.As(err, &scanSetting), errors.As(err, &unreadable), errors.As(err, &wrong):
		return 2
	case errors.As(err, &refused):
		return 3
	case errors.Is(err, errNoAirlock):
		return 4
	case errors.As(err, &unavailable), errors.As(err, &noRange), errors.Is(err, errBroken):
		return 5
	}
	return 1
}

// orWriteError returns the write error if output was lost, since the exit status alone would hide that; otherwise it
// returns err.
func orWriteError(err error) error {
	var child childStatus
	if lost := ui.Stdout.Lost(); lost != nil && (err == nil || errors.As(err, &child)) {
		return lost
	}
	return err
}

// gitSaid is what git said of what the user typed: several lines stay so, none is of an agent's making.
type gitSaid struct{ error }

func (e gitSaid) Unwrap() error { return e.error }

// linesOf are the lines of an error, one but for what git said.
func linesOf(err error) []string {
	var said gitSaid
	var git *gitops.Error
	if errors.As(err, &said) && errors.As(err, &git) && git.Stderr != "" {
		return append([]string{strings.TrimPrefix(git.Lines[0], "fatal: ")}, git.Lines[1:]...)
	}
	if errors.Is(err, context.Canceled) {
		return []string{"interrupted"} // who has pressed ^C knows what, and of no context
	}
	return []string{err.Error()}
}

// hints says what to type next after an error.
func hints(err error) []string {
	var refused *refusal
	var unavailable *prison.Unavailable
	var noRange *identity.NoRange
	var withHints *hinted
	var usage *ui.UsageError
	var setting *promote.SettingError
	var scanSetting *scan.SettingError
	if next := nextOf(err); next != nil {
		return next
	}
	switch {
	case errors.As(err, &withHints):
		return withHints.hints
	case errors.As(err, &refused):
		return refused.hints
	case errors.As(err, &unavailable):
		return unavailable.Mend
	case errors.As(err, &noRange):
		return noRange.Mend
	case errors.As(err, &usage):
		return usage.Hints()
	case errors.As(err, &setting):
		return []string{"git config --show-origin --get-all " + gitops.Pasteable(setting.Key)}
	case errors.As(err, &scanSetting):
		return []string{"git config --show-origin --get-all " + gitops.Pasteable(scanSetting.Key)}
	}
	return hintsOfKind(err)
}

// hintsOfKind returns what to type next after an error that is of a kind and says nothing more.
func hintsOfKind(err error) []string {
	var foreign *gitops.ForeignError
	switch {
	case errors.Is(err, errNoAirlock):
		return []string{"git airlock start"}
	case errors.Is(err, daemon.ErrElsewhere), errors.Is(err, prison.ErrElsewhere):
		return []string{"git airlock stop  # where it was started"}
	case errors.Is(err, prison.ErrNotRunning):
		return []string{"git airlock start"}
	case errors.Is(err, prison.ErrFlooded), errors.Is(err, prison.ErrFrozen):
		return []string{"git airlock stop"}
	case errors.Is(err, identity.ErrNoUser):
		return []string{`git config --global user.name "Your Name"`, "git config --global user.email you@example.com"}
	case errors.Is(err, gitops.ErrUnborn):
		return []string{"git commit --allow-empty -m 'Initial commit'"}
	case errors.Is(err, gitops.ErrDetached):
		return []string{"git switch -c <branch>"}
	case errors.As(err, &foreign):
		return []string{"git config --global --add safe.directory " + gitops.Pasteable(foreign.Path)}
	case errors.Is(err, gitops.ErrTwoRepositories):
		return []string{"unset GIT_DIR GIT_WORK_TREE"}
	case errors.Is(err, gitops.ErrBare):
		return []string{"git worktree add <path> <branch>"}
	case errors.Is(err, syscall.EROFS):
		return []string{"findmnt --target ."}
	case gitops.NoRoom(err):
		return []string{"df -h .", "df -i ."}
	case errors.Is(err, airlock.ErrBusy):
		return []string{"git airlock status"}
	}
	return nil
}

// nextOf returns the commands that an error of a promotion brings with it.
func nextOf(err error) []string {
	var unreadable *promote.PolicyError
	var unwritable *promote.UnwritableError
	switch {
	case errors.As(err, &unwritable):
		return unwritable.Next()
	case errors.As(err, &unreadable):
		return unreadable.Next
	}
	return nil
}
