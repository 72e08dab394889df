package promote

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// State is what can be said of an airlock's promotion at one moment.
type State struct {
	Promoted     gitops.OID
	InnerTip     gitops.OID
	Holds        []Hold
	Landed       int // commits, since the airlock was made
	Pending      int // commits promoted or awaiting promotion
	Uncommitted  int // paths the agent has changed and not committed
	Waiting      []Waiting
	LastLandedAt *time.Time
	Flagged      []Flagged // landed commits in which a rule found something
	Failure      string    // why the last cycle could not be made, empty if it could; fit to be shown
}

// Waiting are commits on an inner ref that does not land by itself.
type Waiting struct {
	Ref     string `json:"ref"` // fit to be shown; of more refs than are told apart "other refs"
	Commits int    `json:"commits"`
	Name    string `json:"-"` // the ref's very name, empty if it is of several
}

// refsWatched bounds how many inner refs are counted.
const refsWatched = 50

// State looks at everything and changes nothing. If looking into the workspace fails, it returns what could be
// seen outside, with the error.
func (e *Engine) State(ctx context.Context) (State, error) {
	c := &cycle{Engine: e}
	s, err := e.outside(ctx, c)
	if err != nil {
		return s, err
	}
	begun := time.Now()
	err = e.inside(ctx, c, &s)
	if time.Since(begun) > longLook {
		e.afterwards(&s)
	}
	// What could not be written could not be written down either.
	if err := c.unwritable(); err != nil {
		s.Failure = gitops.Escape(err.Error())
	}
	if h := c.room(); h != nil && s.Pending > 0 && !slices.ContainsFunc(s.Holds, func(o Hold) bool { return o.Reason == DiskFull }) {
		s.Holds = sortHolds(append(s.Holds, *h), s.Holds, time.Now())
	}
	if h := e.crowded(s.Holds); h != nil {
		s.Holds = sortHolds(append(s.Holds, *h), s.Holds, time.Now())
	}
	before := s.Holds
	s.Holds = withoutPosition(s.Holds)
	if s.Pending > 0 {
		positions, posErr := Positions(ctx, e.Repo, e.Record, c.tip, c.promoted)
		if posErr != nil {
			return s, posErr
		}
		s.Holds = sortHolds(append(s.Holds, positions...), before, time.Now())
	}
	return s, err
}

// longLook is how long looking into the workspace may take before what was seen outside is old; it is no longer
// than that that an invalid workspace is asked for changes, which it may take all time to count.
const longLook = time.Second

// afterwards takes the holds of a cycle that has ended meanwhile.
func (e *Engine) afterwards(s *State) {
	if outcome, err := readOutcome(e.Dir()); err == nil {
		s.Holds, s.Failure = append([]Hold{}, outcome.Holds...), outcome.Failure
	}
}

func withoutPosition(holds []Hold) []Hold {
	kept := []Hold{}
	for _, h := range holds {
		if !h.Reason.position() {
			kept = append(kept, h)
		}
	}
	return kept
}

// outside reads refs, ledger and outcome, between cycles if one does not last too long.
func (e *Engine) outside(ctx context.Context, c *cycle) (State, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if unlock, err := e.Store.LockFile(waiting, e.Record.ID, cycleLock); err == nil {
		defer unlock()
	}
	var s State
	if err := c.look(ctx); err != nil {
		return s, err
	}
	outcome, err := readOutcome(e.Dir())
	if err != nil {
		return s, err
	}
	c.outcome = outcome
	said, err := readVerdicts(e.Dir(), "", c.ledger)
	if err != nil {
		return s, err
	}
	s = State{Promoted: c.promoted, InnerTip: outcome.Inner, Holds: append([]Hold{}, outcome.Holds...), Landed: len(c.ledger.landed),
		Pending: len(c.ledger.tail), LastLandedAt: outcome.LastLandedAt,
		Flagged: append([]Flagged{}, said.landed(c.ledger)...),
		Waiting: []Waiting{}, Failure: outcome.Failure}
	return s, nil
}

// inside looks into the workspace.
func (e *Engine) inside(ctx context.Context, c *cycle, s *State) error {
	if e.Store.WorkspaceGone(e.Record) {
		return nil
	}
	exporter, err := e.open(ctx)
	if err != nil {
		return err
	}
	var landed []string
	for _, tip := range c.ledger.tips(c.base) {
		landed = append(landed, string(tip))
	}
	if err := c.insideMain(ctx, exporter, s, landed); err != nil {
		return err
	}
	if s.InnerTip != "" {
		landed = append(landed, string(s.InnerTip))
	}
	if err := waiting(ctx, exporter, s, landed); err != nil {
		return err
	}
	if slices.ContainsFunc(s.Holds, func(h Hold) bool { return h.Reason == InnerInvalid }) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longLook)
		defer cancel()
	}
	s.Uncommitted, err = exporter.Uncommitted(ctx)
	return err
}

// insideMain counts what main has that has not landed.
func (c *cycle) insideMain(ctx context.Context, exporter Exporter, s *State, landed []string) (err error) {
	if s.InnerTip, err = exporter.Main(ctx); err != nil || s.InnerTip == "" {
		return err
	}
	if s.InnerTip == c.outcome.Inner {
		s.Pending = c.outcome.Waits // what does not land is told from what does by more than ancestry
		return nil
	}
	pending, err := exporter.Count(ctx, string(s.InnerTip), landed...)
	s.Pending = max(0, pending-c.outcome.Dropped)
	return err
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
func waiting(ctx context.Context, exporter Exporter, s *State, have []string) error {
	have = append(slices.Clip(have), fetchedRefs) // what was fetched is elsewhere, too
	all, err := exporter.Count(ctx, anyRefOrHead, have...)
	if err != nil || all == 0 {
		return err
	}
	refs, err := exporter.Branches(ctx, "refs")
	if err != nil {
		return err
	}
	refs = slices.DeleteFunc(refs, func(r gitops.InnerRef) bool { return r.Name == gitops.InnerMain })
	told := slices.Clone(have)
	for _, r := range refs[:min(len(refs), refsWatched)] {
		n, err := exporter.Count(ctx, string(r.Commit), have...)
		if err != nil {
			return err
		}
		if n > 0 {
			s.Waiting = append(s.Waiting, Waiting{gitops.Escape(r.Name), n, r.Name})
			told = append(told, string(r.Commit))
		}
	}
	if len(refs) > refsWatched {
		n, err := exporter.Count(ctx, anyRef, told...)
		if err != nil {
			return err
		}
		if n > 0 {
			s.Waiting = append(s.Waiting, Waiting{otherRefs, n, ""})
		}
	}
	// A HEAD that is on no branch may hold commits of its own; one that names no commit holds none.
	if n, err := exporter.Count(ctx, "HEAD", append([]string{anyRef}, have...)...); err == nil && n > 0 {
		s.Waiting = append(s.Waiting, Waiting{"HEAD", n, "HEAD"})
	}
	if len(s.Waiting) == 0 { // the HEAD of another worktree of the agent's
		s.Waiting = append(s.Waiting, Waiting{otherRefs, all, ""})
	}
	return nil
}

// LogFile is where the daemon of an airlock writes.
func LogFile(dir string) string { return filepath.Join(dir, "log") }

// QuarantineDir is where the quarantine of an airlock is.
func QuarantineDir(dir string) string { return filepath.Join(dir, "quarantine") }
