package recipe

import (
	"errors"
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops/bounded"
)

// Error is one mistake in a recipe. Quoted text in it is escaped.
type Error struct {
	File    string // path from the top of the work tree
	Line    int    // 0 if the mistake has no line
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// tooMuch returns the error for a file that is not parsed because it exceeds a limit.
func tooMuch(file string, err error) *Error {
	limit, ok := errors.AsType[*bounded.Error](err)
	if !ok {
		return &Error{File: printable(file), Message: printable(err.Error())}
	}
	return &Error{File: printable(file), Line: limit.Line, Message: limit.Error()}
}

// Mistake returns the error for a file as a whole: one that cannot be used, or that is not there.
func Mistake(file, format string, values ...any) error {
	return Errors{{File: printable(file), Message: fmt.Sprintf(format, values...)}}
}

// Errors are all mistakes in a recipe, from top to bottom. There is at least one.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "; ")
}
