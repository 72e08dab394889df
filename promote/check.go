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
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
)

// checkedAlone is the number of commits up to which one processor checks all of them, because a second one would not save time.
const checkedAlone = 64

// check runs the gate on commits, parents first. It checks parts of a long list at the same time. It returns the
// results on the commits that the gate could check. If the error is a [inner.Invalid], the next commit is invalid.
func (e *Engine) check(ctx context.Context, f facts, w *lazyBridge, pairs []ledger.Pair) (results []ledger.GateResult, err error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	size := max(checkedAlone, len(pairs)/min(runtime.NumCPU(), 4)+1)
	parts := make([][]ledger.GateResult, len(pairs)/size+1)
	errs := make([]error, len(parts))
	if len(parts) > 1 {
		w.across.Forget() // the parts read the packs on their own
	}
	var one sync.Mutex
	done := 0
	next := func() { // counts a commit
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
		results = append(results, parts[n]...)
		if errs[n] != nil {
			return results, errs[n] // the error of the first commit
		}
	}
	return results, nil
}

// checkPart checks some commits, and calls next before each. When the cycle's budget is used up, a later cycle checks the rest.
func (e *Engine) checkPart(ctx context.Context, f facts, w *lazyBridge, pairs []ledger.Pair, next func()) ([]ledger.GateResult, error) {
	k := newChecker(ctx, f, w)
	defer func() { k.close() }()
	var passed []ledger.GateResult
	for _, p := range pairs {
		next()
		if k.rules.Later() {
			commit, err := k.inspector.Commit(ctx, p.Outer)
			if err != nil {
				return passed, err
			}
			passed = append(passed, ledger.GateResult{Commit: p.Outer, Inner: p.Inner, Subject: commit.Subject(), Findings: []policy.Finding{}, Late: true})
			continue
		}
		commit, subject, err := inspect(ctx, f, k.inspector, p)
		if err == nil {
			err = e.files.Grow(ctx, k.inspector, commit.Tree, commit.Changes, f.settings.Limits)
		}
		if err != nil {
			return passed, err
		}
		found, err := k.check(ctx, f, commit)
		if err != nil {
			return passed, err
		}
		passed = append(passed, ledger.GateResult{Commit: p.Outer, Inner: p.Inner, Subject: subject, Findings: found})
		if k.lost && ctx.Err() == nil {
			k = newChecker(ctx, f, w)
		}
	}
	return passed, nil
}

// checker checks some commits one after the other. It has its own inspector, because a rule that does not return
// keeps using the inspector.
type checker struct {
	inspector *quarantine.Inspector
	rules     *policy.Gate
	lost      bool // a rule that did not return in time still uses the inspector
}

func newChecker(ctx context.Context, f facts, w *lazyBridge) *checker {
	inspector := w.bridge.Inspect(ctx, nil)
	w.across.Lend(inspector)
	return &checker{inspector: inspector, rules: policy.New(f.rules.settings, f.rules.facts, inspector)}
}

// close closes the inspector, unless a rule still uses it.
func (k *checker) close() {
	if !k.lost {
		_ = k.inspector.Close()
	}
}

// ruleGrace is the time that a rule has to notice that its context has ended.
const ruleGrace = 200 * time.Millisecond

// check runs the rules on a commit. It returns soon after ctx ends or the time for a commit is over, even if a rule
// ignores its context. Such a rule continues in the background and keeps the inspector.
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

// inspect reads the data of a commit that the gate needs. The commit's changes are those since its first parent.
func inspect(ctx context.Context, f facts, inspector *quarantine.Inspector, p ledger.Pair) (policy.Commit, string, error) {
	commit, err := inspector.Commit(ctx, p.Outer)
	if err != nil {
		return policy.Commit{}, "", err
	}
	pc := policy.Commit{ID: p.Inner, Tree: commit.Tree, Message: commit.Message, Encoding: commit.Encoding, Accepted: f.rules.decisions.AcceptedOf(p.Inner), Fetched: f.rules.fetched[p.Inner]}
	if len(commit.Parents) > 0 {
		parent, err := inspector.Commit(ctx, commit.Parents[0])
		if err != nil {
			return pc, "", err
		}
		pc.ParentTree = parent.Tree
	}
	pc.Changes, err = inspector.DiffStrict(ctx, pc.ParentTree, pc.Tree, f.settings.Limits)
	if invalid, ok := errors.AsType[*inner.Invalid](err); ok {
		named := *invalid
		named.Reason = fmt.Sprintf("commit %s: %s", p.Inner, invalid.Reason)
		err = &named
	}
	return pc, commit.Subject(), err
}

// ruleset is the input of the policy gate in one cycle.
type ruleset struct {
	settings    policy.Settings
	facts       policy.Facts
	fetched     map[gitops.OID][]string // by inner commit, see [ledger.Windows.Fetched]
	decisions   ledger.Decisions
	check       checks.Check // of trees
	ignores     *ignore.Rules
	fingerprint func() string                      // returns a text that is equal for equal rules
	results     func() (ledger.GateResults, error) // of earlier cycles; callers must not change it
	broken      error                              // why the team's policy cannot be read: nothing may land
}

// readRules reads the current settings of the user and the team, and the user's decisions.
func (e *Engine) readRules(ctx context.Context, f facts) (ruleset, error) {
	var r ruleset
	var err error
	if r.decisions, err = ledger.ReadDecisions(e.Dir()); err != nil {
		return r, err
	}
	var used []gitops.OID
	e.teams.Repo, e.teams.Ref = e.Repo, f.refs.team
	if r.settings, used, r.broken = e.teams.Apply(ctx, f.config, f.settings.Policy); ctx.Err() != nil {
		return r, ctx.Err()
	}
	if r.check, err = checks.Of(f.config, r.settings); err != nil {
		return r, err
	}
	r.ignores = ignore.RulesOf(e.Repo, e.Dir())
	ignores, config := r.ignores, f.config
	e.ignores = sync.OnceValue(func() []string { return ignores.Files(config) })
	host := hostgit.Files{Settings: f.origins, GitDir: e.Repo.GitDir, CommonDir: e.Repo.CommonDir}
	r.facts = policy.Facts{Ghost: e.Record.Ghost, Top: e.Repo.Top, Config: f.config, Scratch: e.bridgeDir(), Ignores: r.ignores, Host: host, Links: &e.links,
		Programs: sync.OnceValue(func() hostgit.Programs { return hostgit.Read(config, host, e.Repo.Top) })}
	if e.Egress != nil {
		r.facts.Placeholders = e.Egress.Placeholders()
	}
	if e.Record.Inside {
		r.facts.Workspace = e.Record.Workspace
	}
	if e.Record.Setup != nil {
		r.facts.Recipe = e.Record.Setup.Names
	}
	go r.facts.Programs() // while the history is read
	now := r              // later steps of the cycle add results
	r.fingerprint = sync.OnceValue(func() string { return fingerprint(config, used, now, ignores.State(e.ignores())) })
	stored := r.fingerprint
	r.results = sync.OnceValues(func() (ledger.GateResults, error) { return ledger.ReadGateResults(e.Dir(), stored, f.ledger) })
	return r, nil
}

// program identifies the build of the program, because another build may have other rules.
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
	fmt.Fprintf(h, "%q %q %q %q %q %q %+v\n", teams, r.facts.Workspace, r.facts.Top, r.facts.Ghost, r.facts.Placeholders, r.facts.Recipe, r.decisions.Accepted)
	return hex.EncodeToString(h.Sum(nil))
}
