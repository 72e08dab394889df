/*
Package checking runs the user's check of a commit: a command, in a prison of its own that has exactly the tree of the commit and no
network. The programs that it runs are the agent's, so that the prison shares nothing with the agent's and nothing with the user.
*/
package checking

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/snapshot"
)

// Runner runs checks.
type Runner struct {
	Prisons prisons.Prisons
	Config  gitops.Config
	Now     func() time.Time
	// Running is called when a command begins to run, not for a stored result. It may be nil.
	Running func()
}

// job is one check of one commit.
type job struct {
	Runner
	record airlock.Record
	check  checks.Check
	commit gitops.OID
	tree   gitops.OID
	system string
}

// Run checks the tree of an outer commit. If there is a result for this tree, command and system, it returns that one, unless again is
// set. out receives the escaped output as it comes, and may be nil. If ctx ends before the check, nothing is stored.
func (c Runner) Run(ctx context.Context, r airlock.Record, check checks.Check, commit gitops.OID, again bool, out io.Writer) (found checks.Result, err error) {
	j, err := c.job(ctx, r, check, commit)
	if err != nil {
		return found, err
	}
	if known, err := j.known(again); known != nil || err != nil {
		return result(known), err
	}
	user, err := identity.ResolveUser(c.Config.With(r.Settings)) // before a check of half an hour
	if err != nil {
		return found, err
	}
	unlock, err := j.lock(ctx)
	if err != nil {
		return found, err
	}
	defer unlock()
	if known, err := j.known(again); known != nil || err != nil { // of the check that held the lock
		return result(known), err
	}
	if found, err = j.run(ctx, out); err != nil {
		return found, err
	}
	if err := checks.Keep(c.Prisons.Repo, found); err != nil {
		return found, err
	}
	return found, checks.Record(ctx, c.Prisons.Repo, user.String(), found)
}

// Known returns the result that Run would return for an outer commit without a check, nil if there is none.
func (c Runner) Known(ctx context.Context, r airlock.Record, check checks.Check, commit gitops.OID) (*checks.Result, error) {
	j, err := c.job(ctx, r, check, commit)
	if err != nil {
		return nil, err
	}
	return j.known(false)
}

func (c Runner) job(ctx context.Context, r airlock.Record, check checks.Check, commit gitops.OID) (j job, err error) {
	j = job{Runner: c, record: r, check: check, commit: commit}
	if j.tree, err = c.Prisons.Repo.Tree(ctx, commit); err == nil {
		j.system, err = c.System(ctx, r)
	}
	return j, err
}

// known returns the stored result of a check that ran in this repository, nil if there is none. A note does not count, see [checks.Here].
func (j job) known(again bool) (*checks.Result, error) {
	if again {
		return nil, nil
	}
	here, err := checks.Here(j.Prisons.Repo)
	return checks.In(here[j.tree], j.check, j.system), err
}

func result(known *checks.Result) checks.Result {
	if known == nil {
		return checks.Result{}
	}
	return *known
}

// lock waits for other checks of the airlock. The error wraps [fs.ErrNotExist] if the airlock was cleared meanwhile.
func (j job) lock(ctx context.Context) (unlock func(), err error) {
	store, id := j.Prisons.Store, j.record.ID
	unlock, err = store.TryLockCheck(id)
	if errors.Is(err, airlock.ErrBusy) {
		_, end := j.Prisons.Report.Begin("waiting for another check")
		defer end()
		unlock, err = store.LockCheck(ctx, id)
	}
	if err != nil || id == airlock.NoID {
		return unlock, err
	}
	now, err := store.Load(id)
	if err == nil && now.Phase == airlock.Clearing {
		err = fmt.Errorf("airlock %s: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// run makes the prison, runs the command in it, and removes the prison. The caller holds the lock of checks.
func (j job) run(ctx context.Context, out io.Writer) (done checks.Result, err error) {
	if j.Running != nil {
		j.Running()
	}
	box, err := j.Prisons.OpenCheck(ctx, j.record)
	if err != nil {
		return done, fmt.Errorf("make the prison of the check: %w", err)
	}
	defer func() { err = errors.Join(err, box.Close()) }()
	if err := j.fill(ctx, box); err != nil {
		return done, err
	}
	shown := newOutput(out)
	begun := j.Now()
	done = checks.Result{Tree: j.tree, Command: checks.Digest(j.check.Command), System: j.system, At: ledger.Timestamp(begun)}
	done.Exit, err = j.execute(ctx, box, shown)
	done.Took = j.Now().Sub(begun).Milliseconds()
	shown.Flush()
	if err != nil {
		return done, err
	}
	return done, j.writeLog(done, shown.tail)
}

// fill puts the tree of the commit into the workspace, without leaving anything out.
func (j job) fill(ctx context.Context, box prisons.Check) error {
	step, end := j.Prisons.Report.Begin("taking the commit")
	defer end()
	base := gitops.Head{Commit: j.commit, Tree: j.tree}
	snap, err := snapshot.Take(ctx, j.Prisons.Repo, box.Quarantine, base, nil, j.record.Ghost)
	if err != nil {
		return environment.AdvisePartial(j.Prisons.Config, err)
	}
	step("filling the workspace", 0, 0)
	return snap.Fill(ctx, prisons.WorkspaceIn(box))
}

// execute runs the command, and ends it when its time is over, or when it uses too much space.
func (j job) execute(ctx context.Context, box prisons.Check, shown *output) (status int, err error) {
	limited, cancel := context.WithTimeout(ctx, j.check.Time)
	defer cancel()
	bounded, full, err := j.bounded(limited, box)
	if err != nil {
		return 0, err
	}
	status, err = box.Exec(bounded, prison.Process{Argv: []string{"sh", "-c", j.check.Command}, Stdout: shown, Stderr: shown})
	over := limited.Err() != nil
	why := full()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case why != "" && err != nil:
		shown.Flush()
		fmt.Fprintln(shown, "ended: "+why)
		return killed, nil
	case over && err != nil:
		shown.Flush()
		fmt.Fprintf(shown, "ended after %s\n", j.check.Time)
		return checks.TimeOver, nil
	case err != nil:
		return 0, fmt.Errorf("run the check: %w", err)
	}
	return status, nil
}
