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
)

// export brings the inner main into the quarantine. A [gitops.Invalid] says that the quarantine refused it.
func (c *cycle) export(ctx context.Context) error {
	if c.Store.WorkspaceGone(c.Record) {
		return c.Close() // what is pending can land all the same
	}
	exporter, err := c.open(ctx)
	if err != nil {
		return err
	}
	main, err := c.main, c.mainErr
	if err != nil {
		return c.failed(err)
	}
	c.at("taking commits out of the workspace", 0, 0)
	if main == "" {
		refs, err := exporter.Branches(ctx)
		if err != nil {
			return c.failed(err)
		}
		c.hold(c.innerMain(refs))
		return nil
	}
	if main != c.received && main != c.base.inner {
		taken, err := c.receive(ctx, exporter, main)
		var invalid *gitops.Invalid
		if taken == "" || err != nil && !errors.As(err, &invalid) {
			return err
		}
		if invalid != nil { // the commits before land
			c.hold(c.innerInvalid(invalid))
		}
		main = taken
	}
	c.received, c.inner = main, main
	return nil
}

// wanted is the inner commit to be promoted.
func (c *cycle) wanted(ctx context.Context) (gitops.OID, error) {
	if c.Store.WorkspaceGone(c.Record) {
		return "", nil
	}
	exporter, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	if c.options.From != "" {
		return exporter.Resolve(ctx, c.options.From)
	}
	return exporter.Main(ctx)
}

// refusal is what the quarantine said of a tip.
type refusal struct {
	main   gitops.OID
	limits gitops.Limits
	first  string          // what it said of main
	why    *gitops.Invalid // what it said of the first commit that it refused
	before gitops.OID      // the newest commit that it took; empty if there is none
	until  time.Time       // main is not tried again
}

// refusalShare is how many times longer than it took to refuse a tip it is left alone, if that took long: an agent could have
// a processor kept busy with it for ever. Another tip, and other limits, are looked at at once.
const refusalShare = 5

// receive takes what main reaches into the quarantine, looks at all of it, and returns main. With a [gitops.Invalid] it is what
// comes before the first commit that is refused, empty if nothing does.
func (c *cycle) receive(ctx context.Context, exporter Exporter, main gitops.OID) (taken gitops.OID, err error) {
	begun, r := time.Now(), c.refused
	known := r.main == main && r.limits == c.settings.Limits
	if known && begun.Before(r.until) {
		return r.before, r.why
	}
	c.refused = refusal{}
	err = c.take(ctx, exporter, main)
	var invalid *gitops.Invalid
	if !errors.As(err, &invalid) {
		return main, err
	}
	if !known || r.first != invalid.Reason {
		r = refusal{main: main, limits: c.settings.Limits, first: invalid.Reason, why: invalid}
		if !invalid.Stalled {
			if err := c.takeBefore(ctx, exporter, &r); err != nil {
				return "", err
			}
		}
	}
	if took := time.Since(begun); took > foreseeAfter && (r.why.Limit || r.before != "") {
		r.until = time.Now().Add(refusalShare * took)
	}
	c.refused = r
	return r.before, r.why
}

// takeBefore takes into the quarantine what comes before the first commit that it refuses. Half of the commits are tried at a time,
// in the same way as all of them were: whatever is the reason for which all are refused, there is a first commit that brings it.
func (c *cycle) takeBefore(ctx context.Context, exporter Exporter, r *refusal) error {
	timed, cancel := context.WithTimeout(ctx, c.settings.Limits.Time)
	defer cancel()
	have := c.have()
	chain, err := exporter.FirstParents(timed, r.main, have)
	var invalid *gitops.Invalid
	for taken, refused := 0, len(chain); err == nil && refused > 0; { // numbers of commits
		middle := (taken + refused) / 2
		if middle == taken { // found
			r.why = c.traced(ctx, exporter, chain[taken], r.why)
			break
		}
		tip := chain[middle-1]
		if err = c.transfer(timed, exporter, tip, have); err == nil {
			err = c.examine(timed, tip, have)
		}
		switch {
		case err == nil:
			taken, r.before = middle, tip
			have = append(have, tip)
		case errors.As(err, &invalid):
			refused, r.why, err = middle, invalid, nil
		}
	}
	if timed.Err() != nil || errors.As(err, &invalid) {
		return ctx.Err() // what was found until then
	}
	return err
}

// objectName finds the name of an object in what git says.
var objectName = regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{40})\b`)

// traced adds to the reason for which a commit is refused which one that is, and the path of the object that is to blame.
func (c *cycle) traced(ctx context.Context, exporter Exporter, commit gitops.OID, why *gitops.Invalid) *gitops.Invalid {
	for _, object := range objectName.FindAllString(why.Reason, objectsTraced) {
		if name, err := exporter.PathOf(ctx, commit, gitops.OID(object)); err == nil && name != "" {
			return why.In(fmt.Sprintf("commit %s, %s", commit, gitops.Escape(name)))
		}
	}
	return why.In(fmt.Sprintf("commit %s", commit))
}

// objectsTraced bounds the objects whose paths are looked for.
const objectsTraced = 3

func (c *cycle) take(ctx context.Context, exporter Exporter, main gitops.OID) error {
	have := c.have()
	if err := c.transfer(ctx, exporter, main, have); err != nil {
		var invalid *gitops.Invalid
		if !errors.As(err, &invalid) || invalid.Limit || invalid.Stalled {
			return err
		}
		// The inner repository may have lost what it had exported; then everything comes out again.
		if err := c.transfer(ctx, exporter, main, nil); err != nil {
			return err
		}
	}
	return c.examine(ctx, main, have)
}

// examine proves that all of main is in the quarantine, and no larger than the limits.
func (c *cycle) examine(ctx context.Context, main gitops.OID, have []gitops.OID) error {
	limits := c.settings.Limits
	timed, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	err := c.inspectAll(timed, main, have)
	if timed.Err() != nil && ctx.Err() == nil {
		return gitops.TookTooLong(limits)
	}
	return err
}

func (c *cycle) inspectAll(ctx context.Context, main gitops.OID, have []gitops.OID) error {
	pending := map[gitops.OID]bool{}
	for _, t := range c.ledger.tail {
		pending[t.inner] = true
	}
	limits := c.settings.Limits
	whole := gitops.OID("") // the base, where the snapshot left nothing out
	if !c.Record.Part {
		whole = c.base.outer
	}
	links, err := c.inside.History(ctx, main, func(id gitops.OID) bool { return id == whole || pending[id] || c.ledger.has(id) }, limits)
	if err == nil {
		err = c.inside.Walk(ctx, links, limits, nil)
	}
	if errors.Is(err, gitops.ErrMany) {
		if err = c.q.Connected(ctx, main, have, limits); err == nil {
			err = c.q.CheckSizes(ctx, main, have, limits)
		}
	} else if len(links) == 1 {
		return err // one alone can add no more than the limit of paths: see grows
	}
	if err != nil {
		return err
	}
	commit, err := c.inside.Commit(ctx, main)
	if err == nil {
		_, err = c.inside.CheckFiles(ctx, commit.Tree, limits)
	}
	return err
}

// have are inner commits that the quarantine has whole.
func (c *cycle) have() []gitops.OID {
	have := []gitops.OID{c.base.inner}
	if n := len(c.ledger.landed); n > 0 {
		have = append(have, c.ledger.landed[n-1].inner)
	}
	if n := len(c.ledger.tail); n > 0 {
		have = append(have, c.ledger.tail[n-1].inner)
	}
	return have
}

// foreseeAfter is how long an export goes on before it is asked what it is going to bring: those that are soon done are
// not worth another process.
const foreseeAfter = time.Second

// transfer has the exporter write a pack, and the quarantine take it in.
func (c *cycle) transfer(ctx context.Context, exporter Exporter, main gitops.OID, have []gitops.OID) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	all.Go(func() { c.foresee(ctx, exporter, main, have, cancel) })
	err := c.pipe(ctx, exporter, main, have)
	var foreseen *gitops.Invalid
	if errors.As(context.Cause(ctx), &foreseen) {
		return foreseen
	}
	return err
}

// foresee ends an export that takes its time, if what it says inside of what is to come is more than is allowed.
func (c *cycle) foresee(ctx context.Context, exporter Exporter, main gitops.OID, have []gitops.OID, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(foreseeAfter):
	}
	var invalid *gitops.Invalid
	if errors.As(exporter.CheckSizes(ctx, main, have, c.settings.Limits), &invalid) {
		cancel(invalid)
	}
}

func (c *cycle) pipe(ctx context.Context, exporter Exporter, main gitops.OID, have []gitops.OID) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		timed, cancel := context.WithTimeout(ctx, c.settings.Limits.Time)
		defer cancel()
		err := exporter.Pack(timed, main, have, w)
		if timed.Err() != nil && ctx.Err() == nil {
			err = gitops.TookTooLong(c.settings.Limits)
		}
		w.CloseWithError(err)
		packed <- err
	}()
	err := c.q.Receive(ctx, r, c.settings.Limits)
	r.Close()
	// What went wrong inside explains why the pack was refused.
	if inside := <-packed; inside != nil && !errors.Is(inside, io.ErrClosedPipe) {
		return c.failed(inside)
	}
	return err
}

// promisedPause is how long a remote is left alone that was asked for what it promised.
const promisedPause = time.Minute

// fetchPromised fetches what the user's commits since the base have only promised, in a partial clone. It tells whether
// there may be more to read than before; why there is not, what fails for want of it says.
func (e *Engine) fetchPromised(ctx context.Context, onto gitops.OID) bool {
	if time.Since(e.asked) < promisedPause {
		return false
	}
	e.asked = time.Now()
	fetched, err := e.Repo.FetchPromised(ctx, onto, e.Record.Base)
	return fetched && err == nil
}

func (e *Engine) open(ctx context.Context) (Exporter, error) {
	if e.exporter != nil {
		return e.exporter, nil
	}
	var err error
	e.exporter, err = e.Open(ctx)
	return e.exporter, err
}

// failed gives up an exporter that could not even look, so that the next cycle opens another.
func (e *Engine) failed(err error) error {
	var invalid *gitops.Invalid
	if !errors.As(err, &invalid) {
		_ = e.Close()
	}
	return err
}
