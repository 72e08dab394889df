package ledger

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/words"
)

// Outcome is the result of a cycle. The next cycle starts from it.
type Outcome struct {
	Version int        `json:"version"`
	Inner   gitops.OID `json:"inner"` // the inner commit to promote that the quarantine accepted last; empty if it has accepted none
	// From is the line of Inner if it is another one than main, and Main then is the tip of the inner main, or empty if there was none.
	From  string     `json:"from,omitempty"`
	Main  gitops.OID `json:"main,omitempty"`
	Holds []Hold     `json:"holds"`
	Onto  gitops.OID `json:"onto"` // the branch's tip when the pending commits were built
	// Uncopied is the branch's tip before the landings that did not change the ref pending. It is empty without that ref.
	Uncopied gitops.OID `json:"uncopied,omitempty"`
	Apart    bool       `json:"apart"` // the pending commits were built without the user's commits, because they conflict with them
	// Aside lists the inner commits that were set aside because they may not land, Unbuilt those that could not be built
	// on the branch, and Lacking those that did not apply without commits that had been left out before.
	Aside   []gitops.OID `json:"aside,omitempty"`
	Unbuilt []gitops.OID `json:"unbuilt,omitempty"`
	Lacking []gitops.OID `json:"lacking,omitempty"`
	// Spent are the inner commits up to which no landing came to its end, because git used up its processor time.
	Spent []gitops.OID `json:"spent,omitempty"`
	// CutShort reports that a merge needs more time than it had, which was less than usual: the command that made the cycle should end soon.
	CutShort bool `json:"hasty,omitempty"`
	// Rebased are the newest commits of the agent's history that have landed in another form, oldest first.
	Rebased      []Rebased  `json:"rebased,omitempty"`
	LastLandedAt *time.Time `json:"last_landed_at"`
	Dropped      int        `json:"dropped"` // new commits that the user leaves out
	Waits        int        `json:"waits"`   // commits up to Inner that have not landed
	Total        int        `json:"total"`   // commits landed since the airlock was created
	// Failure is the error of the last cycle, escaped; empty if it worked.
	Failure string `json:"failure,omitempty"`

	// Target is the inner commit at which the user wants the landing to end. Empty if the user named none.
	Target  gitops.OID `json:"-"`
	Landed  int        `json:"-"` // commits landed by this cycle
	Pending int        `json:"-"` // commits that wait
	OffMain int        `json:"-"` // those of Landed that main does not have
	// Unchecked is the commit whose check would let a later cycle land more; nil if there is none.
	Unchecked *checks.Wanted `json:"-"`
	Retry     time.Duration  `json:"-"` // pause after which another cycle may land more; 0 if only a change can help
}

func outcomeFile(dir string) string { return filepath.Join(dir, "outcome.json") }

// ReadOutcome reads the outcome stored in the host state dir. The outcome is empty before the first cycle.
func ReadOutcome(dir string) (Outcome, error) {
	o := Outcome{Version: version}
	err := readFile(outcomeFile(dir), &o, &o.Version)
	return o, err
}

// Retried returns the outcome for the next cycle, whose merges have less time than usual if short is set. If a merge was cut short, and will have
// more time, it is made again, as after a commit of the user.
func (o Outcome) Retried(short bool) Outcome {
	if o.CutShort && !short {
		o.Onto = ""
	}
	return o
}

// RefError reports that the ref of the last landed commit is gone, or names a commit that the airlock has not landed: another program, such as
// "git filter-branch -- --all", has changed all refs.
type RefError struct {
	Ref      string
	At, Last gitops.OID // what the ref names, empty if it is gone, and what it named at the end of the last cycle
	// Originals are the airlock's refs as "git filter-branch" keeps them, by their names with [FilterKeeps] before them. May be nil.
	Originals map[string]gitops.OID
}

// FilterKeeps is where "git filter-branch" keeps the refs that it has rewritten.
const FilterKeeps = "refs/original/"

func (e *RefError) Error() string {
	if e.At == "" {
		return fmt.Sprintf("the airlock's ref %s is missing", e.Ref)
	}
	return fmt.Sprintf("another program has moved the airlock's ref %s to %.12s, which the airlock has not landed", e.Ref, e.At)
}

// Next returns the commands that put the airlock's refs back. The commits that wait then land on the branch as it is now.
func (e *RefError) Next() []string {
	next := []string{strings.TrimSpace(fmt.Sprintf("git update-ref %s %s %s", e.Ref, e.Last, e.At))}
	for _, kept := range slices.Sorted(maps.Keys(e.Originals)) {
		if ref := strings.TrimPrefix(kept, FilterKeeps); ref != e.Ref {
			next = append(next, fmt.Sprintf("git update-ref %s %s", words.ShellQuote(ref), e.Originals[kept])) // an agent can choose the end of a name
		}
	}
	return next
}

// lastLanded returns the last landed outer commit at the end of the last cycle, or the base. It works even if the ref that names this commit is
// gone. entries are those of the ledger's file.
func lastLanded(dir string, base gitops.OID, entries []Pair) (gitops.OID, error) {
	total, err := TotalLanded(dir)
	if err != nil || total == 0 {
		return base, err
	}
	if len(entries) < total {
		return base, fmt.Errorf("read %q: the file has %d of %d commits", ledgerFile(dir), len(entries), total)
	}
	return entries[total-1].Outer, nil
}

// TotalLanded returns the number of commits that had landed when the last cycle ended.
func TotalLanded(dir string) (int, error) {
	o, err := ReadOutcome(dir)
	return o.Total, err
}

// Forget removes the holds and the failure of the last cycle. They belong to a worktree that the airlock has left.
func Forget(dir string) error {
	o, err := ReadOutcome(dir)
	if err != nil {
		return err
	}
	o.Holds, o.Failure = nil, ""
	return o.Write(dir)
}

// failureLimit is the number of bytes stored of a failure: enough for git's own message.
const failureLimit = 2000

// Fail stores the failure of a cycle in o, the outcome of the last cycle that succeeded, and what is in [Outcome.Spent] now. An interruption
// is not a failure.
func (o Outcome) Fail(ctx context.Context, dir string, cause error, spent []gitops.OID) error {
	text := words.Clip(gitops.Text(words.OneLine(cause)).String(), failureLimit)
	if ctx.Err() != nil || text == o.Failure && slices.Equal(spent, o.Spent) {
		return nil
	}
	o.Failure, o.Spent = text, spent
	return o.Write(dir)
}

// Write replaces the outcome stored in the host state dir.
func (o Outcome) Write(dir string) error { return writeFile(outcomeFile(dir), o) }

// With returns a copy of the outcome with more holds.
func (o Outcome) With(holds ...Hold) Outcome {
	o.Holds = append(slices.Clip(o.Holds), holds...)
	return o
}

// Held reports whether commits wait for a reason.
func (o Outcome) Held(r Reason) bool {
	return slices.ContainsFunc(o.Holds, func(h Hold) bool { return h.Reason == r })
}

// Of returns the holds with a reason.
func (o Outcome) Of(r Reason) []Hold {
	var holds []Hold
	for _, h := range o.Holds {
		if h.Reason == r {
			holds = append(holds, h)
		}
	}
	return holds
}

// Sooner requests another cycle after a pause, unless an earlier one was requested. A pause of 0 requests none.
func (o Outcome) Sooner(pause time.Duration) Outcome {
	if pause > 0 && (o.Retry == 0 || pause < o.Retry) {
		o.Retry = pause
	}
	return o
}

// Land counts n more landed commits.
func (o Outcome) Land(n int, now time.Time) Outcome {
	if n > 0 {
		at := Timestamp(now)
		o.Waits = max(0, o.Waits-n)
		o.Landed += n
		o.LastLandedAt = &at
	}
	return o
}
