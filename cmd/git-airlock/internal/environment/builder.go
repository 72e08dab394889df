package environment

import (
	"context"
	"io"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/docker"
)

// Builder prepares the environments for commits of one repository.
type Builder struct {
	Repo       *gitops.Repository
	Config     gitops.Config
	Dry        bool // only print the actions
	Containers *docker.Backend
	Report     Reporter
	Now        func() time.Time
	// Authorities returns the certificates (PEM) of authorities that were added to this machine, and have not expired at a time. The steps of
	// a build trust them.
	Authorities func(time.Time) string
}

// Reporter prints events during a long action, and asks the user questions. Callers of Say pass one sentence, with all text
// from inside escaped.
type Reporter interface {
	Say(format string, args ...any)
	// Hint prints the next commands.
	Hint(commands ...string)
	// Quote prints a line of another program's output, which may contain any bytes.
	Quote(line string)
	// Quoted returns a writer for another program's output, which may contain any bytes. flush ends the last line.
	Quoted() (out io.Writer, flush func())
	// Begin starts a long step. step reports its progress, if it can be counted. end ends it, and can be called more than once.
	Begin(what string) (step func(what string, done, all int), end func())
	// Steps starts the progress of another program that works in several steps.
	Steps() (step func(what string, number, of int, said string), end func())
	// CanAsk reports whether a user can answer questions.
	CanAsk() bool
	// Ask asks a question, and reports whether the user answered yes.
	Ask(ctx context.Context, question string) (bool, error)
}
