package daemon

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// logLimit is the size in bytes at which a daemon's log is emptied.
const logLimit = 1 << 20

// BoundedLog is a log that is emptied when it is full. It must be bounded, because an agent can cause log messages.
type BoundedLog struct{ *os.File }

// Write implements [io.Writer].
func (l BoundedLog) Write(p []byte) (int, error) {
	if info, err := l.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > logLimit {
		_ = l.Truncate(0) // the file is open for appending
	}
	return l.File.Write(p)
}

// OpenLog opens a log for appending.
func OpenLog(name string) (*os.File, error) {
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	if info, err := os.Lstat(name); err == nil && info.Size() > logLimit {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(name, flags, 0o600)
}

// StartError reports that a daemon did not start.
type StartError struct{ Last string } // Last is the last error in its log, or empty

func (e *StartError) Error() string {
	if e.Last == "" {
		return "the daemon did not start; its log is empty"
	}
	return fmt.Sprintf("the daemon did not start; the last error in its log: %s", gitops.Text(e.Last))
}

// Next returns the command that tries again.
func (e *StartError) Next() []string { return []string{"git airlock start"} }

// NotStarted returns the error of a daemon that did not start: the one with which git refuses the repository without the settings of the current
// command, or the last one in the daemon's log. A path of the log would not help, because a new airlock is removed with its log.
func NotStarted(repo *gitops.Repository, log string) error {
	if err := repo.CheckLater(context.Background()); err != nil {
		return err
	}
	content, _ := os.ReadFile(log) // a log that cannot be read counts as an empty one
	return &StartError{lastError(string(content))}
}

// lastError returns the last message of a log with the prefix of errors, after which hints may follow, or else the last line.
func lastError(log string) (last string) {
	found := false
	for line := range strings.Lines(log) {
		text, isError := strings.CutPrefix(strings.TrimRight(line, "\n"), "airlock: ")
		if found = found || isError; isError || !found {
			last = text
		}
	}
	return last
}
