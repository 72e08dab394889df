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
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// taken is the inner commit that the quarantine holds completely and has accepted.
type taken struct {
	remarks
	tip gitops.OID // the newest such commit; from an earlier cycle if the workspace has nothing new
	history.Source
}

// takenBefore returns what an earlier cycle has taken.
func (f facts) takenBefore(tip gitops.OID) taken {
	return taken{tip: tip, Source: history.Source{From: f.before.From, Main: f.before.Main}}
}

// receive copies the inner main, or what the user wants to promote in its place, into the quarantine. If the quarantine refuses it, the previously accepted commits
// stay.
func (e *Engine) receive(ctx context.Context, f facts) (taken, error) {
	if f.options.Known {
		f.before = f.before.OnMain()
		return f.takenBefore(f.before.Inner), nil
	}
	before := taken{tip: f.ledger.Newest()}
	if len(f.ledger.Tail) > 0 {
		before = f.takenBefore(before.tip)
	}
	if e.Store.WorkspaceGone(e.Record) {
		return before, e.closeExporter() // pending commits can still land
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return before, err
	}
	if f.mainErr != nil {
		before.remarks, err = refused(e.failed(f.mainErr))
		return before, err
	}
	e.progress("taking commits out of the workspace", 0, 0)
	if f.main == "" {
		names, err := exporter.Branches(ctx)
		if err != nil {
			before.remarks, err = refused(e.failed(err))
			return before, err
		}
		before.remarks = refusing(hold.InnerMain(names))
		return before, nil
	}
	tip := f.main
	if tip != e.received && tip != f.ledger.Base.Inner {
		var why *inner.Invalid
		if tip, why, err = e.receiveMain(ctx, f, exporter); err != nil {
			return before, err
		}
		if why != nil { // the commits before the refused one land
			before.remarks = refusing(hold.InnerInvalid(why))
		}
		if tip == "" {
			return before, nil
		}
	}
	e.received = tip
	source, err := e.receiveBeside(ctx, f, exporter)
	return taken{before.remarks, tip, source}, err
}

// receiveBeside copies the commits of main into the quarantine, too, if the cycle promotes another line: the plan needs to know which landed commits main
// has. If the quarantine refuses main, it counts as having all that have landed from it.
func (e *Engine) receiveBeside(ctx context.Context, f facts, exporter Exporter) (history.Source, error) {
	s := history.SourceOf(f.options.From, f.main, f.beside)
	if s.Main == "" || f.ledger.Has(s.Main) {
		return s, nil
	}
	err := e.receiveCommits(ctx, f, exporter, s.Main, have(f.ledger))
	if _, ok := errors.AsType[*inner.Invalid](err); ok {
		s.Main, err = f.ledger.Last().Inner, nil
	}
	return s, err
}

// refusal is the quarantine's result for a refused tip.
type refusal struct {
	main   gitops.OID
	limits inner.Limits
	first  string         // the reason for which it refused main
	why    *inner.Invalid // the reason for which it refused the first invalid commit
	before gitops.OID     // the newest commit that it accepted; empty if there is none
	until  time.Time      // time before which main is not tried again
}

// refusalShare is the pause after an examination that took long and ended with a refusal, as a multiple of its duration. Without a pause, an
// agent could keep a processor busy for ever. Another tip is examined at once, and so is the same tip under other limits.
const refusalShare = 5

// receiveMain copies the commits that main reaches into the quarantine, examines all of them, and returns main. If main is
// refused, it returns the commit before the first refused one, or empty, and the reason.
func (e *Engine) receiveMain(ctx context.Context, f facts, exporter Exporter) (gitops.OID, *inner.Invalid, error) {
	begun, r := time.Now(), e.refused
	known := r.main == f.main && r.limits == f.settings.Limits
	if known && begun.Before(r.until) {
		return r.before, r.why, nil
	}
	e.refused = refusal{}
	err := e.receiveCommits(ctx, f, exporter, f.main, have(f.ledger))
	var invalid *inner.Invalid
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

// takeBefore copies the commits before the first refused one into the quarantine. It finds them by bisection, and receives each half in the same
// way as all commits before. This works for every reason of a refusal, because some first commit introduces the reason.
func (e *Engine) takeBefore(ctx context.Context, f facts, exporter Exporter, r refusal) (refusal, error) {
	timed, cancel := context.WithTimeout(ctx, f.settings.Limits.Time)
	defer cancel()
	have := have(f.ledger)
	chain, err := exporter.FirstParents(timed, r.main, have)
	var invalid *inner.Invalid
	for taken, refused := 0, len(chain); err == nil && refused > 0; { // taken and refused count commits
		middle := (taken + refused) / 2
		if middle == taken { // chain[taken] is the first refused one
			r.why = traced(ctx, exporter, chain[taken], r.why)
			break
		}
		tip := chain[middle-1]
		err = e.receiveCommits(timed, f, exporter, tip, have)
		switch {
		case err == nil:
			taken, r.before = middle, tip
			have = append(have, tip)
		case errors.As(err, &invalid):
			refused, r.why, err = middle, invalid, nil
		}
	}
	if timed.Err() != nil || errors.As(err, &invalid) {
		return r, ctx.Err() // the bisection is incomplete
	}
	return r, err
}

// objectName finds the name of an object in git's messages.
var objectName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{40})\b`) })

// objectsTraced bounds the number of objects whose paths are looked for.
const objectsTraced = 3

// traced adds the commit, and the path of the object at fault, to the reason of a refusal.
func traced(ctx context.Context, exporter Exporter, commit gitops.OID, why *inner.Invalid) *inner.Invalid {
	for _, object := range objectName().FindAllString(why.Reason, objectsTraced) {
		if name, err := exporter.PathOf(ctx, commit, gitops.OID(object)); err == nil && name != "" {
			return why.In(fmt.Sprintf("commit %s, %s", commit, gitops.Text(name)))
		}
	}
	return why.In(fmt.Sprintf("commit %s", commit))
}

// receiveCommits copies the commits that an inner commit reaches into the quarantine and examines them. If a pack is refused,
// a complete one is exported: the inner repository may have lost objects that it had exported before.
func (e *Engine) receiveCommits(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID) error {
	err := e.transfer(ctx, f, exporter, tip, have)
	if invalid, ok := errors.AsType[*inner.Invalid](err); ok && !invalid.Limit && !invalid.Stalled {
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
		return inner.TookTooLong(limits)
	}
	return err
}

// have lists inner commits that the quarantine has completely.
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

// examine checks that the quarantine has all objects of an inner commit and that they are within the limits.
func (e *Engine) examine(ctx context.Context, f facts, tip gitops.OID, have []gitops.OID) error {
	pending := gitops.SetOf(ledger.Inners(f.ledger.Tail)...)
	limits := f.settings.Limits
	whole := gitops.OID("") // the base, if the snapshot left no file out
	if !e.Record.Partial {
		whole = f.ledger.Base.Outer
	}
	links, err := f.inside.History(ctx, tip, func(id gitops.OID) bool { return id == whole || pending[id] || f.ledger.Has(id) }, limits)
	if err == nil {
		err = f.inside.Walk(ctx, links, limits, nil)
	}
	if errors.Is(err, quarantine.ErrMany) {
		if err = f.quarantine.Connected(ctx, tip, have, limits); err == nil {
			err = f.quarantine.CheckSizes(ctx, tip, have, limits)
		}
	} else if len(links) == 1 {
		return err // the limit of paths bounds the files that a single commit can add: see [quarantine.FileCount]
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

// foreseeAfter is the duration of an export after which [foresee] reads the sizes of the objects. A short export is not worth another process.
const foreseeAfter = time.Second

// transfer lets the exporter write a pack and the quarantine receive it.
func (e *Engine) transfer(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	all.Go(func() { foresee(ctx, f, exporter, tip, have, cancel) })
	err := e.pipe(ctx, f, exporter, tip, have)
	if foreseen, ok := errors.AsType[*inner.Invalid](context.Cause(ctx)); ok {
		return foreseen
	}
	return err
}

// foresee ends a long export if the sizes that the inner repository claims are above the limits.
func foresee(ctx context.Context, f facts, exporter Exporter, tip gitops.OID, have []gitops.OID, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(foreseeAfter):
	}
	if invalid, ok := errors.AsType[*inner.Invalid](exporter.CheckSizes(ctx, tip, have, f.settings.Limits)); ok {
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
			err = inner.TookTooLong(limits)
		}
		w.CloseWithError(err)
		packed <- err
	}()
	err := f.quarantine.Receive(ctx, r, limits)
	r.Close()
	// An error inside explains why the pack was refused.
	if inside := <-packed; inside != nil && !errors.Is(inside, io.ErrClosedPipe) {
		return e.failed(inside)
	}
	return err
}

// Exporter reads refs and packs from a workspace. Everything that it returns was written by an agent. An error that
// is a [inner.Invalid] describes an invalid inner repository. Any other error means that reading failed.
type Exporter interface {
	// Branches lists the inner refs that match the patterns, at most 1,000. Without patterns, it lists all branches.
	Branches(ctx context.Context, patterns ...string) ([]inner.Ref, error)
	// Main returns the tip of the inner main, or empty if there is none.
	Main(ctx context.Context) (gitops.OID, error)
	// Resolve returns the commit that an inner branch or revision names.
	Resolve(ctx context.Context, name string) (gitops.OID, error)
	// Count counts the commits that want reaches and that no commit of have reaches.
	Count(ctx context.Context, want string, have ...string) (int, error)
	// Uncommitted counts the changed paths that are not committed, except for those in the given places.
	Uncommitted(ctx context.Context, except ...inner.Place) (int, error)
	// Places lists the agent's other worktrees and repositories, with the work in them.
	Places(ctx context.Context) ([]inner.Place, error)
	// Operation names the merge, rebase or similar operation that the agent's git is in the middle of, and the ref of HEAD. Each may be empty.
	Operation(ctx context.Context) (name, head string, err error)
	// Usage measures the workspace and the agent's home. With an error, the result covers only what could be
	// measured.
	Usage(ctx context.Context) (inner.Usage, error)
	// Pack writes the objects that want reaches and that no commit of have reaches.
	Pack(ctx context.Context, want gitops.OID, have []gitops.OID, out io.Writer) error
	// FirstParents lists the first-parent history of want down to have, oldest commit first.
	FirstParents(ctx context.Context, want gitops.OID, have []gitops.OID) ([]gitops.OID, error)
	// PathOf returns a path at which a commit has an object, or empty.
	PathOf(ctx context.Context, commit, object gitops.OID) (string, error)
	// CheckSizes refuses the pack that Pack would write if the sizes that the inner repository claims exceed the
	// limits. It takes less time than Pack.
	CheckSizes(ctx context.Context, want gitops.OID, have []gitops.OID, limits inner.Limits) error
	// Watch sends whenever the inner refs may have changed, until ctx ends.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Close ends everything the exporter started.
	Close() error
}
