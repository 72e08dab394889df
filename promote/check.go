package promote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// checkedAlone is the number of commits that are not worth another processor.
const checkedAlone = 64

// check has the gate check commits on the bench, parents first, many of them in parts at the same time. It returns the
// verdicts of those that passed: with an error that is a [gitops.Invalid], the next one must not exist.
func (e *Engine) check(ctx context.Context, f facts, w *bench, pairs []ledger.Pair) (verdicts []ledger.Verdict, err error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	size := max(checkedAlone, len(pairs)/min(runtime.NumCPU(), 4)+1)
	parts := make([][]ledger.Verdict, len(pairs)/size+1)
	errs := make([]error, len(parts))
	var one sync.Mutex
	done := 0
	next := func() {
		one.Lock()
		defer one.Unlock()
		done++
		e.progress("checking commits", done, len(pairs))
	}
	var all sync.WaitGroup
	for n := range parts {
		from, to := n*size, min((n+1)*size, len(pairs))
		all.Go(func() { parts[n], errs[n] = e.checkPart(ctx, f, w, pairs[from:to], next) })
	}
	all.Wait()
	for n := range parts {
		verdicts = append(verdicts, parts[n]...)
		if errs[n] != nil {
			return verdicts, errs[n] // the first commit's
		}
	}
	return verdicts, nil
}

// checkPart checks some commits, and calls next before each. When the work is enough for one cycle, the rest is left to
// a later one.
func (e *Engine) checkPart(ctx context.Context, f facts, w *bench, pairs []ledger.Pair, next func()) ([]ledger.Verdict, error) {
	k := newChecker(ctx, f, w)
	defer func() { k.close() }()
	var passed []ledger.Verdict
	for _, p := range pairs {
		next()
		if k.rules.Later() {
			commit, err := k.look.Commit(ctx, p.Outer)
			if err != nil {
				return passed, err
			}
			passed = append(passed, ledger.Verdict{Commit: p.Outer, Inner: p.Inner, Subject: commit.Subject(), Findings: []policy.Finding{}, Late: true})
			continue
		}
		commit, subject, err := inspect(ctx, f, k.look, p)
		if err == nil {
			err = e.files.grow(ctx, k.look, commit, f.settings.Limits)
		}
		if err != nil {
			return passed, err
		}
		found, err := k.check(ctx, f, commit)
		if err != nil {
			return passed, err
		}
		passed = append(passed, ledger.Verdict{Commit: p.Outer, Inner: p.Inner, Subject: subject, Findings: found})
		if k.lost && ctx.Err() == nil {
			k = newChecker(ctx, f, w)
		}
	}
	return passed, nil
}

// checker checks some commits, one after the other. Its inspector is its own: a rule that does not end keeps it.
type checker struct {
	look  *gitops.Inspector
	rules *policy.Gate
	lost  bool // a rule still works with the inspector
}

func newChecker(ctx context.Context, f facts, w *bench) *checker {
	look := w.bridge.Inspect(ctx, nil)
	w.across.Lend(look)
	return &checker{look: look, rules: policy.New(f.rules.settings, f.rules.facts, look)}
}

// close ends the inspector, unless it is in use.
func (k *checker) close() {
	if !k.lost {
		_ = k.look.Close()
	}
}

// ruleGrace is how long a rule may take to notice that its context has ended.
const ruleGrace = 200 * time.Millisecond

// check has the rules check a commit. It returns soon after ctx ends or the time for a commit is over, also in the
// middle of a rule that does not check its context. Such a rule goes on in the background, with the inspector.
func (k *checker) check(ctx context.Context, f facts, commit policy.Commit) ([]policy.Finding, error) {
	type answer struct {
		found []policy.Finding
		err   error
	}
	limited, cancel := context.WithTimeout(ctx, f.rules.settings.Time())
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

// inspect prepares a commit for the gate: its changes count against its first parent.
func inspect(ctx context.Context, f facts, look *gitops.Inspector, p ledger.Pair) (policy.Commit, string, error) {
	commit, err := look.Commit(ctx, p.Outer)
	if err != nil {
		return policy.Commit{}, "", err
	}
	pc := policy.Commit{ID: p.Inner, Tree: commit.Tree, Message: commit.Message, Encoding: commit.Encoding, Accepted: f.rules.decisions.AcceptedOf(p.Inner)}
	if len(commit.Parents) > 0 {
		parent, err := look.Commit(ctx, commit.Parents[0])
		if err != nil {
			return pc, "", err
		}
		pc.ParentTree = parent.Tree
	}
	pc.Changes, err = look.DiffStrict(ctx, pc.ParentTree, pc.Tree, f.settings.Limits)
	var invalid *gitops.Invalid
	if errors.As(err, &invalid) {
		named := *invalid
		named.Reason = fmt.Sprintf("commit %s: %s", p.Inner, invalid.Reason)
		err = &named
	}
	return pc, commit.Subject(), err
}

// fileCount bounds the files of the newest tree: counted once, and added up from there until that might be too many.
// Files that were removed since are still in it then.
type fileCount struct {
	sync.Mutex
	most int64 // that the newest tree has at most; 0 before they were counted
}

// grow refuses a commit by which a tree comes to have more files than the limit.
func (c *fileCount) grow(ctx context.Context, look *gitops.Inspector, commit policy.Commit, limits gitops.Limits) error {
	added := int64(0)
	for _, change := range commit.Changes {
		if change.Old.Mode == 0 {
			added++
		}
	}
	c.Lock()
	defer c.Unlock()
	if added == 0 || c.most > 0 && c.most+added <= limits.Entries {
		c.most += added
		return nil
	}
	var err error
	c.most, err = look.CheckFiles(ctx, commit.Tree, limits)
	return err
}

// ruleset is what the policy gate goes by in one cycle.
type ruleset struct {
	settings    policy.Settings
	facts       policy.Facts
	decisions   ledger.Decisions
	fingerprint string // equal for equal rules
	broken      error  // the team's policy cannot be read: nothing may land
}

// readRules reads the user's settings, their team's, and what the user accepted, as they are now.
func (e *Engine) readRules(ctx context.Context, f facts) (ruleset, error) {
	var r ruleset
	var err error
	if r.decisions, err = ledger.ReadDecisions(e.Dir()); err != nil {
		return r, err
	}
	var used []gitops.OID
	e.teams.repo, e.teams.ref = e.Repo, f.refs.team
	if r.settings, used, r.broken = e.teams.apply(ctx, f.config, f.settings.Policy); ctx.Err() != nil {
		return r, ctx.Err()
	}
	ignores := e.Repo.Ignores(e.Dir())
	r.facts = policy.Facts{Ghost: e.Record.Ghost, Top: e.Repo.Top, Config: f.config, Scratch: e.bridgeDir(), Ignores: ignores,
		Host: policy.HostFiles{Settings: f.origins, GitDir: e.Repo.GitDir, CommonDir: e.Repo.CommonDir}}
	if e.Record.Inside {
		r.facts.Workspace = e.Record.Workspace
	}
	if e.Record.Setup != nil {
		r.facts.Recipe = e.Record.Setup.Names
	}
	r.fingerprint = fingerprint(f.config, used, r, ignores.State(f.config))
	return r, nil
}

// program tells builds of the program apart: another one may have other rules.
var program = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprint(info)
})

func fingerprint(config gitops.Config, teams []gitops.OID, r ruleset, ignored string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", program())
	for _, key := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(h, "%q=%q\n", key, config[key])
	}
	fmt.Fprintf(h, "%q %q\n", r.facts.State(), ignored)
	fmt.Fprintf(h, "%q %q %q %q %q %+v\n", teams, r.facts.Workspace, r.facts.Top, r.facts.Ghost, r.facts.Recipe, r.decisions.Accepted)
	return hex.EncodeToString(h.Sum(nil))
}
