package recipe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops/bounded"
)

// Error is one thing that is wrong with a recipe. What it quotes is escaped.
type Error struct {
	File    string // where, from the top of the work tree
	Line    int    // 0 if it is nowhere in particular
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// tooMuch is the error for a file that no parser sees, because of a limit that it exceeds.
func tooMuch(file string, err error) *Error {
	var limit *bounded.Error
	if !errors.As(err, &limit) {
		return &Error{File: printable(file), Message: printable(err.Error())}
	}
	return &Error{File: printable(file), Line: limit.Line, Message: limit.Error()}
}

// Errors is all that is wrong with a recipe, from the top to the bottom. There is at least one.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "; ")
}

// Unwrap lets errors.As find the first.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}
