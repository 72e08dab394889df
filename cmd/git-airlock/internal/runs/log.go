// Package runs keeps the records of runs, and shows the event log of an airlock.
//
// Package promote/record describes a record, and promote/events the log.
package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/egress/ledger"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/events"
	"github.com/git-airlock/git-airlock/promote/record"
)

// Keeper keeps the records of the runs of one airlock.
type Keeper struct {
	Prisons prisons.Prisons
	Record  airlock.Record
	Now     func() time.Time
	Program string // the version of git-airlock
	// Checkpoint returns the number of the newest checkpoint, 0 if there is none.
	Checkpoint func(context.Context) int
	// Waiting returns the inner refs other than main with commits.
	Waiting func(context.Context) ([]record.Waiting, error)
}

// dir returns the host state of the airlock.
func (k Keeper) dir() string { return k.Prisons.Store.Dir(k.Record.ID) }

// ledgerDir returns the folder of the network's ledger. ok is false for a prison without a network.
func (k Keeper) ledgerDir() (dir string, ok bool) {
	spec := k.Prisons.Spec(k.Record)
	return spec.Dir, spec.Network != prison.NetworkNone
}

// Events returns the events since a moment, oldest first. What the network refused is in its own ledger, and refused programs are in
// the record of programs, which it reads as well, once that has all programs. Nothing is left out that happened after the first event of the
// result, although the clock may have been set back meanwhile.
func (k Keeper) Events(ctx context.Context, since time.Time) ([]record.Event, error) {
	all, err := events.Read(k.dir())
	if err == nil {
		err = execs.Complete(ctx, k.programDir())
	}
	if err != nil {
		return nil, err
	}
	var network []record.Event
	if dir, ok := k.ledgerDir(); ok {
		network, err = networkEvents(dir)
	}
	refused, _ := k.refusedPrograms(0)
	return startingAt(merged(merged(all, network), refused), since), err
}

// networkEvents returns the events of a ledger, also of the denials that were rotated away.
func networkEvents(dir string) (all []record.Event, err error) {
	add := func(r control.Record) {
		if e, shown := eventOf(r); shown {
			all = append(all, e)
		}
	}
	if _, err = ledger.Rotated(dir, add); err == nil {
		_, err = ledger.Read(dir, func(r control.Record) bool { add(r); return true })
	}
	return all, err
}

// startingAt returns the events from the first one on that is not before a moment.
func startingAt(all []record.Event, moment time.Time) []record.Event {
	first := slices.IndexFunc(all, func(e record.Event) bool { return !e.Time.Before(moment) })
	if first < 0 {
		return nil
	}
	return all[first:]
}

// merged returns the events of two logs by time. The events of each log stay in their order, which is that of their happening.
func merged(a, b []record.Event) []record.Event {
	all := make([]record.Event, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].Time.Before(a[0].Time) {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	return append(append(all, a...), b...)
}

// followPause is how often a followed log is looked at.
const followPause = 300 * time.Millisecond

// Follow calls show for each event from now on, until ctx ends or show fails.
func (k Keeper) Follow(ctx context.Context, show func(record.Event) error) error {
	log, last := events.Follow(k.dir()), uint64(0)
	dir, network := k.ledgerDir()
	if network {
		var err error
		if last, err = ledger.Newest(dir); err != nil {
			return err
		}
	}
	if err := execs.Complete(ctx, k.programDir()); err != nil { // what was refused before does not come
		return err
	}
	size := k.programLogSize()
	_, program := k.refusedPrograms(0)
	for range ticks.Each(ctx.Done(), followPause) {
		all, err := log.Next()
		if err == nil && network {
			all, last, err = since(dir, last, all)
		}
		if err != nil {
			return err
		}
		if now := k.programLogSize(); now != size {
			var refused []record.Event
			refused, program = k.refusedPrograms(program)
			all, size = append(all, refused...), now
		}
		for _, e := range all {
			if err := show(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// since appends the events of a ledger after the record with the number last, and returns the number of its newest record.
func since(dir string, last uint64, all []record.Event) ([]record.Event, uint64, error) {
	newest, err := ledger.Newest(dir)
	if err != nil || newest <= last {
		return all, last, err
	}
	err = ledger.Range(dir, last, newest, func(r control.Record) {
		if e, shown := eventOf(r); shown {
			all = append(all, e)
		}
	})
	return all, newest, err
}

// eventOf returns the event that a record of the network stands for. Connections that were made are not events.
func eventOf(r control.Record) (e record.Event, shown bool) {
	e = record.Event{Time: r.Time.UTC(), Session: r.Session, Text: r.Reason}
	switch r.Kind {
	case control.KindRefusal:
		e.Level, e.Kind = record.Warning, record.EventDenied
		target := cmp.Or(r.Name, r.Address)
		if r.Port > 0 {
			target += ":" + strconv.Itoa(int(r.Port))
		}
		e.Text = fmt.Sprintf("the network refused %s: %s", target, r.Reason)
		e.Data = map[string]string{"host": r.Name, "address": r.Address, "rule": r.Rule, "reason": r.Reason, "count": strconv.Itoa(max(r.Count, 1))}
	case control.KindAlarm:
		e.Level, e.Kind, e.Text = record.Warning, record.EventNetwork, "the network: "+r.Reason
	case control.KindPolicy:
		e.Level, e.Kind, e.Text = record.Info, record.EventNetwork, "the network has other rules: "+r.Reason
	default:
		return e, false
	}
	return e, true
}
