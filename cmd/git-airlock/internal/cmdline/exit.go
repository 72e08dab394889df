package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/words"
)

// childStatus is the exit status of the command that visit or run ran.
type childStatus struct{ status int }

func (s *childStatus) Error() string {
	return fmt.Sprintf("the command ended with status %d", s.status)
}

// ownFailure is a failure of visit or run itself, as opposed to the status of the command.
type ownFailure struct{ error }

func (e ownFailure) Unwrap() error { return e.error }

// shown is an error that the command's output has shown already.
type shown struct{ error }

func (e shown) Unwrap() error { return e.error }

// Shown marks an error that the command's output has shown already. Only its exit status is needed.
func Shown(err error) error { return shown{err} }

// isSaid reports whether no message may follow an error: it is nil, or only an exit status.
func isSaid(err error) bool { return err == nil || is[*childStatus](err) || is[shown](err) }

// EndedWith returns the error of a command that ran another one, which ended with a status. It is nil for status 0.
func EndedWith(status int) error {
	if status == 0 {
		return nil
	}
	return &childStatus{status}
}

// typedEnd marks the error of a command that ended by the signal of a key at its terminal.
type typedEnd struct {
	error
	key    string
	status int // the command's own, which can be 0
}

func (e typedEnd) Unwrap() error { return e.error }

// EndedByKey returns the key with which the user ended the command of visit or run, such as ^C, and the command's own exit status. The key is
// empty if no key did.
func EndedByKey(err error) (key string, status int) {
	typed, _ := errors.AsType[typedEnd](err)
	return typed.key, typed.status
}

// ChildStatus returns the exit status of a command that visit or run ran. known is false if it was not run to its end.
func ChildStatus(err error) (status int, known bool) {
	if child, ok := errors.AsType[*childStatus](err); ok {
		return child.status, true
	}
	return 0, err == nil
}

var (
	// errNothingAsked is the error of git airlock without a command, which prints the usage and ends with status 1, as git does.
	errNothingAsked = errors.New("no command")
	errHelped       = errors.New("help was asked for, and given")
	// ErrUnread reports that the reader of the output has gone. The exit status is the one of SIGPIPE.
	ErrUnread = errors.New("nobody reads the output")
)

// ExitStatus returns the exit status of a command that ended with err. This function assigns all exit statuses.
func ExitStatus(err error) int {
	var child *childStatus
	var signaled ended
	switch {
	case err == nil, errors.Is(err, errHelped):
		return 0
	case errors.As(err, &child):
		return child.status
	case errors.As(err, &signaled):
		return 128 + int(signaled.signal)
	case errors.Is(err, ErrUnread):
		return 128 + int(syscall.SIGPIPE)
	case errors.Is(err, context.Canceled): // one of our git processes got the terminal's ^C before us
		return 128 + int(syscall.SIGINT)
	case is[ownFailure](err) && errors.Is(err, prison.ErrNotExecutable):
		return 126
	case is[ownFailure](err) && errors.Is(err, prison.ErrNotFound):
		return 127
	case is[ownFailure](err):
		return 125
	case is[*ui.UsageError](err), is[*session.RequestError](err), is[*gitops.SettingError](err),
		is[*teams.PolicyError](err), is[recipe.Errors](err), is[*network.RuleError](err):
		return 2
	case is[*environment.Refusal](err), is[*daemon.BusyError](err):
		return 3
	case errors.Is(err, session.ErrNoAirlock):
		return 4
	case is[*prison.Unavailable](err), is[*identity.NoRange](err), is[*prisons.BrokenPromise](err):
		return 5
	}
	return 1
}

// RunStatus returns the exit status of a visit or run that ended with err. ctx is that of the command.
func RunStatus(ctx context.Context, err error) int {
	return ExitStatus(bySignal(ctx, asOwnFailure(err)))
}

// is reports whether err is an error of type T, or was caused by one.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// report prints an error, unless the user has seen it already, and returns the exit status.
func report(w io.Writer, err error) int {
	if isSaid(err) {
		return ExitStatus(err)
	}
	if broken, ok := errors.AsType[*prisons.BrokenPromise](err); ok {
		PrintReport(w, false, broken.Report)
	}
	for _, line := range linesOf(err) {
		ui.Say(w, "%s", gitops.Text(line))
	}
	ui.Hint(w, next(err)...)
	return ExitStatus(err)
}

// next returns the commands to type after an error.
func next(err error) []string {
	var usage *ui.UsageError
	if is[*environment.Advised](err) || is[*environment.Refusal](err) || !errors.As(err, &usage) {
		return session.Next(err)
	}
	return usage.Hints()
}

// orWriteError returns the write error if output was lost and no message would follow. Otherwise it returns err.
func orWriteError(err error) error {
	if lost := ui.Stdout.Lost(); lost != nil && isSaid(err) {
		return lost
	}
	return err
}

// GitSaid marks an error message of git about the user's arguments. Its lines are kept, because no agent wrote them.
func GitSaid(err error) error { return gitSaid{err} }

// gitSaid is the mark of [GitSaid].
type gitSaid struct{ error }

func (e gitSaid) Unwrap() error { return e.error }

// linesOf returns the lines of an error: one line, except for messages of git.
func linesOf(err error) []string {
	if git, ok := errors.AsType[*gitops.Error](err); ok && is[gitSaid](err) && git.Said() != "" {
		return append([]string{strings.TrimPrefix(git.Lines[0], "fatal: ")}, git.Lines[1:]...)
	}
	if errors.Is(err, context.Canceled) {
		return []string{"interrupted"} // instead of "context canceled", which means nothing to users
	}
	return []string{words.OneLine(err)}
}
