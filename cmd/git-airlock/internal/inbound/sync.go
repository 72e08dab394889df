// Package inbound brings into an airlock's workspace what the user has for the agent: the commit of its snapshot, and newer commits of the
// branch. It searches what goes in for secrets. Git runs there as the agent. Nothing on the host writes into the workspace.
package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/incoming"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/snapshot/scan"
	"github.com/git-airlock/git-airlock/words"
)

// Request is the input of a sync.
type Request struct {
	Prisons prisons.Prisons
	Engine  *promote.Engine
	Record  airlock.Record
	Exclude ignore.Patterns // files that the agent does not get
	// Screen gets the findings in what the agent would get. Its error ends the sync.
	Screen func(scan.Report) error
	// Wait is called with the refusal when the agent's work is in the way, once for each reason. If it is not nil, the sync then waits
	// instead of refusing.
	Wait func(error)
	// Later is what the daemon brings once the agent's work is not in the way any more, if it is in the way now. If it is nil, the sync refuses.
	Later *ledger.Wanted
}

// Postponed reports that a sync waits until the agent's work is not in the way.
type Postponed struct{ Obstacle string }

func (p *Postponed) Error() string {
	return p.Obstacle + "; your newer commits come when that is over"
}

const (
	// tries bounds the number of times that a sync begins again because the agent has committed meanwhile.
	tries = 5
	// pause is the time between two tries, in which the agent's git ends.
	pause = 200 * time.Millisecond
	// waitPoll is the pause between two tries of a sync that waits until the agent's work is not in the way.
	waitPoll = time.Second
)

// Sync lands what can land, and then brings the user's newer commits to the agent as one commit. The error is
// [incoming.ErrNothing] if the agent has these commits already, and an [environment.Refusal] if it cannot get them now. In a dry run,
// Sync changes nothing.
func Sync(ctx context.Context, q Request) (*incoming.Change, error) {
	for said := ""; ; {
		change, err := q.locked(ctx)
		if _, refused := errors.AsType[*inner.Refused](err); q.Wait == nil || !refused {
			return change, q.explained(ctx, err)
		}
		if err = q.explained(ctx, err); err.Error() != said {
			said = err.Error()
			q.Wait(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(waitPoll):
		}
	}
}

// locked tries to sync, with the store's lock.
func (q Request) locked(ctx context.Context) (*incoming.Change, error) {
	if q.Prisons.Store.WorkspaceGone(q.Record) {
		return nil, &environment.Refusal{Text: "the workspace " + q.Record.Workspace + " is gone", Next: []string{"git airlock start  # makes it again"}}
	}
	unlock, err := q.Prisons.Store.LockAfter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return q.held(ctx)
}

// held is like Sync, but the caller holds the store's lock, and held does not wait. It ends when another command needs that lock.
func (q Request) held(ctx context.Context) (*incoming.Change, error) {
	ctx, free := q.Prisons.Store.Yielding(ctx)
	defer free()
	w, end, err := q.Prisons.Inside(ctx, q.Record)
	if err != nil {
		return nil, ended(ctx, err)
	}
	defer end() //nolint:errcheck // the result does not depend on how the prison ends
	for n := 0; ; n++ {
		change, err := q.once(ctx, w)
		if n >= tries || !passes(err) || ctx.Err() != nil {
			return change, errors.Join(ended(ctx, err), q.keep(err))
		}
		time.Sleep(pause)
	}
}

// keep records what the daemon must bring after a try with the given error.
func (q Request) keep(err error) error {
	var refused *inner.Refused
	switch {
	case q.Engine.Repo.Dry:
	case err == nil || errors.Is(err, incoming.ErrNothing):
		return ledger.SetWanted(q.Engine.Dir(), nil)
	case errors.As(err, &refused) && q.Later != nil:
		return ledger.SetWanted(q.Engine.Dir(), q.Later)
	}
	return nil
}

// passes reports whether another try in a moment should succeed: the error means that the agent is committing.
func passes(err error) bool {
	var refused *inner.Refused
	return errors.Is(err, incoming.ErrMoved) || errors.As(err, &refused) && (refused.Obstacle == inner.Moved || refused.Obstacle == inner.Locked)
}

// once tries to sync.
func (q Request) once(ctx context.Context, w inner.Workspace) (*incoming.Change, error) {
	if !q.Engine.Repo.Dry {
		if err := finishWithin(ctx, w, q.Engine.Dir(), inner.DefaultLimits.Time); err != nil {
			return nil, err
		}
		if _, err := q.Engine.Drain(ctx, promote.Options{Unchecked: true, Spared: true}); err != nil {
			return nil, err
		}
	}
	s, err := q.Engine.Standing(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	main, err := w.Main(ctx)
	if err != nil {
		return nil, err
	}
	change, err := incoming.Find(ctx, q.Engine, s, main, q.Exclude)
	if err != nil || q.Engine.Repo.Dry {
		return change, err
	}
	found, err := q.scan(ctx, change)
	if err == nil {
		err = q.Screen(found)
	}
	if err != nil {
		return nil, err
	}
	made, err := change.Make(ctx, q.Engine, s)
	if err != nil {
		return nil, err
	}
	if err = moveMain(ctx, w, q.Engine.Dir(), made, s.Settings.Limits.Time); err == nil {
		events.Synced(q.Engine.Dir(), q.Record.Session, change.Outer, len(change.Paths))
	}
	return change, err
}

// scan searches for secrets in the files that the agent would get.
func (q Request) scan(ctx context.Context, c *incoming.Change) (scan.Report, error) {
	settings, err := scan.ReadSettings(ctx, q.Prisons.Repo, q.Prisons.Config)
	if err != nil {
		return scan.Report{}, err
	}
	tree, err := q.Prisons.Repo.Tree(ctx, c.Outer)
	if err != nil {
		return scan.Report{}, err
	}
	return scan.Scanner{Repo: q.Prisons.Repo, Settings: settings, Exclude: q.Exclude, Only: c.Paths, Detect: detectorOf(secrets.Default().Find)}.Tree(ctx, tree)
}

// explained turns an obstacle into a refusal.
func (q Request) explained(ctx context.Context, err error) error {
	var waiting *incoming.Waiting
	var refused *inner.Refused
	var broken *brokenOff
	switch {
	case errors.As(err, &waiting):
		return q.waiting(ctx, waiting)
	case errors.As(err, &refused):
		text, next := obstacle(refused)
		if q.Later != nil {
			return &Postponed{text}
		}
		return &environment.Refusal{Text: text + "; nothing was changed",
			Next: ledger.WithStart([]string{next, "git airlock sync  # once that is done"}, q.Record.Phase == airlock.Running)}
	case errors.As(err, &broken):
		return q.interrupted(broken)
	case errors.Is(err, airlock.ErrWanted):
		return &environment.Refusal{Text: err.Error() + "; nothing was changed", Next: []string{"git airlock sync"}}
	case errors.Is(err, incoming.ErrMoved):
		return &environment.Refusal{Text: "the agent commits all the time, or its newest commits are held", Next: []string{"git airlock status", "git airlock sync"}}
	case errors.Is(err, incoming.ErrBehind):
		return &environment.Refusal{Text: err.Error(), Next: []string{"git airlock visit -- git log --oneline main", "git airlock sync  # once it has committed"}}
	case errors.Is(err, incoming.ErrDeleted):
		return &environment.Refusal{Text: fmt.Sprintf("branch %s does not exist any more", q.Record.BranchName()), Next: []string{"git airlock status"}}
	}
	return err
}

// waiting returns the refusal for pending commits, with the reason why they wait.
func (q Request) waiting(ctx context.Context, w *incoming.Waiting) error {
	text := fmt.Sprintf("%s of the agent's on %s first", words.Count(w.Commits, "commit"), q.Record.BranchName())
	refusal := &environment.Refusal{Text: "sync needs " + text, Next: []string{"git airlock review", "git airlock promote"}}
	state, err := q.Engine.State(ctx)
	if err != nil || len(state.Holds) == 0 {
		return refusal
	}
	hold := state.Holds[0]
	refusal.Text += fmt.Sprintf(": held (%s): %s", hold.Reason, hold.Message)
	if len(hold.Paths) > 0 && !strings.HasSuffix(hold.Message, ": "+hold.Paths[0]) { // the message of some holds ends with a single path
		refusal.Text += ": " + strings.Join(hold.Paths[:min(len(hold.Paths), pathsShown)], ", ")
	}
	refusal.Next = ledger.WithStart(hold.Next, q.Record.Phase == airlock.Running)
	return refusal
}

// pathsShown bounds the number of paths in a message.
const pathsShown = 10

// obstacle returns in words what is in the way in the workspace, and the command that shows it.
func obstacle(r *inner.Refused) (text, next string) {
	next = "git airlock visit -- git status"
	switch r.Obstacle {
	case inner.Unfinished:
		return "the agent's " + cmp.Or(r.Operation(), "operation") + " is in progress", next
	case inner.Elsewhere:
		text, next = "the agent is not on its branch main", "git airlock visit -- git checkout main"
	case inner.Uncommitted:
		text = "the agent has changed files that yours change, and not committed them"
	case inner.Staged:
		text = "the agent has staged changes that are not committed"
	case inner.InTheWay:
		text = "the agent has files of its own where yours would be"
	default:
		text = "the agent's git is at work"
	}
	if paths := words.List(gitops.Escaped(r.Paths), pathsShown); paths != "" {
		text += ": " + paths
	}
	return text, next
}
