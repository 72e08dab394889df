package environment

import (
	"context"
	"io"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/docker"
)

// Builder makes environments for the commits of one repository.
type Builder struct {
	Repo       *gitops.Repository
	Config     gitops.Config
	Dry        bool // only say what would be done
	Containers *docker.Backend
	Report     Reporter
	Now        func() time.Time
}

// Reporter is told what happens while something is done, and asks the user. What it is told as a format is one sentence,
// fit to be shown.
type Reporter interface {
	Say(format string, args ...any)
	// Hint says what to type next.
	Hint(commands ...string)
	// Quote shows a line that another program printed, whatever is in it.
	Quote(line string)
	// Quoted returns a writer for output of another program, whatever is in it. flush ends the last line.
	Quoted() (out io.Writer, flush func())
	// Begin begins a long step. step tells how far it is, where that can be counted; end ends it, and can be called again.
	Begin(what string) (step func(what string, done, all int), end func())
	// Steps begins something that another program does in steps.
	Steps() (step func(what string, number, of int, said string), end func())
	// CanAsk reports whether somebody is there to answer.
	CanAsk() bool
	// Ask asks a question that is answered by yes or no; no answer is no.
	Ask(ctx context.Context, question string) (bool, error)
}
