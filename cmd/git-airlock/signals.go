package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ended says which signal has ended a command.
type ended struct{ signal syscall.Signal }

func (e ended) Error() string { return fmt.Sprintf("ended by signal %d", int(e.signal)) }
func (e ended) Unwrap() error { return context.Canceled }

// untilSignal returns a context that a signal to end cancels. One that is ignored when we begin stays so: that is how
// nohup(1) keeps a command from the end of its terminal, and a shell those that it starts in the background from ^C and ^\.
func untilSignal() (ctx context.Context, stop func()) {
	ends := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	if signal.Ignored(os.Interrupt) {
		signal.Ignore(syscall.SIGQUIT) // the runtime does not tell of this one
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
			signal.Reset(os.Interrupt)
			// What finishes first what it began can be ended by another ^C.
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		cancel(nil)
	}
}

// bySignal adds to an error that a signal is the reason, where it is.
func bySignal(ctx context.Context, err error) error {
	var reason ended
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &reason) {
		return errors.Join(reason, err)
	}
	return err
}

// brokenPipe has what is written to a pipe that nobody reads fail like any other output, in place of the signal by which
// the kernel would end us: for commands that have something to finish. Processes that we start are not concerned.
func brokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
