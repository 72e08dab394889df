package ui

import (
	"errors"
	"fmt"
	"strings"
)

// UsageError is a command line that cannot be understood.
type UsageError struct {
	Text    string
	Command string   // after "git airlock", whose help says more; empty for the program's own
	Meant   []string // what somebody may have meant, to be typed
}

func (e *UsageError) Error() string { return e.Text }

// Hints are what to type next.
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

// Within says of which command an error about the usage is.
func Within(command string, err error) error {
	var usage *UsageError
	if errors.As(err, &usage) && usage.Command == "" {
		usage.Command = command
	}
	return err
}
