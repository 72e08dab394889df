package ui

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/term"
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
	if err != nil && o.failed == nil && !errors.Is(err, syscall.EPIPE) { // the reader may have seen enough
		o.failed = err
	}
	return n, err
}

// Lost returns the first error of a write, nil if all was written.
func (o *Output) Lost() error { return o.failed }

// TerminalSize returns the size of a terminal, or 24 rows of 80 columns if the size cannot be read.
func TerminalSize(f *os.File) (rows, cols int) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || rows <= 0 || cols <= 0 {
		return 24, 80
	}
	return rows, cols
}

// Columns returns the number of columns of a terminal.
func Columns(f *os.File) int {
	_, cols := TerminalSize(f)
	return cols
}
