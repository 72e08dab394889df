package runs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	promoted "github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/promote/record/store"
)

// Names in the host state. A run that is not recorded yet has a folder in openDir, its slot.
const (
	openDir     = "records"
	openName    = "open.json"   // the [opening]
	endName     = "end.json"    // the [Result], as soon as it is known
	numberName  = "number.json" // the number of the record, as soon as it is made
	ownerName   = "owner.lock"
	recordsLock = "records.lock" // held while a run begins, and while a record is made
)

// opening describes a run at its beginning. It is on disk before the run's command starts.
type opening struct {
	Manifest record.Manifest `json:"manifest"`
	Landed   int             `json:"landed"`   // commits that had landed
	Egress   uint64          `json:"egress"`   // number of the network's newest record
	Programs uint64          `json:"programs"` // about the number of the newest program, see [execs.Newest]
	// Others has the commands of the runs that had not been recorded then.
	Others []string `json:"others,omitempty"`
}

// Result is how a run ended.
type Result struct {
	Exit *int `json:"exit"` // exit status, or 128+n after signal n; nil if it is not known
	// Late reports that the time limit ended the run. Stopped reports that the end of its prison did.
	Late    bool `json:"late,omitempty"`
	Stopped bool `json:"stopped,omitempty"`
	Spent   bool `json:"spent,omitempty"` // the limit of its credential ended the run
	// Key is the key at its terminal that ended the command, such as ^C.
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"`
	// Failure is the error of a command that could not be started.
	Failure string `json:"failure,omitempty"`
	// OutputLost is the error because of which the output of the command was not written to its end.
	OutputLost string `json:"output_lost,omitempty"`
	// Recovered reports that the process that watched the run died.
	Recovered bool `json:"recovered,omitempty"`
}

// Command is the command of a run.
type Command struct {
	Kind  record.Kind
	Argv  []string
	Agent string // the name of its profile, or empty
	// Checkpoints has the checkpoint of the state before.
	Checkpoints record.CheckpointRange
}

// Active is a run that this process has begun.
type Active struct {
	keeper  Keeper
	slot    int
	release func()
}

func (k Keeper) folder(slot int) string { return filepath.Join(k.dir(), openDir, strconv.Itoa(slot)) }

// owner returns the lock of a slot's owner, for [airlock.Store.LockFile].
func owner(slot int) string { return filepath.Join(openDir, strconv.Itoa(slot), ownerName) }

// Begin writes durably that a run begins, and the state before it. A [record.Direct] run belongs to this process: if the process ends
// without [Active.End], another command records the run.
func (k Keeper) Begin(ctx context.Context, c Command) (*Active, error) {
	unlock, err := k.Prisons.Store.LockFile(ctx, k.Record.ID, recordsLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := k.finishOver(ctx, true); err != nil {
		k.Prisons.Report.Say("the run before is not recorded yet: %s", gitops.Text(err.Error()))
	}
	o, err := k.stateBefore(ctx, c)
	if err != nil {
		return nil, err
	}
	slots, err := k.open()
	if err != nil {
		return nil, err
	}
	slot := 1
	for _, other := range slots {
		slot = other + 1
		if of, err := k.opening(other); err == nil {
			o.Others = append(o.Others, of.Manifest.Command(shownCommand))
		}
	}
	if err := os.MkdirAll(k.folder(slot), 0o700); err != nil {
		return nil, err
	}
	a := &Active{keeper: k, slot: slot, release: func() {}}
	if c.Kind == record.Direct {
		if a.release, err = k.Prisons.Store.LockFile(ctx, k.Record.ID, owner(slot)); err != nil {
			return nil, errors.Join(err, os.RemoveAll(k.folder(slot)))
		}
	}
	killpoint.Reach("before-opening")
	err = errors.Join(durable.WriteJSON(filepath.Join(k.folder(slot), openName), o), durable.SyncPath(filepath.Dir(k.folder(slot))), durable.SyncPath(k.dir()))
	if err != nil {
		return nil, errors.Join(err, a.Cancel())
	}
	a.Sample(ctx)
	killpoint.Reach("opened")
	k.note(record.EventRun, 0, runBegan+o.Manifest.Command(shownCommand))
	return a, nil
}

// runBegan begins the text of the event of a run's beginning. The command follows.
const runBegan = "a run began: "

// shownCommand bounds the characters of a command line in an event.
const shownCommand = 80

// note adds an event of a run to the log.
func (k Keeper) note(kind record.EventKind, n int, text string) {
	events.Append(k.dir(), record.Event{Level: record.Info, Kind: kind, Session: k.Record.Session, Run: n, Text: text})
}

// Cancel removes a run whose command was not started.
func (a *Active) Cancel() error {
	defer a.release()
	return os.RemoveAll(a.keeper.folder(a.slot))
}

// AtWork reports whether a command of "git airlock run" is at work.
func (k Keeper) AtWork() bool {
	slots, err := k.open()
	return err == nil && slices.ContainsFunc(slots, func(slot int) bool { return airlock.IsBusy(k.Prisons.Store.TryLockFile(k.Record.ID, owner(slot))) })
}

// open returns the slots in use.
func (k Keeper) open() (slots []int, err error) {
	entries, err := os.ReadDir(filepath.Join(k.dir(), openDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			slots = append(slots, n)
		}
	}
	slices.Sort(slots)
	return slots, err
}

// next returns the number of the next record, and the commit of the record before it.
func (k Keeper) next(ctx context.Context) (n int, previous gitops.OID, err error) {
	all, err := store.Refs(ctx, k.Prisons.Repo)
	for _, e := range all {
		if e.Session == k.Record.Session {
			n, previous = e.Number, e.Commit
		}
	}
	return n + 1, previous, err
}

func (k Keeper) stateBefore(ctx context.Context, c Command) (o opening, err error) {
	r := k.Record
	values, err := k.Prisons.PassedValues(r)
	if err != nil {
		return o, err
	}
	m := record.Manifest{Session: r.Session, ID: r.ID, Kind: c.Kind, Argv: maskedWords(c.Argv, values), Agent: c.Agent, Started: k.Now().UTC(),
		Branch: gitops.ToText(r.Branch), Base: r.Base, Backend: r.Backend, Network: r.Isolation.Network,
		Isolation: record.Isolation{Runtime: r.Isolation.Runtime, Memory: r.Isolation.Limits.Memory, CPUs: r.Isolation.Limits.CPUs, PIDs: r.Isolation.Limits.PIDs},
		Program:   k.Program}
	if c.Agent == r.Rules.Agent {
		m.Unneeded = r.Rules.Unneeded
	}
	for _, w := range r.Isolation.Weaker {
		m.Weaker = append(m.Weaker, w.Text)
	}
	for _, v := range r.Variables {
		m.Environment = append(m.Environment, v.Name)
	}
	if o.Landed, err = promoted.TotalLanded(k.dir()); err != nil {
		return o, err
	}
	if m.Inner.Before, err = k.inner(); err != nil {
		return o, err
	}
	if m.Outer.Before, err = k.Prisons.Repo.Ref(ctx, r.Branch); err != nil {
		return o, err
	}
	if dir, ok := k.ledgerDir(); ok {
		if o.Egress, err = ledger.Newest(dir); err != nil {
			return o, err
		}
	}
	if o.Programs, err = execs.Newest(k.programDir()); err != nil {
		return o, err
	}
	m.Checkpoints = c.Checkpoints
	m.Checkpoints.Unmade = values.Text(m.Checkpoints.Unmade)
	m.Fingerprint.Before = k.fingerprint()
	o.Manifest = m
	return o, nil
}

// inner returns the tip of the inner main at its last export.
func (k Keeper) inner() (gitops.OID, error) {
	last, err := promoted.ReadOutcome(k.dir())
	return cmp.Or(last.Inner, k.Record.Root), err
}
