package promote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// taken is the inner commit that the quarantine holds whole and has accepted.
type taken struct {
	remarks
	tip gitops.OID // the newest one; that of an earlier cycle if the workspace gave nothing new
}

// receive takes the inner main into the quarantine. If the quarantine refuses it, what was taken before stays.
func (e *Engine) receive(ctx context.Context, f facts) (taken, error) {
	before := taken{tip: f.ledger.Newest()}
	if e.Store.WorkspaceGone(e.Record) {
		return before, e.Close() // what is pending can land all the same
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return before, err
	}
	if f.mainErr != nil {
		return refusedAs(before, e.failed(f.mainErr))
	}
	e.progress("taking commits out of the workspace", 0, 0)
	if f.main == "" {
		names, err := exporter.Branches(ctx)
		if err != nil {
			return refusedAs(before, e.failed(err))
		}
		before.remarks = innerMain(names)
		return before, nil
	}
	tip := f.main
	if tip != e.received && tip != f.ledger.Base.Inner {
		var why *gitops.Invalid
		if tip, why, err = e.take(ctx, f, exporter); err != nil {
			return before, err
		}
		if why != nil { // the commits before land
			before.remarks = innerInvalid(why)
		}
		if tip == "" {
			return before, nil
		}
	}
	e.received = tip
	return taken{before.remarks, tip}, nil
}

// refusedAs makes a hold of a refusal; any other error stays one.
func refusedAs(t taken, err error) (taken, error) {
	var invalid *gitops.Invalid
	if errors.As(err, &invalid) {
		t.remarks = innerInvalid(invalid)
		return t, nil
	}
	return t, err
}

// refusal is what the quarantine reported of a tip.
type refusal struct {
	main   gitops.OID
	limits gitops.Limits
	first  string          // the reason for which it refused main
	why    *gitops.Invalid // the reason for the first commit that it refused
	before gitops.OID      // the newest commit that it took; empty if there is none
	until  time.Time       // main is not tried again
}

// refusalShare is how many times longer than the refusal of a tip took it is left alone, if it took long: an agent
// could keep a processor busy with it for ever. Another tip, or other limits, are examined at once.
const refusalShare = 5

// take takes what main reaches into the quarantine, examines all of it, and returns main. If main is refused, it
// returns what comes before the first refused commit, empty if nothing does, and the reason.
func (e *Engine) take(ctx context.Context, f facts, exporter Exporter) (gitops.OID, *gitops.Invalid, error) {
	begun, r := time.Now(), e.refused
	known := r.main == f.main && r.limits == f.settings.Limits
	if known && begun.Before(r.until) {
		return r.before, r.why, nil
	}
	e.refused = refusal{}
	err := e.bring(ctx, f, exporter, f.main, have(f.ledger))
	var invalid *gitops.Invalid
	if !errors.As(err, &invalid) {
		return f.main, nil, err
	}
	if !known || r.first != invalid.Reason {
		r = refusal{main: f.main, limits: f.settings.Limits, first: invalid.Reason, why: invalid}
		if !invalid.Stalled {
			if r, err = e.takeBefore(ctx, f, exporter, r); err != nil {
				return "", nil, err
			}
		}
	}
	if took := time.Since(begun); took > foreseeAfter && (r.why.Limit || r.before != "") {
		r.until = time.Now().Add(refusalShare * took)
	}
	e.refused = r
	return r.before, r.why, nil
}

// takeBefore takes into the quarantine what comes before the first commit that it refuses. Half of the commits are
// tried at a time, in the same way as all of them were: whatever the reason for which all are refused, there is a first
// commit that brings it.
func (e *Engine) takeBefore(ctx context.Context, f facts, exporter Exporter, r refusal) (refusal, error) {
	timed, cancel := context.WithTimeout(ctx, f.settings.Limits.Time)
	defer cancel()
	have := have(f.ledger)
	chain, err := exporter.FirstParents(timed, r.main, have)
	var invalid *gitops.Invalid
	for taken, refused := 0, len(chain); err == nil && refused > 0; { // numbers of commits
		middle := (taken + refused) / 2
		if middle == taken { // found
			r.why = traced(ctx, exporter, chain[taken], r.why)
			break
		}
		tip := chain[middle-1]
		err = e.bring(timed, f, exporter, tip, have)
		switch {
		case err == nil:
			taken, r.before = middle, tip
			have = append(have, tip)
		case errors.As(err, &invalid):
			refused, r.why, err = middle, invalid, nil
		}
	}
	if timed.Err() != nil || errors.As(err, &invalid) {
		return r, ctx.Err() // what was found until then
	}
	return r, err
}

// objectName finds the name of an object in git's messages.
var objectName = regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{40})\b`)

// objectsTraced bounds the objects whose paths are looked for.
const objectsTraced = 3

// traced adds to the reason for which a commit is refused which commit that is, and the path of the object at fault.
func traced(ctx context.Context, exporter Exporter, commit gitops.OID, why *gitops.Invalid) *gitops.Invalid {
	for _, object := range objectName.FindAllString(why.Reason, objectsTraced) {
		if name, err := exporter.PathOf(ctx, commit, gitops.OID(object)); err == nil && name != "" {
			return why.In(fmt.Sprintf("commit %s, %s", commit, gitops.Escape(name)))
		}
	}
	return why.In(fmt.Sprintf("commit %s", commit))
}

// bring brings what an inner commit reaches into the quarantine and examines it. A refused pack is asked for once more
// as a whole: the inner repository may have lost what it had exported.
func (e *Engine) bring(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID) error {
	err := e.transfer(ctx, f, exporter, tip, have)
	var invalid *gitops.Invalid
	if errors.As(err, &invalid) && !invalid.Limit && !invalid.Stalled {
		err = e.transfer(ctx, f, exporter, tip, nil)
	}
	if err != nil {
		return err
	}
	limits := f.settings.Limits
	timed, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	err = e.examine(timed, f, tip, have)
	if timed.Err() != nil && ctx.Err() == nil {
		return gitops.TookTooLong(limits)
	}
	return err
}

// have lists inner commits that the quarantine has whole.
func have(l *ledger.Ledger) []gitops.OID {
	have := []gitops.OID{l.Base.Inner}
	if n := len(l.Landed); n > 0 {
		have = append(have, l.Landed[n-1].Inner)
	}
	if n := len(l.Tail); n > 0 {
		have = append(have, l.Tail[n-1].Inner)
	}
	return have
}

// examine proves that all of an inner commit is in the quarantine, and no larger than the limits.
func (e *Engine) examine(ctx context.Context, f facts, tip gitops.OID, have []gitops.OID) error {
	pending := map[gitops.OID]bool{}
	for _, t := range f.ledger.Tail {
		pending[t.Inner] = true
	}
	limits := f.settings.Limits
	whole := gitops.OID("") // the base, where the snapshot left nothing out
	if !e.Record.Part {
		whole = f.ledger.Base.Outer
	}
	links, err := f.inside.History(ctx, tip, func(id gitops.OID) bool { return id == whole || pending[id] || f.ledger.Has(id) }, limits)
	if err == nil {
		err = f.inside.Walk(ctx, links, limits, nil)
	}
	if errors.Is(err, gitops.ErrMany) {
		if err = f.quarantine.Connected(ctx, tip, have, limits); err == nil {
			err = f.quarantine.CheckSizes(ctx, tip, have, limits)
		}
	} else if len(links) == 1 {
		return err // a single commit can add no more than the limit of paths: see fileCount
	}
	if err != nil {
		return err
	}
	commit, err := f.inside.Commit(ctx, tip)
	if err == nil {
		_, err = f.inside.CheckFiles(ctx, commit.Tree, limits)
	}
	return err
}

// foreseeAfter is how long an export runs before the workspace is asked what is still to come: a short export is not
// worth another process.
const foreseeAfter = time.Second

// transfer has the exporter write a pack, and the quarantine take it in.
func (e *Engine) transfer(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	all.Go(func() { foresee(ctx, f, exporter, tip, have, cancel) })
	err := e.pipe(ctx, f, exporter, tip, have)
	var foreseen *gitops.Invalid
	if errors.As(context.Cause(ctx), &foreseen) {
		return foreseen
	}
	return err
}

// foresee ends a long export if the sizes that are claimed inside are above the limits.
func foresee(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(foreseeAfter):
	}
	var invalid *gitops.Invalid
	if errors.As(exporter.CheckSizes(ctx, tip, have, f.settings.Limits), &invalid) {
		cancel(invalid)
	}
}

func (e *Engine) pipe(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID) error {
	limits := f.settings.Limits
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		timed, cancel := context.WithTimeout(ctx, limits.Time)
		defer cancel()
		err := exporter.Pack(timed, tip, have, w)
		if timed.Err() != nil && ctx.Err() == nil {
			err = gitops.TookTooLong(limits)
		}
		w.CloseWithError(err)
		packed <- err
	}()
	err := f.quarantine.Receive(ctx, r, limits)
	r.Close()
	// What went wrong inside explains why the pack was refused.
	if inside := <-packed; inside != nil && !errors.Is(inside, io.ErrClosedPipe) {
		return e.failed(inside)
	}
	return err
}

// Exporter is how refs and packs come out of a workspace. Everything it returns was written by an agent. An
// error that is a [gitops.Invalid] says what is wrong inside; any other, that looking failed.
type Exporter interface {
	// Branches lists the inner refs that match the patterns (all branches without any), at most 1,000.
	Branches(ctx context.Context, patterns ...string) ([]gitops.InnerRef, error)
	// Main is the tip of the inner main, empty if there is none.
	Main(ctx context.Context) (gitops.OID, error)
	// Resolve is the commit an inner branch or revision stands for.
	Resolve(ctx context.Context, name string) (gitops.OID, error)
	// Count counts the commits reachable from want and from none of have.
	Count(ctx context.Context, want string, have ...string) (int, error)
	// Uncommitted counts the paths changed and not committed.
	Uncommitted(ctx context.Context) (int, error)
	// Usage measures the workspace and the agent's home. With an error, it is what could be measured, if anything, which is not the whole.
	Usage(ctx context.Context) (gitops.Usage, error)
	// Pack writes what want reaches and none of have does.
	Pack(ctx context.Context, want gitops.OID, have []gitops.OID, out io.Writer) error
	// FirstParents lists the first-parent history of want down to have, the oldest commit first.
	FirstParents(ctx context.Context, want gitops.OID, have []gitops.OID) ([]gitops.OID, error)
	// PathOf returns a path at which a commit has an object, empty if it has none.
	PathOf(ctx context.Context, commit, object gitops.OID) (string, error)
	// CheckSizes refuses what Pack would write by the sizes that are said inside of what is in it, which takes less time.
	CheckSizes(ctx context.Context, want gitops.OID, have []gitops.OID, limits gitops.Limits) error
	// Watch sends whenever the inner refs may have changed, until ctx ends.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Close ends everything the exporter started.
	Close() error
}
