package main

import (
	"errors"
	"os"
	"syscall"
)

// outlet is a standard output that remembers that something did not get out: who printed it need not look.
type outlet struct {
	*os.File
	failed error
}

// stdout is where what was asked for goes.
var stdout = &outlet{File: os.Stdout}

// Write implements [io.Writer].
func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.failed == nil && !errors.Is(err, syscall.EPIPE) { // a reader who has seen enough
		o.failed = err
	}
	return n, err
}

// orUntold is what became of a command, or that what it said of that was not heard: its status would tell half of it.
func (o *outlet) orUntold(err error) error {
	var child childStatus
	if o.failed != nil && (err == nil || errors.As(err, &child)) {
		return o.failed
	}
	return err
}
