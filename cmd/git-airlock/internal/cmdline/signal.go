package cmdline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// ended is the error of a command that a signal ended.
type ended struct{ signal syscall.Signal }

func (e ended) Error() string { return fmt.Sprintf("ended by signal %d", int(e.signal)) }
func (e ended) Unwrap() error { return context.Canceled }

// Is makes a prison hang up its processes, which kills them less abruptly than the end of a time limit.
func (e ended) Is(target error) bool { return target == prison.ErrHungUp }

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

// bySignal adds the signal to an error that it caused. The terminal's ^C also ends other processes, and a write to one of them then fails.
func bySignal(ctx context.Context, err error) error {
	var reason ended
	if (errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE)) && errors.As(context.Cause(ctx), &reason) {
		return errors.Join(reason, err)
	}
	return err
}

// KeepWorking makes writes to a pipe without a reader fail with EPIPE, instead of ending the process with SIGPIPE. Commands that
// must finish their work call it. It does not change the processes that they start.
func KeepWorking() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
