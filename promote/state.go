package promote

import (
	"context"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// State is an airlock's promotion at one moment.
type State struct {
	Promoted     gitops.OID
	InnerTip     gitops.OID
	Holds        []ledger.Hold
	Landed       int // commits, since the airlock was made
	Pending      int // commits promoted or awaiting promotion
	Uncommitted  int // paths the agent has changed and not committed
	Waiting      []Waiting
	LastLandedAt *time.Time
	Flagged      []ledger.Flagged // landed commits in which a rule found something
	Failure      string           // why the last cycle failed, escaped; empty if it worked
}

// Waiting are commits on an inner ref that does not land by itself.
type Waiting struct {
	Ref     string `json:"ref"` // escaped; "other refs" for the refs that are not counted one by one
	Commits int    `json:"commits"`
	Name    string `json:"-"` // the ref's very name, empty for several refs
}

// refsWatched bounds how many inner refs are counted one by one.
const refsWatched = 50

// State reads everything and changes nothing. If the workspace cannot be read, it returns what could be read outside,
// with the error.
func (e *Engine) State(ctx context.Context) (State, error) {
	f, s, err := e.outside(ctx)
	defer f.close()
	if err != nil {
		return s, err
	}
	begun := time.Now()
	s, err = e.inside(ctx, f, s)
	if time.Since(begun) > longRead {
		if outcome, err := ledger.ReadOutcome(e.Dir()); err == nil { // of a cycle that has ended meanwhile
			s.Holds, s.Failure = append([]ledger.Hold{}, outcome.Holds...), outcome.Failure
		}
	}
	// What could not be written could not be written down either.
	if err := e.unwritable(); err != nil {
		s.Failure = gitops.Escape(err.Error())
	}
	holds := withoutPosition(s.Holds)
	if h := e.room(); h != nil && s.Pending > 0 && !holdsFor(holds, ledger.DiskFull) {
		holds = append(holds, *h)
	}
	if h := e.crowded(); h != nil && !holdsFor(holds, ledger.WorkspaceFull) {
		holds = append(holds, *h)
	}
	if s.Pending > 0 {
		positions, posErr := Positions(ctx, e.Repo, e.Record, f.refs.tip, f.refs.promoted)
		if posErr != nil {
			return s, posErr
		}
		holds = append(holds, positions...)
	}
	s.Holds = ledger.SortHolds(holds, f.before.Holds, time.Now())
	return s, err
}

// longRead is how long reading the workspace may take before what was read outside is old. An invalid workspace is
// asked for changes no longer than that: it may take all time to count them.
const longRead = time.Second

func holdsFor(holds []ledger.Hold, r ledger.Reason) bool {
	return slices.ContainsFunc(holds, func(h ledger.Hold) bool { return h.Reason == r })
}

func withoutPosition(holds []ledger.Hold) []ledger.Hold {
	return slices.DeleteFunc(slices.Clone(holds), func(h ledger.Hold) bool { return h.Reason.Position() })
}

// outside reads refs, ledger and outcome, between cycles if one does not last too long.
func (e *Engine) outside(ctx context.Context) (facts, State, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if unlock, err := e.Store.LockFile(waiting, e.Record.ID, cycleLock); err == nil {
		defer unlock()
	}
	f, err := e.standing(ctx)
	if err != nil {
		return f, State{}, err
	}
	if f.before, err = ledger.ReadOutcome(e.Dir()); err != nil {
		return f, State{}, err
	}
	verdicts, err := ledger.ReadVerdicts(e.Dir(), "", f.ledger)
	if err != nil {
		return f, State{}, err
	}
	return f, State{Promoted: f.refs.promoted, InnerTip: f.before.Inner, Holds: slices.Clone(f.before.Holds), Landed: len(f.ledger.Landed),
		Pending: len(f.ledger.Tail), LastLandedAt: f.before.LastLandedAt, Flagged: verdicts.Flagged(f.ledger), Waiting: []Waiting{}, Failure: f.before.Failure}, nil
}

// inside adds what the workspace shows.
func (e *Engine) inside(ctx context.Context, f facts, s State) (State, error) {
	if e.Store.WorkspaceGone(e.Record) {
		return s, nil
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return s, err
	}
	var landed []string
	for _, tip := range f.ledger.Tips() {
		landed = append(landed, string(tip))
	}
	if s, err = insideMain(ctx, f, exporter, s, landed); err != nil {
		return s, err
	}
	if s.InnerTip != "" {
		landed = append(landed, string(s.InnerTip))
	}
	if s.Waiting, err = waiting(ctx, exporter, landed); err != nil {
		return s, err
	}
	if holdsFor(s.Holds, ledger.InnerInvalid) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longRead)
		defer cancel()
	}
	s.Uncommitted, err = exporter.Uncommitted(ctx)
	return s, err
}

// insideMain counts what main has that has not landed.
func insideMain(ctx context.Context, f facts, exporter Exporter, s State, landed []string) (State, error) {
	var err error
	if s.InnerTip, err = exporter.Main(ctx); err != nil || s.InnerTip == "" {
		return s, err
	}
	if s.InnerTip == f.before.Inner {
		s.Pending = f.before.Waits // ancestry alone does not tell what lands from what does not
		return s, nil
	}
	pending, err := exporter.Count(ctx, string(s.InnerTip), landed...)
	s.Pending = max(0, pending-f.before.Dropped)
	return s, err
}

// otherRefs is the ref of commits on refs that are not counted one by one.
const otherRefs = "other refs"

// Arguments of rev-list: all refs, with the HEADs and without, and those of other repositories.
const (
	anyRef       = "--glob=refs/*"
	anyRefOrHead = "--all"
	fetchedRefs  = "--remotes"
)

// waiting counts the commits of inner refs that have them from nowhere else: branches, tags, what is stashed.
func waiting(ctx context.Context, exporter Exporter, have []string) ([]Waiting, error) {
	list := []Waiting{}
	have = append(slices.Clip(have), fetchedRefs) // what was fetched is elsewhere, too
	all, err := exporter.Count(ctx, anyRefOrHead, have...)
	if err != nil || all == 0 {
		return list, err
	}
	refs, err := exporter.Branches(ctx, "refs")
	if err != nil {
		return list, err
	}
	refs = slices.DeleteFunc(refs, func(r gitops.InnerRef) bool { return r.Name == gitops.InnerMain })
	told := slices.Clone(have)
	for _, r := range refs[:min(len(refs), refsWatched)] {
		n, err := exporter.Count(ctx, string(r.Commit), have...)
		if err != nil {
			return list, err
		}
		if n > 0 {
			list = append(list, Waiting{gitops.Escape(r.Name), n, r.Name})
			told = append(told, string(r.Commit))
		}
	}
	if len(refs) > refsWatched {
		n, err := exporter.Count(ctx, anyRef, told...)
		if err != nil {
			return list, err
		}
		if n > 0 {
			list = append(list, Waiting{otherRefs, n, ""})
		}
	}
	// A HEAD that is on no branch may hold commits of its own; one that names no commit holds none.
	if n, err := exporter.Count(ctx, "HEAD", append([]string{anyRef}, have...)...); err == nil && n > 0 {
		list = append(list, Waiting{"HEAD", n, "HEAD"})
	}
	if len(list) == 0 { // the HEAD of another worktree of the agent's
		list = append(list, Waiting{otherRefs, all, ""})
	}
	return list, nil
}

// Judged is what the policy gate found in the commits of an airlock, and what the user decided about them. All of its
// text is escaped.
type Judged struct {
	Held     []ledger.Verdict  `json:"held"`    // wait, oldest first
	Flagged  []ledger.Flagged  `json:"flagged"` // have landed, oldest first
	Accepted []ledger.Accepted `json:"accepted"`
	Dropped  []ledger.Dropped  `json:"dropped"`
}

// Judged returns what the gate found last. It changes nothing.
func (e *Engine) Judged(ctx context.Context) (Judged, error) {
	j := Judged{Held: []ledger.Verdict{}, Flagged: []ledger.Flagged{}, Accepted: []ledger.Accepted{}, Dropped: []ledger.Dropped{}}
	f, state, err := e.outside(ctx)
	defer f.close()
	if err != nil {
		return j, err
	}
	verdicts, err := ledger.ReadVerdicts(e.Dir(), "", f.ledger)
	if err != nil {
		return j, err
	}
	for _, t := range f.ledger.Tail {
		if v := verdicts.Last(t.Outer); v.Holds() {
			j.Held = append(j.Held, *v)
		}
	}
	j.Flagged = state.Flagged
	decided, err := ledger.ReadDecisions(e.Dir())
	j.Accepted, j.Dropped = append(j.Accepted, decided.Accepted...), append(j.Dropped, decided.Dropped...)
	return j, err
}
