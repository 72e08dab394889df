package promote

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/disk"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/words"
)

// State is the state of an airlock's promotion at one moment.
type State struct {
	Promoted     gitops.OID
	InnerTip     gitops.OID
	Holds        []ledger.Hold
	Landed       int        // commits, since the airlock was created
	Pending      int        // commits that are pending or not promoted yet
	Named        int        // commits that the airlock's ref pending names
	Newest       gitops.OID // inner commit of the newest pending commit, or of the last landed one
	Uncommitted  int        // paths the agent has changed and not committed, except for those in Places
	Places       []inner.Place
	OtherRefs    []hold.OtherRef
	Operation    string // of the agent's git, such as "rebase", if OtherRefs has an entry; empty if none is in progress
	Head         string // full name of the ref that the agent's HEAD names, if OtherRefs has an entry; empty if HEAD is detached
	LastLandedAt *time.Time
	Flagged      []ledger.Flagged // landed commits with findings
	Rebased      []ledger.Rebased // see [ledger.Outcome]
	Failure      string           // why the last cycle failed, escaped; empty if it worked
	other        bool             // the last cycle promoted another line
}

// State reads the state and changes nothing. If the workspace cannot be read, it returns the outer part of the state
// with the error.
func (e *Engine) State(ctx context.Context) (State, error) { return e.Foresee(ctx, Options{}) }

// Foresee returns the state as a promotion with some options would find it. It changes nothing.
func (e *Engine) Foresee(ctx context.Context, options Options) (State, error) {
	f, results, err := e.outside(ctx)
	defer f.close()
	if err != nil {
		return State{}, err
	}
	s := State{Promoted: f.refs.promoted, InnerTip: f.before.Inner, Holds: slices.Clone(f.before.Holds), Landed: len(f.ledger.Landed),
		Pending: len(f.ledger.Tail), Named: len(f.ledger.Tail), Newest: f.ledger.Newest(), LastLandedAt: f.before.LastLandedAt, Flagged: results.Flagged(f.ledger), Rebased: f.before.Rebased, Failure: f.before.Failure}
	f.options = options
	begun := time.Now()
	s, err = e.inside(ctx, f, s)
	if time.Since(begun) > longRead {
		if outcome, err := ledger.ReadOutcome(e.Dir()); err == nil { // a cycle may have ended meanwhile
			s.Holds, s.Failure = append([]ledger.Hold{}, outcome.Holds...), outcome.Failure
		}
	}
	// A cycle that cannot write could not record its failure either.
	if err := e.unwritable(); err != nil {
		s.Failure = gitops.Text(words.OneLine(err)).String()
	}
	if err == nil && options.UpTo != "" {
		err = e.checkUpTo(ctx, options, s.InnerTip)
	}
	holds := slices.DeleteFunc(s.Holds, func(h ledger.Hold) bool {
		return h.Reason.Position() || options.Land && h.Reason == ledger.Review || s.other && h.Reason.OfCommits()
	})
	if s.Pending > 0 && disk.Full(e.Dir()) && !holdsFor(holds, ledger.DiskFull) {
		holds = append(holds, e.diskFull(nil))
	}
	if h := disk.InodesHold(e.Store.Workspace(e.Record)); h != nil && !holdsFor(holds, ledger.WorkspaceFull) {
		holds = append(holds, *h)
	}
	if s.Pending > 0 {
		positions, posErr := hold.Positions(ctx, e.Repo, e.Record, f.refs.tip, f.refs.promoted)
		if posErr != nil {
			return s, posErr
		}
		holds = append(holds, positions...)
	}
	s.Holds = ledger.SortHolds(holds, f.before.Holds, time.Now())
	return s, err
}

// checkUpTo returns an error if a cycle would refuse options.UpTo.
func (e *Engine) checkUpTo(ctx context.Context, options Options, tip gitops.OID) error {
	f, unlock, err := e.lockedFacts(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	f.options = options
	seen, err := e.seen(ctx, f)
	if err == nil && seen == tip { // otherwise UpTo may name a commit that the next cycle receives
		_, err = e.plan(ctx, f, f.takenBefore(tip), map[gitops.OID]bool{})
	}
	return err
}

// longRead is the duration of reading the workspace after which the outer state is read again. It also bounds the time for counting uncommitted
// changes if the inner repository is invalid, because then that may never end.
const longRead = time.Second

func holdsFor(holds []ledger.Hold, r ledger.Reason) bool {
	return slices.ContainsFunc(holds, func(h ledger.Hold) bool { return h.Reason == r })
}

// outside reads refs, ledger, outcome and the gate's results. It waits a second for a running cycle to end.
func (e *Engine) outside(ctx context.Context) (f facts, results ledger.GateResults, err error) {
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if unlock, err := e.Store.LockFile(waiting, e.Record.ID, CycleLock); err == nil {
		defer unlock()
	}
	if f, err = e.readLedger(ctx); err != nil {
		return f, results, err
	}
	if f.before, err = ledger.ReadOutcome(e.Dir()); err == nil {
		results, err = ledger.ReadGateResults(e.Dir(), ledger.NoRules, f.ledger)
	}
	return f, results, err
}

// inside adds the workspace's part of the state.
func (e *Engine) inside(ctx context.Context, f facts, s State) (State, error) {
	if e.Store.WorkspaceGone(e.Record) {
		return s, nil
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return s, err
	}
	decided, err := ledger.ReadDecisions(e.Dir())
	if err == nil {
		s, err = e.toPromote(ctx, f, exporter, decided, s)
	}
	if err != nil {
		return s, err
	}
	landed := gitops.Names(append(f.ledger.DecidedTips(decided), f.ledger.Originals(decided)...))
	if s.InnerTip != "" {
		landed = append(landed, string(s.InnerTip))
	}
	limit := func() (context.Context, context.CancelFunc) {
		if holdsFor(s.Holds, ledger.InnerInvalid) {
			return context.WithTimeout(ctx, longRead)
		}
		return ctx, func() {}
	}
	searching, cancel := limit()
	defer cancel()
	places, unseen := exporter.Places(searching)
	s.Places = places
	s.OtherRefs, err = hold.OtherRefs(ctx, exporter, places, landed) // a broken ref does not keep the changes from being counted
	if hold.Explains(places, err) {
		err = nil
	}
	if err == nil && len(s.OtherRefs) > 0 {
		s.Operation, s.Head, err = exporter.Operation(ctx)
	}
	if unseen == nil { // also counts if the search for places took all of its time
		looking, cancel := limit()
		defer cancel()
		s.Uncommitted, unseen = exporter.Uncommitted(looking, places...)
	}
	return s, cmp.Or(err, unseen)
}

// Elsewhere reports whether the agent's HEAD is not on main, if OtherRefs has an entry.
func (s State) Elsewhere() bool { return s.Head != inner.Main }

// toPromote counts the commits that a promotion would land or hold.
func (e *Engine) toPromote(ctx context.Context, f facts, exporter Exporter, decided ledger.Decisions, s State) (_ State, err error) {
	var main gitops.OID
	if s.InnerTip, main, err = e.wanted(ctx, f.options); err != nil || s.InnerTip == "" {
		return s, err
	}
	s.other = history.SourceOf(f.options.From, s.InnerTip, main).From != f.before.From
	if s.InnerTip == f.before.Inner && !s.other {
		s.Pending = f.before.Waits // counting commits alone would not show which of them still land
		return s, nil
	}
	tips := f.ledger.Tips()
	line, err := exporter.FirstParents(ctx, s.InnerTip, tips)
	if err != nil {
		return s, err
	}
	pending, err := exporter.Count(ctx, string(s.InnerTip), append(gitops.Names(tips), f.ledger.NewestOf(line)...)...)
	if s.other {
		f.before.Dropped = f.ledger.DroppedOf(line, decided)
	}
	s.Pending = max(0, pending-f.before.Dropped)
	return s, err
}

// Findings lists the policy gate's findings in the commits of an airlock, and the user's decisions about them. All its
// text is escaped.
type Findings struct {
	Held     []ledger.GateResult `json:"held"`    // waiting commits, oldest first
	Flagged  []ledger.Flagged    `json:"flagged"` // landed commits, oldest first
	Accepted []ledger.Accepted   `json:"accepted"`
	Dropped  []ledger.Dropped    `json:"dropped"`
}

// Findings returns the last findings of the gate. It changes nothing.
func (e *Engine) Findings(ctx context.Context) (Findings, error) {
	var all Findings
	f, results, err := e.outside(ctx)
	defer f.close()
	if err != nil {
		return all, err
	}
	for _, t := range f.ledger.Tail {
		if v := results.Last(t.Outer); v.Holds() {
			all.Held = append(all.Held, *v)
		}
	}
	all.Flagged = results.Flagged(f.ledger)
	decided, err := ledger.ReadDecisions(e.Dir())
	all.Accepted, all.Dropped = decided.Accepted, decided.Dropped
	return all, err
}
