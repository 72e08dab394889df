package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// summary is the document of run --json.
type summary struct {
	Version int          `json:"version"`
	ID      string       `json:"id"`
	Session string       `json:"session"`
	Branch  gitops.Text  `json:"branch"`
	Agent   string       `json:"agent,omitempty"`
	Argv    []string     `json:"argv,omitempty"`
	Exit    int          `json:"exit"` // of the command, as run without --json exits
	Late    bool         `json:"timed_out"`
	Spent   bool         `json:"limit_reached"`
	Seconds float64      `json:"seconds"`
	Message string       `json:"message"` // the end of the command's output, as plain text
	Before  gitops.OID   `json:"before"`  // the branch's commit when the command began
	After   gitops.OID   `json:"after"`   // and when its commits had landed
	Landed  int          `json:"landed"`  // by this run
	Pending int          `json:"pending"`
	Waiting []ui.Waiting `json:"waiting"` // as in status --json
	Holds   []ui.Hold    `json:"holds"`
	Dry     bool         `json:"dry_run,omitempty"` // the command has not run

	record airlock.Record
	begun  time.Time
	output tail
	total  int // commits that had landed when the command began
}

// begin notes the state of the airlock in which the command will run.
func (d *summary) begin(ctx context.Context, s *session.Session, r airlock.Record) error {
	engine := s.Engine(r)
	defer engine.Close()
	state, err := engine.State(ctx)
	if err != nil && state.Promoted == "" { // the rest is of the workspace, and end prints why it cannot be read
		return err
	}
	d.record, d.begun, d.total = r, ui.Now(), state.Landed
	d.ID, d.Session, d.Branch = r.ID, r.Session, r.BranchName()
	d.Before, err = s.Repo.Ref(ctx, r.Branch)
	return err
}

// end completes the document when the command has ended and its commits have landed. err is the error that run returns.
func (d *summary) end(ctx context.Context, s *session.Session, err error) error {
	d.Version, d.Exit, d.Late, d.Spent = ui.DocumentVersion, cmdline.RunStatus(ctx, err), errors.Is(err, errLate), errors.Is(err, errSpent)
	ctx = context.WithoutCancel(ctx) // the document is complete also if the run was interrupted
	d.Seconds = ui.Now().Sub(d.begun).Seconds()
	d.Message = ui.PlainText(string(d.output.kept[max(0, len(d.output.kept)-tailSize):]))
	engine := s.Engine(d.record)
	defer engine.Close()
	state, err := engine.State(ctx)
	if err = session.TellUnread(ctx, state, err, s.Report); err != nil {
		return err
	}
	runs, err := s.Prisons().Runs(ctx, d.record)
	if err != nil {
		return err
	}
	d.Landed, d.Pending, d.Waiting, d.Holds = state.Landed-d.total, state.Pending, cmdline.Waiting(state, false), cmdline.Holds(state.Holds, runs)
	d.After, err = s.Repo.Ref(ctx, d.record.Branch)
	return err
}

// foretell completes the document of a dry run. A new airlock has no id yet.
func (d *summary) foretell(ctx context.Context, s *session.Session) error {
	head, err := s.Repo.Head(ctx)
	if err != nil {
		return err
	}
	r := s.Earlier()
	if r.ID == "" {
		r.Branch = head.Branch
	}
	d.Version, d.ID, d.Session, d.Branch, d.Dry = ui.DocumentVersion, r.ID, r.Session, r.BranchName(), true
	d.Before, err = s.Repo.Ref(ctx, r.Branch)
	d.After = d.Before
	return err
}

// tailSize bounds the output that a summary keeps, in bytes.
const tailSize = 64 << 10

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-tailSize):]...)
	if len(t.kept) > 2*tailSize {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailSize:]...)
	}
	return len(p), nil
}
