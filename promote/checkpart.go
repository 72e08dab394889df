package promote

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// checker looks at some commits, one after the other. Its inspector is its own: a rule that does not end keeps it.
type checker struct {
	*cycle
	look  *gitops.Inspector
	rules *policy.Gate
	lost  bool // a rule still works with the inspector
}

func (c *cycle) checker(ctx context.Context) *checker {
	look := c.bridge.Inspect(ctx, nil)
	return &checker{cycle: c, look: look, rules: policy.New(c.gate.settings, c.gate.facts, look)}
}

// close ends the inspector, unless it is in use.
func (k *checker) close() {
	if !k.lost {
		_ = k.look.Close()
	}
}

// checkPart lets a gate of its own look at some commits, and calls next before each. It returns how many it has passed. When
// that is enough for one cycle, the rest is left for a later one.
func (c *cycle) checkPart(ctx context.Context, pairs []pair, said []Verdict, next func()) (int, error) {
	k := c.checker(ctx)
	defer func() { k.close() }()
	for n, p := range pairs {
		next()
		if k.rules.Later() {
			commit, err := k.look.Commit(ctx, p.outer)
			if err != nil {
				return n, err
			}
			said[n] = Verdict{Commit: p.outer, Inner: p.inner, Subject: commit.Subject(), Findings: []policy.Finding{}, Late: true}
			continue
		}
		commit, subject, err := c.inspect(ctx, k.look, p)
		if err == nil {
			err = c.grows(ctx, k.look, commit)
		}
		if err != nil {
			return n, err
		}
		found, err := k.check(ctx, commit)
		if err != nil {
			return n, err
		}
		said[n] = Verdict{Commit: p.outer, Inner: p.inner, Subject: subject, Findings: found}
		if k.lost && ctx.Err() == nil {
			k = c.checker(ctx)
		}
	}
	return len(pairs), nil
}

// ruleGrace is how long a rule may take to see that it is not wanted any more.
const ruleGrace = 200 * time.Millisecond

// check lets the rules look at a commit. It returns soon after ctx ends or the time for a commit is over, also in the middle of
// a rule that does not look at its context. Such a rule goes on in the background, with the inspector.
func (k *checker) check(ctx context.Context, commit policy.Commit) ([]policy.Finding, error) {
	type answer struct {
		found []policy.Finding
		err   error
	}
	limited, cancel := context.WithTimeout(ctx, k.gate.settings.Time())
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		found, err := k.rules.Check(limited, commit)
		done <- answer{found, err}
	}()
	var a answer
	select {
	case a = <-done:
	case <-limited.Done():
		select {
		case a = <-done:
		case <-time.After(ruleGrace):
			k.lost = true
			a.err = limited.Err()
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case a.err != nil && limited.Err() != nil:
		return k.rules.TooLong(commit), nil
	}
	return a.found, a.err
}
