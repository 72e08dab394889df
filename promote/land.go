package promote

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/pause"
)

// landed is the result of the landing.
type landed struct {
	remarks
	onto     gitops.OID // the branch's tip after the landing; empty if nothing landed
	uncopied gitops.OID // see [ledger.Outcome]
	count    int
	// unoffered reports that no commit is pending any more, and that the next cycle builds those that conflict.
	unoffered bool
	// unchecked is the commit to check next; nil if there is none.
	unchecked *checks.Wanted
}

func (l landed) entered(o ledger.Outcome, now time.Time) ledger.Outcome {
	if l.onto != "" {
		o.Onto, o.Uncopied = l.onto, l.uncopied
	}
	o.Holds = slices.Clone(o.Holds)
	for i := range o.Holds {
		if l.unoffered && o.Holds[i].Reason == ledger.Conflict {
			o.Holds[i].Next = []string{"git airlock promote"} // the ref pending, which the user would merge, does not exist yet
		}
	}
	o.Unchecked = l.unchecked
	return l.added(o.Land(l.count, now))
}

// land lands the built commits. Commits that something holds wait as pending. Commits that can land together with all notes (see
// [refs.together]) are not made pending first, which saves a transaction.
func (e *Engine) land(ctx context.Context, f facts, o ledger.Outcome, p planned, j judged, d delivered, w *lazyBridge) (landed, error) {
	to, waits, err := e.newestLandable(ctx, f, o, p, j)
	var c checked
	if err == nil {
		c, err = e.checked(ctx, f, p, j, w, to)
		waits.holds = append(waits.holds, c.holds...)
	}
	to, at := c.to, f.refs
	if err != nil || to == "" || !at.together(to, f.ledger.PendingTip()) {
		var announced error
		at, announced = e.announce(ctx, f.ledger, at, d)
		err = errors.Join(err, announced)
	}
	if err != nil || to == "" {
		return landed{remarks: waits, unchecked: c.next}, err
	}
	done, err := lander{e, f, d, w, c.refused, o.Held(ledger.Conflict) || j.later || p.Postpones()}.landTo(ctx, at, to)
	done.holds, done.unchecked = append(waits.holds, done.holds...), c.next
	return done, err
}

// together reports whether one transaction can land the pending commits up to a commit, and make the notes of all pending commits visible.
// newest is the newest pending commit. The ref pending names it already, or it lands and the transaction removes the ref.
func (at refs) together(to, newest gitops.OID) bool { return to == newest || at.pending == newest }

// newestLandable returns the newest commit that may land now, or empty, and the reasons why the others wait.
func (e *Engine) newestLandable(ctx context.Context, f facts, o ledger.Outcome, p planned, j judged) (gitops.OID, remarks, error) {
	if len(f.ledger.Tail) == 0 {
		return "", remarks{}, nil
	}
	positions, err := hold.Positions(ctx, e.Repo, e.Record, f.refs.tip, f.refs.promoted)
	if err != nil {
		return "", remarks{}, err
	}
	waits := remarks{holds: append(positions, e.review(ctx, f)...)}
	if len(positions) > 0 || o.Apart || o.Onto != f.refs.tip {
		waits.holds = hold.WithLock(e.Repo.GitDir, waits.holds)
		return "", waits, nil
	}
	return f.ledger.NewestAllowed(p.target, j.mayLand), waits, nil
}

// lander lands pending commits.
type lander struct {
	engine    *Engine
	facts     facts
	delivered delivered
	bridge    *lazyBridge
	refused   map[gitops.OID]bool // by airlock.check
	more      bool                // another cycle is needed, because the first commit that waits then conflicts or was not checked yet
}

// move moves the branch to a pending commit, and so lands it and all before it.
func (s lander) move(ctx context.Context, at refs, to gitops.OID) (landed, error) {
	e, l := s.engine, s.facts.ledger
	op, err := s.operation(ctx, at, to)
	if err != nil {
		return landed{}, err
	}
	updates := []gitops.RefUpdate{{Ref: e.Record.Ref("promoted"), Old: at.promoted, New: to}, {Ref: e.Record.Ref(operation.Ref), Old: at.ops, New: op}}
	if to == l.PendingTip() && at.pending != "" {
		updates = append(updates, gitops.RefUpdate{Ref: e.Record.Ref("pending"), Old: at.pending})
	}
	err = land.Land(ctx, e.Repo, land.Landing{
		Branch: e.Record.Branch, Old: at.tip, New: to, First: at.noteUpdate(s.delivered, notesRefs), Refs: updates,
		Message: "airlock: land from " + e.Record.ID, Begun: e.Record.Base, Dir: e.Dir(), Config: s.facts.config, Inspector: s.bridge.across,
	})
	if err != nil {
		return landed{}, err
	}
	done := landed{onto: to, count: l.Land(to)}
	if len(l.Tail) > 0 {
		done.uncopied = s.since(at)
	}
	if s.more {
		done.retry, done.unoffered = retrySoon, len(l.Tail) == 0
	}
	return done, nil
}

// errSpent means that git used up its processor time when a landing was tried, now or before.
var errSpent = errors.New("git needs more processor time than allowed to land it")

func spent(err error) bool { return gitops.Spent(err) || errors.Is(err, errSpent) }

// try is move, unless the options spare a landing for which git used up its processor time. It remembers each such landing.
func (s lander) try(ctx context.Context, at refs, to gitops.OID) (landed, error) {
	e, inner := s.engine, s.facts.ledger.InnerOf(to)
	if inner == "" {
		return s.move(ctx, at, to)
	}
	known := func(id gitops.OID) bool { return id == inner }
	if s.facts.options.Spared && slices.ContainsFunc(e.spent, known) {
		return landed{}, errSpent
	}
	done, err := s.move(ctx, at, to)
	if e.spent = slices.DeleteFunc(e.spent, known); gitops.Spent(err) {
		e.spent = append(e.spent, inner)
	}
	return done, err
}

// since returns the branch's tip before the landings whose commits [Engine.redeliver] must copy when the ref pending is removed.
func (s lander) since(at refs) gitops.OID {
	if s.facts.before.Onto == at.tip {
		return cmp.Or(s.facts.before.Uncopied, at.tip)
	}
	return at.tip // the user has committed since the earlier landings, so these were some time ago
}

// operation returns the commit that records the landing. It is drafted, or given to the repository now.
func (s lander) operation(ctx context.Context, at refs, to gitops.OID) (gitops.OID, error) {
	tail := s.facts.ledger.Tail
	end := 1 + slices.IndexFunc(tail, func(p ledger.Pair) bool { return p.Outer == to })
	op, err := s.engine.operation(ctx, s.facts, at, s.bridge, s.delivered, tail[:end])
	if err != nil || op == s.delivered.op {
		return op, err
	}
	return op, s.bridge.bridge.Give(ctx, s.bridge.across, "", nil, op)
}

// landTo lands the pending commits up to a commit. If the user's files are in the way of some, it lands the commits before those.
func (s lander) landTo(ctx context.Context, at refs, to gitops.OID) (landed, error) {
	e, l := s.engine, s.facts.ledger
	if e.blocker.RecentlyChanged(e.Repo.Top, s.facts.now) {
		_, err := e.announce(ctx, l, at, s.delivered)
		return landed{remarks: remarks{retry: retrySoon}}, err
	}
	if e.filter.Pauses(s.facts.now, s.facts.config) {
		_, err := e.announce(ctx, l, at, s.delivered)
		return landed{}, errors.Join(err, e.filter.Err)
	}
	e.progress("landing", 0, 0)
	if to == l.PendingTip() { // otherwise the ref pending stays
		if err := e.redeliver(ctx, s.facts, s.bridge, at, to); err != nil {
			return landed{}, err
		}
	}
	done, err := s.try(ctx, at, to)
	if !errors.Is(err, errSpent) { // it was tried
		e.filter = e.filter.After(err, time.Now(), s.facts.config) // git may have been at work for minutes
	}
	e.command = e.command.After(err, s.facts.now)
	if err == nil {
		return done, nil
	}
	at, announced := e.announce(ctx, l, at, s.delivered)
	if announced != nil {
		return landed{}, announced
	}
	var collision *land.CollisionError
	var locked *gitops.LockedError
	_, failed := errors.AsType[*land.FilterError](err)
	switch {
	case failed, spent(err):
		return s.landBeforeFilter(ctx, at, to, err)
	case e.command.Lasts(s.facts.now):
		return landed{remarks: locking(hold.CommandAtWork(e.command.CommandError), s.facts.before, s.facts.now)}, nil
	case errors.As(err, &collision):
		e.blocker = pause.Blocker{Paths: collision.Paths}
		done, err := s.landBeforePaths(ctx, at, to, collision.Paths)
		done.holds = hold.WithLock(e.Repo.GitDir, append(done.holds, e.Collision(ctx, collision.Paths)))
		return done, err
	case errors.Is(err, land.ErrIndexLocked):
		return landed{remarks: locking(hold.IndexLocked(e.Repo.GitDir), s.facts.before, s.facts.now)}, nil
	case errors.As(err, &locked):
		return landed{remarks: locking(hold.RefLocked(locked), s.facts.before, s.facts.now)}, nil
	}
	return retried(err)
}

// landBeforeFilter lands some of the pending commits before the first one at which a filter fails, git is too slow or a file cannot be created: half of
// them, a quarter, and so on. The next cycle goes on from there. If none lands, the error or the next cycle's hold names the first one.
func (s lander) landBeforeFilter(ctx context.Context, at refs, to gitops.OID, cause error) (landed, error) {
	steps, err := s.engine.Repo.Steps(ctx, at.tip, to)
	for end := len(steps) / 2; end > 0 && err == nil; end /= 2 {
		done, failed := landed{}, cause
		if !s.refused[steps[end-1]] {
			done, failed = s.try(ctx, at, steps[end-1])
		}
		if failed == nil {
			s.engine.filter, done.retry = pause.Filter{}, retrySoon
			return done, nil
		}
		if _, again := errors.AsType[*land.FilterError](failed); !again && !spent(failed) {
			return retried(failed)
		}
		cause = failed
	}
	if err != nil || len(steps) == 0 {
		return landed{}, errors.Join(err, cause)
	}
	failed, _ := errors.AsType[*land.FilterError](cause)
	if inner := s.facts.ledger.InnerOf(steps[0]); inner != "" && failed != nil && failed.Uncreated {
		s.engine.filter = pause.Filter{}
		s.engine.uncreated.Add(inner, cause) // the next cycle holds it and lands the others
		return landed{remarks: remarks{retry: retrySoon}}, nil
	}
	if spent(cause) {
		cause = errSpent // the same words after each cycle, whether it has tried again or not
	}
	s.engine.filter.Err = hold.Unlanded(steps[0], cause, spent(cause)) // the cycles of the pause return it, too
	return landed{}, s.engine.filter.Err
}

// landBeforePaths lands the pending commits before the first one that changes one of the paths.
func (s lander) landBeforePaths(ctx context.Context, at refs, to gitops.OID, paths []string) (landed, error) {
	e := s.engine
	steps, err := e.Repo.Steps(ctx, at.tip, to)
	if err != nil {
		return landed{}, err
	}
	touching, err := e.Repo.Steps(ctx, at.tip, to, paths[:min(len(paths), 100)]...)
	if err != nil {
		return landed{}, err
	}
	end := len(steps) - 1
	if len(touching) > 0 {
		end = slices.Index(steps, touching[0])
	}
	// A path can be in the way although no commit changes it, such as a user's folder where a file must be. Then each try
	// lands one commit less than the try before.
	for ; end > 0; end-- {
		if s.refused[steps[end-1]] {
			continue
		}
		done, err := s.move(ctx, at, steps[end-1])
		if err == nil {
			return done, nil
		}
		if _, again := errors.AsType[*land.CollisionError](err); !again {
			return retried(err)
		}
	}
	return landed{}, nil
}

// retried returns a request for another cycle soon if a git command of the user prevented the landing, and the error otherwise.
func retried(err error) (landed, error) {
	if errors.Is(err, land.ErrUnfinished) || errors.Is(err, land.ErrElsewhere) ||
		errors.Is(err, gitops.ErrRefMoved) || errors.Is(err, land.ErrIndexLocked) {
		return landed{remarks: remarks{retry: retrySoon}}, nil
	}
	return landed{}, err
}
