package ui

import (
	"errors"
	"os"
	"syscall"
)

// Output is a standard output that records write errors, so that callers need not check each write.
type Output struct {
	*os.File
	failed error
}

// Stdout is the destination of a command's requested output.
var Stdout = &Output{File: os.Stdout}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.failed == nil && !errors.Is(err, syscall.EPIPE) { // a reader who has seen enough
		o.failed = err
	}
	return n, err
}

// Lost returns the first error of a write, nil if all was written.
func (o *Output) Lost() error { return o.failed }
