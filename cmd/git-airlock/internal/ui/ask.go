package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// CanAsk reports whether standard input and standard error are terminals, so that a user can answer questions.
func CanAsk() bool { return IsTerminal(os.Stdin) && IsTerminal(os.Stderr) }

// Ask asks a yes or no question. No answer means no.
func (r Reporter) Ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(r.To, "airlock: %s [y/N] ", question)
	answer, err := ReadAnswer(ctx, bufio.NewReader(os.Stdin))
	if err != nil {
		fmt.Fprintln(r.To)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// ReadAnswer reads a typed line. It returns early if ctx ends, as on ^C.
func ReadAnswer(ctx context.Context, in *bufio.Reader) (string, error) {
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := in.ReadString('\n')
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
