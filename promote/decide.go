package promote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// ErrNotHeld says that nothing is held which an acceptance would let pass.
var ErrNotHeld = errors.New("nothing that waits is held by it")

// Decided is a commit about which the user decided.
type Decided struct {
	Commit  gitops.OID // the outer one; the inner one if there is no other
	Subject string     // fit to be shown
}

// pause keeps cycles from being made and looks at where everything stands, until unlock.
func (e *Engine) pause(ctx context.Context) (c *cycle, unlock func(), err error) {
	release, err := e.Store.LockFile(ctx, e.Record.ID, cycleLock)
	if err != nil {
		return nil, nil, err
	}
	c = &cycle{Engine: e}
	unlock = func() {
		_ = c.close() // the next cycle releases what this one cannot
		release()
	}
	if c.outcome, err = readOutcome(e.Dir()); err == nil {
		for _, step := range []func(context.Context) error{c.configure, c.look, c.rules} {
			if err = step(ctx); err != nil {
				break
			}
		}
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return c, unlock, nil
}

// Accept lets the commits that are held now pass, as far as the acceptances go, and returns them. What comes later
// is held again. [ErrNotHeld] says that an acceptance is of no use.
func (e *Engine) Accept(ctx context.Context, wanted []policy.Acceptance) ([]Decided, error) {
	c, unlock, err := e.pause(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var passed []Decided
	for _, w := range wanted {
		a := Accepted{Acceptance: w, At: now()}
		for _, t := range c.ledger.tail {
			v := c.gate.verdicts.last(t.outer)
			if v == nil || !slices.ContainsFunc(v.Findings, func(f policy.Finding) bool { return f.Action == policy.Hold && f.Covers(w) }) {
				continue
			}
			a.Commits = append(a.Commits, t.inner)
			if d := (Decided{v.Commit, v.Subject}); !slices.Contains(passed, d) {
				passed = append(passed, d)
			}
		}
		if len(a.Commits) == 0 {
			return nil, fmt.Errorf("%q: %w", gitops.Escape(w.String()), ErrNotHeld)
		}
		c.gate.decided.Accepted = append(c.gate.decided.Accepted, a)
	}
	return passed, c.gate.decided.write(e.Dir())
}

// Drop leaves commits out from now on: their names are those of pending commits, or at least seven digits of inner
// ones that wait. [ErrNotPending] says that one is neither.
func (e *Engine) Drop(ctx context.Context, names []string) ([]Decided, error) {
	c, unlock, err := e.pause(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c.inner = c.outcome.Inner; c.inner == "" {
		c.inner = c.accepted()
	}
	p, err := c.plan(ctx)
	if err != nil {
		return nil, err
	}
	var left []Decided
	for _, name := range names {
		link, outer, err := p.find(ctx, name)
		if err != nil {
			return nil, err
		}
		inner, err := c.inside.Commit(ctx, link.Commit)
		if err != nil {
			return nil, err
		}
		subject := inner.Subject()
		d := Dropped{Commit: link.Commit, Subject: subject, At: now()}
		if len(link.Parents) > 0 {
			d.Parent = link.Parents[0]
		}
		c.gate.decided.Dropped = append(c.gate.decided.Dropped, d)
		left = append(left, Decided{outer, subject})
	}
	return left, c.gate.decided.write(e.Dir())
}

// leastDigits is how short a commit's name may be.
const leastDigits = 7

// Digits tells whether a name can be that of an inner commit.
func Digits(name string) bool {
	return len(name) >= leastDigits && strings.Trim(strings.ToLower(name), "0123456789abcdef") == ""
}

// find finds the one commit that waits and has a name: its outer or its inner one, or a revision of git's that stands
// for the outer one.
func (p *plan) find(ctx context.Context, name string) (gitops.Link, gitops.OID, error) {
	revision, _ := p.Repo.Commit(ctx, name)
	outer := map[gitops.OID]gitops.OID{}
	for _, t := range p.ledger.tail {
		outer[t.inner] = t.outer
	}
	var found []gitops.Link
	for _, l := range p.links {
		o := outer[l.Commit]
		if o != "" && o == revision || Digits(name) && strings.HasPrefix(string(l.Commit), strings.ToLower(name)) {
			found = append(found, l)
		}
	}
	if len(found) != 1 || p.drops(found[0].Commit) {
		return gitops.Link{}, "", fmt.Errorf("commit %q: %w", gitops.Escape(name), ErrNotPending)
	}
	if o := outer[found[0].Commit]; o != "" {
		return found[0], o, nil
	}
	return found[0], found[0].Commit, nil
}
