package ui

import (
	"errors"
	"fmt"
	"strings"
)

// UsageError is an error in the command line.
type UsageError struct {
	Text    string
	Command string   // the command after "git airlock" whose help explains more; empty for the program's help
	Meant   []string // similar commands, ready to type
}

func (e *UsageError) Error() string { return e.Text }

// Hints returns the next commands.
func (e *UsageError) Hints() []string {
	if len(e.Meant) > 0 {
		return e.Meant
	}
	return []string{strings.Join(strings.Fields("git airlock "+e.Command+" -h"), " ")}
}

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...)}
}

// Within sets the command of a usage error.
func Within(command string, err error) error {
	if usage, ok := errors.AsType[*UsageError](err); ok && usage.Command == "" {
		usage.Command = command
	}
	return err
}
