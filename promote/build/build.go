package build

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Request describes the commits to build.
type Request struct {
	Plan    *history.Plan
	Format  string        // object format of both repositories
	Trees   *Trees        // of the plan's commits
	User    identity.User // author and committer of the built commits
	Sign    bool          // sign each commit with the user's key
	ByPatch bool          // require that git format-patch and git am make the same trees
	Onto    gitops.OID    // the branch's tip, or the last landed commit if the branch is gone
	// Before describes how the pending commits were built.
	Before Place
	// Again retries a conflict although neither side has changed.
	Again bool

	Repo   *gitops.Repository
	Bridge *quarantine.Bridge
	Inside *quarantine.Inspector // of the quarantine
	Across *quarantine.Inspector // of the bridge
	// Progress receives the number of commits built so far and of all commits. Required.
	Progress func(done, all int)
	// Fetch fetches objects that a partial clone lacks, and reports whether more objects can be read now. Required.
	Fetch func(context.Context) bool
}

// Place describes what pending commits are built on.
type Place struct {
	Onto  gitops.OID // the branch's tip when they were built
	Apart bool       // built without the user's commits, because they conflict
	// Aside lists the inner commits that were set aside because they may not land, Unbuilt those that could not be built
	// on the branch.
	Aside, Unbuilt []gitops.OID
}

// Built is the result of building: the commits that wait from now on.
type Built struct {
	Place
	Pending []ledger.Pair // oldest first
	Fresh   []Fresh       // the new ones of Pending, which are its last ones
	Gone    []ledger.Pair // pairs that were pending and are not pending any more
	Outside []gitops.OID  // outer commits that are parents of Fresh
	Stopped []Conflict    // why some commits were not built, or not on the branch
	Same    bool          // the conflict of the last cycle still exists: nothing has changed
	Late    bool          // merging took long, and the next cycle builds the rest
	Off     bool          // the pending commits can bring back commits that the user took off the branch
}

// Fresh is a new pair and the data for its note.
type Fresh struct {
	ledger.Pair
	Author string // name and address of the inner author, at most 8 KiB
	Same   bool   // the outer commit was pending before, and so the repository has it
}

// Conflict is a commit that could not be built on the branch.
type Conflict struct {
	Commit  gitops.OID      // the inner commit, if one alone conflicts
	Paths   []string        // the paths with conflicts
	Lacks   []string        // the paths in which the user's merge cannot bring a part of the change: all commits on which it can be built have this part
	Behind  bool            // it cannot even be pending, so the user cannot merge it
	Remote  string          // set if a partial clone lacks files without which it cannot be pending: the remote that has them
	Refused string          // the patch engine's message, in place of Paths
	Crash   error           // git ended by a signal, or had not enough time, when it merged the commit, in place of Paths
	TooMany bool            // more newer commits than a cycle merges change the same lines, in place of Paths
	Lacking *ledger.Dropped // set if the commit does not apply without commits that are left out
	Landed  bool            // the conflict is with landed commits of the agent, and not with the user's commits
	Gone    bool            // the branch does not have the commits that changed Paths: the user took them off
	Off     bool            // see [Built.Off]
	already bool            // the branch has the commit's change already
	partly  bool            // an older commit of the branch has a part of the commit's change already
}

// plain reports whether a conflict is only one of paths.
func (c Conflict) plain() bool {
	return c.Lacking == nil && c.Crash == nil && c.Refused == "" && !c.TooMany
}

// Commits builds the commits of the plan that are not pending yet: on the branch if possible, and apart otherwise.
func Commits(ctx context.Context, r Request) (Built, error) {
	before := r.Plan.Ledger.Tail
	if len(r.Plan.Chain)+len(r.Plan.Aside) == 0 {
		return Built{Place: Place{Onto: r.Before.Onto}, Gone: before}, nil
	}
	tail := before
	if len(r.Plan.Aside) == 0 && len(tail) > 0 && (len(r.Before.Aside) > 0 || !r.Plan.Keeps(tail)) {
		tail = nil
	}
	var built Built
	var err error
	switch {
	case len(r.Plan.Aside) > 0:
		built, err = r.withAside(ctx, before)
	case r.Before.Apart && len(tail) > 0:
		built, err = r.rejoin(ctx, tail)
	case r.Before.Onto != r.Onto:
		built, err = r.onBranch(ctx, nil)
	default:
		built, err = r.onBranch(ctx, tail)
	}
	built.Gone = slices.DeleteFunc(slices.Clone(before), func(t ledger.Pair) bool {
		return slices.ContainsFunc(built.Pending, func(p ledger.Pair) bool { return p.Outer == t.Outer })
	})
	for i := range built.Stopped {
		if c := &built.Stopped[i]; err == nil && len(c.Paths) > 0 {
			c.Off = built.Off
			err = r.findSides(ctx, c)
		}
	}
	return built, err
}

// mostBlamed bounds the number of paths in a command line.
const mostBlamed = 100

// findSides finds out whose commits of the branch change the paths of a conflict.
func (r Request) findSides(ctx context.Context, c *Conflict) error {
	steps, err := r.Repo.Steps(ctx, r.Plan.Ledger.Base.Outer, r.Onto, c.Paths[:min(len(c.Paths), mostBlamed)]...)
	users := func(id gitops.OID) bool { return !r.Plan.Ledger.HasOuter(id) }
	c.Landed = len(steps) > 0 && !slices.ContainsFunc(steps, users)
	c.Gone = c.Gone || c.Off && len(steps) == 0 && r.isOff(ctx, r.Plan.Last.Outer)
	return err
}

// onBranch builds the commits that are not pending yet on the branch.
func (r Request) onBranch(ctx context.Context, tail []ledger.Pair) (Built, error) {
	onBranch := Built{Place: Place{Onto: r.Onto}, Pending: tail}
	links := r.Plan.After(tail)
	if len(links) == 0 {
		return onBranch, nil
	}
	b, err := r.build(ctx, links, tail, r.Onto, inPortions)
	if err != nil {
		return onBranch, err
	}
	if b.conflicts() && b.newestWhole() == "" {
		return r.offBranch(ctx, nil, *b.stopped)
	}
	return b.result(onBranch), nil
}

// rejoin tries to build the commits that were built apart on the branch, because the conflict may be gone.
func (r Request) rejoin(ctx context.Context, tail []ledger.Pair) (Built, error) {
	if r.Before.Onto == r.Onto && len(r.Plan.After(tail)) == 0 && !r.Again {
		return Built{Place: r.Before, Pending: tail, Same: true}, nil
	}
	b, err := r.build(ctx, r.Plan.Links, nil, r.Onto, merged)
	if err != nil {
		return Built{Place: r.Before, Pending: tail}, err
	}
	if b.conflicts() && b.newestWhole() == "" {
		return r.offBranch(ctx, tail, *b.stopped)
	}
	return r.onBranch(ctx, nil)
}

// offBranch builds the commits that are not pending yet without the user's commits with which they conflict: on top of the pending ones, or on an
// older commit of the branch. If the first of them needs landed commits that the user took off the branch, it builds them on the last landed commit.
func (r Request) offBranch(ctx context.Context, tail []ledger.Pair, why Conflict) (Built, error) {
	built := Built{Place: Place{Onto: r.Onto, Apart: true}, Stopped: []Conflict{why}}
	if place, err := r.placeOf(ctx, tail); err != nil || place != "" {
		built.Pending = tail
		if err != nil {
			return built, err
		}
		return r.onPending(ctx, place, built)
	}
	links := r.Plan.After(nil)
	var part *builder // has only the first commits of the chain
	whole, err := r.tryPlaces(ctx, why, func(onto gitops.OID, how treatment) (*builder, *Conflict, error) {
		b, err := r.build(ctx, links, nil, onto, how)
		if err == nil && part == nil && b.newestWhole() != "" {
			part = b
		}
		return b, b.stopped, err
	})
	if err != nil {
		return built, err
	}
	if whole == nil {
		whole = part
	}
	if whole != nil {
		built.Stopped[0].Lacks = whole.lacks
		return whole.result(built), nil
	}
	return r.onNoPlace(ctx, links, built)
}

// onPending builds commits on top of the pending ones of built. The first of these is on place.
func (r Request) onPending(ctx context.Context, place gitops.OID, built Built) (Built, error) {
	onto, err := r.apart(ctx)
	if err != nil {
		return built, err
	}
	how := wholeOnly
	if place == onto {
		how = theirsFirst
	}
	built.Off = r.isOff(ctx, place) || how == theirsFirst && r.isOff(ctx, r.Plan.Last.Outer)
	built.Stopped[0].Gone = place == r.Plan.Last.Outer && r.onlyTakenOff(ctx)
	if built.Stopped[0].Lacks, err = r.pendingLacks(ctx, built.Pending, place); err != nil && !r.unreadable(ctx, err) {
		return built, err
	}
	links := r.Plan.After(built.Pending)
	if len(links) == 0 {
		return built, nil
	}
	b, err := r.build(ctx, links, built.Pending, place, how)
	if r.unreadable(ctx, err) {
		return built, nil
	}
	return b.result(built), err
}

// onNoPlace builds a chain that conflicts on all places. built has the conflict with the branch's tip.
func (r Request) onNoPlace(ctx context.Context, links []quarantine.Link, built Built) (Built, error) {
	onto, err := r.apart(ctx)
	if err != nil {
		return built, err
	}
	if r.onlyTakenOff(ctx) {
		b, err := r.build(ctx, links, nil, r.Plan.Last.Outer, merged)
		if err != nil || b.stopped == nil {
			built.Off, built.Stopped[0].Gone = true, true
			return b.result(built), err
		}
	}
	built.Off = r.isOff(ctx, onto) || r.isOff(ctx, r.Plan.Last.Outer)
	b, err := r.build(ctx, links, nil, onto, theirsFirst)
	switch {
	case r.unreadable(ctx, err):
		built.Stopped[0].Remote = r.promisor(ctx)
		return built, nil
	case b.stopped != nil && len(b.fresh) == 0:
		b.stopped.Behind, built.Stopped = true, nil
	default:
		built.Stopped[0].Lacks = b.lacks
	}
	return b.result(built), err
}

// placeOf returns the commit on which pending commits were built apart. It is empty if they must be built again: there are none, or the branch has
// moved and does not have that commit any more.
func (r Request) placeOf(ctx context.Context, tail []ledger.Pair) (gitops.OID, error) {
	i := slices.IndexFunc(tail, func(t ledger.Pair) bool { return t.Inner == r.Plan.Chain[0] })
	if i < 0 {
		return "", nil
	}
	first, err := r.Across.Commit(ctx, tail[i].Outer)
	if err != nil || len(first.Parents) == 0 || r.Before.Onto != r.Onto && r.isOff(ctx, first.Parents[0]) {
		return "", err
	}
	return first.Parents[0], nil
}

// isOff reports whether a commit is not on the branch.
func (r Request) isOff(ctx context.Context, commit gitops.OID) bool {
	return !r.Repo.IsAncestor(ctx, commit, r.Onto)
}

// onlyTakenOff reports whether the user has only taken landed commits off the branch, so that a commit on top of them brings them back.
func (r Request) onlyTakenOff(ctx context.Context) bool {
	return r.isOff(ctx, r.Plan.Last.Outer) && r.Repo.IsAncestor(ctx, r.Onto, r.Plan.Last.Outer)
}

// unreadable reports whether an error can mean that a partial clone lacks files.
func (r Request) unreadable(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	config, err := r.Repo.Config(ctx)
	return err == nil && config.Partial()
}

// promisor returns the remote that has the files that a partial clone lacks.
func (r Request) promisor(ctx context.Context) string {
	config, _ := r.Repo.Config(ctx)
	for _, key := range config.Keys() {
		remote, of := strings.CutPrefix(key, "remote.")
		name, found := strings.CutSuffix(remote, ".promisor")
		if is, err := config.Bool(key, false); of && found && is && err == nil {
			return name
		}
	}
	return cmp.Or(config["extensions.partialclone"], "origin")
}

// result adds the built commits. If a merge stopped, these are the commits before it.
func (b *builder) result(built Built) Built {
	if b.stopped != nil {
		if !b.stopped.partly && (b.how != wholeOnly || !b.stopped.plain()) { // otherwise it waits for the user's merge of those before it
			built.Stopped = append(built.Stopped, *b.stopped)
		}
		b.keep(b.newestWhole())
	}
	built.Late = b.late
	if len(b.fresh) == 0 {
		return built
	}
	built.Fresh = b.fresh
	built.Pending = slices.Concat(built.Pending, pairs(b.fresh))
	built.Outside = append(slices.Collect(maps.Keys(b.outside)), b.plan.Ledger.Base.Outer)
	return built
}
