package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/network"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/teams"
	"github.com/git-airlock/git-airlock/snapshot/scan"
)

// childStatus is the exit status of the command that visit or run ran.
type childStatus struct{ status int }

func (s *childStatus) Error() string {
	return fmt.Sprintf("the command ended with status %d", s.status)
}

// ownFailure is a failure of visit or run itself, as opposed to the status of the command.
type ownFailure struct{ error }

func (e ownFailure) Unwrap() error { return e.error }

// told is an error that the command's output has shown already. Only its exit status is needed.
type told struct{ error }

func (e told) Unwrap() error { return e.error }

var (
	errUnhealthy = errors.New("no prison can be made here")
	// errNothingAsked is the error of git airlock without a command, which prints the usage and ends with status 1, as git does.
	errNothingAsked = errors.New("no command")
	errHelped       = errors.New("help was asked for, and given")
	errNotKept      = errors.New("a promise is not kept")
	// errUnread reports that the reader of the output has gone. The exit status is the one of SIGPIPE.
	errUnread = errors.New("nobody reads the output")
)

// exitStatus returns the exit status of a command that ended with err. This function assigns all exit statuses.
func exitStatus(err error) int {
	var child *childStatus
	var signaled ended
	switch {
	case err == nil, errors.Is(err, errHelped):
		return 0
	case errors.As(err, &child):
		return child.status
	case errors.As(err, &signaled):
		return 128 + int(signaled.signal)
	case errors.Is(err, errUnread):
		return 128 + int(syscall.SIGPIPE)
	case errors.Is(err, context.Canceled): // a git of ours got the terminal's ^C before us
		return 128 + int(syscall.SIGINT)
	case is[ownFailure](err) && errors.Is(err, prison.ErrNotExecutable):
		return 126
	case is[ownFailure](err) && errors.Is(err, prison.ErrNotFound):
		return 127
	case is[ownFailure](err):
		return 125
	case is[*ui.UsageError](err), is[*session.RequestError](err), is[*promote.SettingError](err), is[*scan.SettingError](err),
		is[*teams.PolicyError](err), is[recipe.Errors](err), is[*network.RuleError](err):
		return 2
	case is[*environment.Refusal](err):
		return 3
	case errors.Is(err, session.ErrNoAirlock):
		return 4
	case is[*prison.Unavailable](err), is[*identity.NoRange](err), is[*prisons.BrokenPromise](err):
		return 5
	}
	return 1
}

// is reports whether err is an error of type T, or was caused by one.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// report prints an error, unless the user has seen it already, and returns the exit status.
func report(w io.Writer, err error) int {
	var broken *prisons.BrokenPromise
	if err == nil || is[*childStatus](err) || is[told](err) {
		return exitStatus(err)
	}
	if errors.As(err, &broken) {
		printReport(w, false, escapeReport(broken.Report))
	}
	for _, line := range linesOf(err) {
		ui.Say(w, "%s", gitops.Text(line))
	}
	ui.Hint(w, next(err)...)
	return exitStatus(err)
}

// next returns the commands to type after an error.
func next(err error) []string {
	var usage *ui.UsageError
	if is[*environment.Advised](err) || is[*environment.Refusal](err) || !errors.As(err, &usage) {
		return session.Next(err)
	}
	return usage.Hints()
}

// orWriteError returns the write error if output was lost, since the exit status alone would hide that; otherwise it
// returns err.
func orWriteError(err error) error {
	if lost := ui.Stdout.Lost(); lost != nil && (err == nil || is[*childStatus](err) || is[told](err)) {
		return lost
	}
	return err
}

// gitSaid is an error message of git about the user's arguments. Its lines are kept, because no agent wrote them.
type gitSaid struct{ error }

func (e gitSaid) Unwrap() error { return e.error }

// linesOf returns the lines of an error: one line, except for messages of git.
func linesOf(err error) []string {
	var said gitSaid
	var git *gitops.Error
	if errors.As(err, &said) && errors.As(err, &git) && git.Stderr != "" {
		return append([]string{strings.TrimPrefix(git.Lines[0], "fatal: ")}, git.Lines[1:]...)
	}
	if errors.Is(err, context.Canceled) {
		return []string{"interrupted"} // instead of "context canceled", which means nothing to users
	}
	return []string{err.Error()}
}

// ended is the error of a command that a signal ended.
type ended struct{ signal syscall.Signal }

func (e ended) Error() string { return fmt.Sprintf("ended by signal %d", int(e.signal)) }
func (e ended) Unwrap() error { return context.Canceled }

// untilSignal returns a context that ends with a signal. Signals that were ignored at the start stay ignored: nohup(1) ignores
// SIGHUP for its command, and a shell ignores ^C and ^\ for commands in the background.
func untilSignal() (ctx context.Context, stop func()) {
	ends := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	if signal.Ignored(os.Interrupt) {
		signal.Ignore(syscall.SIGQUIT) // signal.Ignored does not report this one
	} else {
		ends = append(ends, os.Interrupt, syscall.SIGQUIT)
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, ends...)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case s := <-received:
			number, _ := s.(syscall.Signal)
			cancel(ended{number})
			time.Sleep(time.Second) // timeout(1) sends its signal twice
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			// From now on, another ^C or SIGTERM ends the process, even if it is finishing its work.
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(nil)
	}
}

// bySignal adds the signal to an error that it caused.
func bySignal(ctx context.Context, err error) error {
	var reason ended
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &reason) {
		return errors.Join(reason, err)
	}
	return err
}

// brokenPipe makes writes to a pipe without a reader fail with EPIPE, instead of ending the process with SIGPIPE. Commands that
// must finish their work call it. It does not change the processes that they start.
func brokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
