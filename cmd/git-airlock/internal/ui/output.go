package ui

import (
	"errors"
	"os"
	"syscall"
)

// Output is a standard output that remembers that something did not get out: who printed it need not look.
type Output struct {
	*os.File
	failed error
}

// Stdout is where what was asked for goes.
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
