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

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// gate is the policy gate of one cycle: what it goes by, and what it said.
type gate struct {
	settings policy.Settings
	facts    policy.Facts
	decided  decisions
	verdicts verdicts
	broken   error // the team's policy cannot be read: nothing may land
}

// rules reads what the gate goes by as it is now: the user's settings, their team's, and what the user accepted. What
// was said under other rules of commits that wait is not known any more.
func (c *cycle) rules(ctx context.Context) error {
	var err error
	g := &c.gate
	if g.decided, err = readDecisions(c.Dir()); err != nil {
		return err
	}
	var used []gitops.OID
	c.teams.repo, c.teams.ref = c.Repo, c.teamRef
	if g.settings, used, g.broken = c.teams.apply(ctx, c.config, c.settings.Policy); ctx.Err() != nil {
		return ctx.Err()
	}
	g.facts = policy.Facts{Ghost: c.Record.Ghost, Top: c.Repo.Top, Config: c.config, Scratch: c.bridgeDir(), Ignores: c.Repo.Ignores(c.Dir()),
		Host: policy.HostFiles{Settings: c.origins, GitDir: c.Repo.GitDir, CommonDir: c.Repo.CommonDir}}
	if c.Record.Inside {
		g.facts.Workspace = c.Record.Workspace
	}
	if c.Record.Setup != nil {
		g.facts.Recipe = c.Record.Setup.Names
	}
	g.verdicts, err = readVerdicts(c.Dir(), fingerprint(c.config, used, g.facts, g.decided), c.ledger)
	return err
}

// build tells builds of the program apart: another one may have other rules.
var build = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprint(info)
})

// fingerprint is equal for equal rules.
func fingerprint(config gitops.Config, teams []gitops.OID, f policy.Facts, d decisions) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", build())
	for _, key := range slices.Sorted(maps.Keys(config)) {
		fmt.Fprintf(h, "%q=%q\n", key, config[key])
	}
	fmt.Fprintf(h, "%q %q %q %q %q %+v\n", teams, f.Workspace, f.Top, f.Ghost, f.Recipe, d.Accepted)
	return hex.EncodeToString(h.Sum(nil))
}

// checkedAlone is the number of commits that are not worth another processor.
const checkedAlone = 64

// check lets the gate look at commits that are in the bridge, parents first; many of them in parts at the same time. It
// returns how many it has passed: with an error that is a [gitops.Invalid], the next one must not exist.
func (c *cycle) check(ctx context.Context, pairs []pair) (passed int, err error) {
	if err := c.openBridge(ctx); err != nil {
		return 0, err
	}
	said := make([]Verdict, len(pairs))
	size := max(checkedAlone, len(pairs)/min(runtime.NumCPU(), 4)+1)
	errs := make([]error, len(pairs)/size+1)
	counts := make([]int, len(errs))
	var one sync.Mutex
	done := 0
	next := func() {
		one.Lock()
		defer one.Unlock()
		done++
		c.at("checking commits", done, len(pairs))
	}
	var all sync.WaitGroup
	for n := range errs {
		from, to := n*size, min((n+1)*size, len(pairs))
		all.Go(func() { counts[n], errs[n] = c.checkPart(ctx, pairs[from:to], said[from:to], next) })
	}
	all.Wait()
	for n := range errs {
		passed += counts[n]
		if err = errs[n]; err != nil {
			break // the first commit's
		}
	}
	for _, v := range said[:passed] {
		c.gate.verdicts.add(v)
	}
	return passed, err
}

// inspect prepares a commit for the gate: what it changes is counted against its first parent.
func (c *cycle) inspect(ctx context.Context, look *gitops.Inspector, p pair) (policy.Commit, string, error) {
	commit, err := look.Commit(ctx, p.outer)
	if err != nil {
		return policy.Commit{}, "", err
	}
	pc := policy.Commit{ID: p.inner, Tree: commit.Tree, Message: commit.Message, Encoding: commit.Encoding, Accepted: c.gate.decided.accepted(p.inner)}
	if len(commit.Parents) > 0 {
		parent, err := look.Commit(ctx, commit.Parents[0])
		if err != nil {
			return pc, "", err
		}
		pc.ParentTree = parent.Tree
	}
	pc.Changes, err = look.DiffStrict(ctx, pc.ParentTree, pc.Tree, c.settings.Limits)
	var invalid *gitops.Invalid
	if errors.As(err, &invalid) {
		named := *invalid
		named.Reason = fmt.Sprintf("commit %s: %s", p.inner, invalid.Reason)
		err = &named
	}
	return pc, commit.Subject(), err
}

// grows refuses a commit by which a tree comes to have more files than one may have. How many there are is counted
// once, and added up from there, until that might be too many: files that were removed since are still in it then.
func (c *cycle) grows(ctx context.Context, look *gitops.Inspector, commit policy.Commit) error {
	added := int64(0)
	for _, change := range commit.Changes {
		if change.Old.Mode == 0 {
			added++
		}
	}
	c.counting.Lock()
	defer c.counting.Unlock()
	if added == 0 || c.files > 0 && c.files+added <= c.settings.Limits.Entries {
		c.files += added
		return nil
	}
	var err error
	c.files, err = look.CheckFiles(ctx, commit.Tree, c.settings.Limits)
	return err
}

// judge finds what of the pending commits may land: what comes before the first one that is held. Their order is
// that of [plan.arrange].
func (c *cycle) judge(ctx context.Context, chain []gitops.OID) error {
	if err := c.recheck(ctx); err != nil {
		return err
	}
	c.mayLand = ""
	if c.gate.broken != nil {
		c.hold(teamUnreadable(c.gate.broken))
		return nil
	}
	lands := map[gitops.OID]bool{}
	for _, id := range chain {
		lands[id] = true
	}
	for i, t := range c.ledger.tail {
		v := c.gate.verdicts.of(t.outer)
		if v != nil && v.Late {
			c.later = true
			return nil
		}
		if v.holds() {
			c.hold(c.policyHold(*v, c.heldAfter(i)))
			return nil
		}
		if lands[t.inner] {
			c.mayLand = t.outer
		}
	}
	return nil
}

// heldAfter counts the pending commits after the i-th one that a rule holds as well.
func (c *cycle) heldAfter(i int) int {
	n := 0
	for _, t := range c.ledger.tail[i+1:] {
		if c.gate.verdicts.of(t.outer).holds() {
			n++
		}
	}
	return n
}

// recheck looks again at what waits when the rules have changed, and has the notes say so.
func (c *cycle) recheck(ctx context.Context) error {
	var again []pair
	for _, t := range c.ledger.tail {
		if v := c.gate.verdicts.of(t.outer); v == nil || v.Late && c.gate.verdicts.freshCycle(c.ledger.tail) {
			again = append(again, t)
		}
	}
	if len(again) == 0 {
		return nil
	}
	if _, err := c.check(ctx, again); err != nil {
		return err
	}
	for _, p := range again {
		if c.gate.verdicts.of(p.outer).word() == c.gate.verdicts.before[p.outer].word() {
			continue
		}
		inner, err := c.inside.Commit(ctx, p.inner)
		if err != nil {
			return err
		}
		author, _ := gitops.SplitIdent(inner.Author)
		c.notes = append(c.notes, gitops.Note{Commit: p.outer, Text: c.note(p, author, c.now)})
	}
	return nil
}
