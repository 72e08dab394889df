package build

import (
	"context"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// Request is what commits are built from.
type Request struct {
	Plan    *history.Plan
	Format  string        // object format of both repositories
	Part    bool          // the snapshot left files out
	User    identity.User // author and committer of what is built
	Sign    bool          // sign each commit with the user's key
	ByPatch bool          // git format-patch and git am must come to the same trees
	Onto    gitops.OID    // the branch's tip, or the last landed commit if the branch is gone
	// Before is where the pending commits were built, and whether that was apart from the user's own.
	Before Place
	// Again tries a conflict again although neither side has changed.
	Again bool

	Repo   *gitops.Repository
	Bridge *gitops.Bridge
	Inside *gitops.Inspector // of the quarantine
	Across *gitops.Inspector // of the bridge
	// Progress receives how many of all commits have been built. Required.
	Progress func(done, all int)
	// Fetch fetches what a partial clone lacks, and reports whether there is more to read now. Required.
	Fetch func(context.Context) bool
}

// Place is what pending commits are built on.
type Place struct {
	Onto  gitops.OID // the branch's tip at that time
	Apart bool       // without the user's own commits, which conflict
}

// Built is the result: all that waits from now on.
type Built struct {
	Place
	Pending []ledger.Pair // oldest first
	Fresh   []Fresh       // those of Pending that are new, the last of them
	Gone    []ledger.Pair // were pending and are not any more
	Outside []gitops.OID  // outer commits that Fresh builds on
	Stopped []Conflict    // why not all was built, or not on the branch
	Same    bool          // the conflict of the last cycle holds as it did: nothing has changed
	Late    bool          // merging took long: the rest is left to the next cycle
}

// Fresh is a new pair and what its note needs.
type Fresh struct {
	ledger.Pair
	Author string // name and address of the inner author, at most 8 KiB
}

// Conflict is a commit that could not be built on the branch.
type Conflict struct {
	Paths   []string        // at which the merge is not clean
	Refused string          // what the patch engine reported, instead of paths
	Lacking *ledger.Dropped // the commit does not apply without dropped ones
}

// Commits builds what the plan lists and is not pending yet: on the branch if that is possible, else apart.
func Commits(ctx context.Context, r Request) (Built, error) {
	before := r.Plan.Ledger.Tail
	if len(r.Plan.Chain) == 0 {
		return Built{Place: Place{Onto: r.Before.Onto}, Gone: before}, nil
	}
	tail := before
	if len(tail) > 0 && !r.Plan.Keeps(tail) {
		tail = nil
	}
	var built Built
	var err error
	switch {
	case r.Before.Apart && len(tail) > 0:
		built, err = r.rejoin(ctx, tail)
	case r.Before.Onto != r.Onto:
		built, err = r.together(ctx, nil)
	default:
		built, err = r.together(ctx, tail)
	}
	built.Gone = slices.DeleteFunc(slices.Clone(before), func(t ledger.Pair) bool {
		return slices.ContainsFunc(built.Pending, func(p ledger.Pair) bool { return p.Outer == t.Outer })
	})
	return built, err
}

// together builds on the branch what is not pending yet.
func (r Request) together(ctx context.Context, tail []ledger.Pair) (Built, error) {
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
		return r.apart(ctx, nil, b.conflict())
	}
	return b.result(onBranch), nil
}

// rejoin tries to build on the branch what was built apart: it may not conflict any more.
func (r Request) rejoin(ctx context.Context, tail []ledger.Pair) (Built, error) {
	if r.Before.Onto == r.Onto && len(r.Plan.After(tail)) == 0 && !r.Again {
		return Built{Place: r.Before, Pending: tail, Same: true}, nil
	}
	b, err := r.build(ctx, r.Plan.Links, nil, r.Onto, merged)
	if err != nil {
		return Built{Place: r.Before, Pending: tail}, err
	}
	if b.conflicts() && b.newestWhole() == "" {
		return r.apart(ctx, tail, b.conflict())
	}
	return r.together(ctx, nil)
}

// apart builds what is not pending yet without the user's commits: on what landed last, or, if that has changes of
// the user's with which the agent's conflict, on the newest landed commit that has none.
func (r Request) apart(ctx context.Context, tail []ledger.Pair, why Conflict) (Built, error) {
	apart := Built{Place: Place{Onto: r.Onto, Apart: true}, Pending: tail, Stopped: []Conflict{why}}
	links := r.Plan.After(tail)
	if len(links) == 0 {
		return apart, nil
	}
	if tail == nil && r.Plan.Last.Merged {
		b, err := r.build(ctx, links, nil, r.Plan.Last.Outer, merged)
		if err != nil {
			return apart, err
		}
		if b.stopped == nil {
			return b.result(apart), nil
		}
	}
	b, err := r.build(ctx, links, tail, r.Plan.Ledger.Exact().Outer, asTheyAre)
	if err != nil {
		return apart, err
	}
	return b.result(apart), nil
}

// result adds what was built. Where a merge stopped, that is the commits before it.
func (b *builder) result(built Built) Built {
	if b.stopped != nil {
		built.Stopped = append(built.Stopped, b.conflict())
		b.keep(b.newestWhole())
	}
	built.Late = b.late
	if len(b.fresh) == 0 {
		return built
	}
	built.Fresh = b.fresh
	built.Pending = slices.Clone(built.Pending)
	for _, f := range b.fresh {
		built.Pending = append(built.Pending, f.Pair)
	}
	built.Outside = append(slices.Collect(maps.Keys(b.outside)), b.plan.Ledger.Base.Outer)
	return built
}
