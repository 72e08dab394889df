package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/record"
)

// Cycle appends events for the changes of a promotion cycle: an export, landings, and holds that began or ended. If the message of a hold
// changes, for example because it holds one more commit, the hold begins again, and no end is appended. A cycle without changes appends
// nothing.
func Cycle(dir, session string, before, after ledger.Outcome) {
	add := func(e record.Event) {
		e.Session = session
		Append(dir, e)
	}
	if after.Inner != before.Inner && after.Inner != "" {
		add(record.Event{Level: record.Info, Kind: record.EventExport, Text: fmt.Sprintf("exported the agent's commits up to %.12s", after.Inner),
			Data: map[string]string{"inner": string(after.Inner)}})
	}
	if after.Landed > 0 {
		add(landing(after))
	}
	for _, h := range before.Holds {
		if !after.Held(h.Reason) {
			add(record.Event{Level: record.Info, Kind: record.EventHoldEnd, Text: fmt.Sprintf("not held any more: %s", h.Reason),
				Data: map[string]string{"reason": string(h.Reason)}})
		}
	}
	for _, h := range after.Holds {
		if !holds(before, h) {
			add(begun(h))
		}
	}
}

// landing returns the event of a landing. The branch's tip after it is the last commit that landed.
func landing(o ledger.Outcome) record.Event {
	text := fmt.Sprintf("landed commit %.12s", o.Onto)
	if o.Landed > 1 {
		text = fmt.Sprintf("landed %d commits up to %.12s", o.Landed, o.Onto)
	}
	return record.Event{Level: record.Notice, Kind: record.EventLand, Text: text,
		Data: map[string]string{"count": strconv.Itoa(o.Landed), "commit": string(o.Onto)}}
}

// holds reports whether an outcome has a hold with the same message.
func holds(o ledger.Outcome, h ledger.Hold) bool {
	return slices.ContainsFunc(o.Holds, func(other ledger.Hold) bool { return other.Reason == h.Reason && other.Message == h.Message })
}

// begun returns the event of a new hold. A hold of the gate is a denial, and one of the disk a limit.
func begun(h ledger.Hold) record.Event {
	e := record.Event{Level: record.Notice, Kind: record.EventHold, Text: fmt.Sprintf("held: %s: %s", h.Reason, h.Message),
		Data: map[string]string{"reason": string(h.Reason), "message": h.Message}}
	if len(h.Paths) > 0 {
		e.Data["path"] = h.Paths[0]
	}
	switch h.Reason {
	case ledger.Policy, ledger.InnerInvalid:
		e.Level = record.Warning
	case ledger.WorkspaceFull, ledger.DiskFull:
		e.Level, e.Kind = record.Warning, record.EventLimit
	}
	return e
}

const stillRuns = "; the prison could not be stopped, which is tried again"

// Full returns the message of the disk watchdog for a reason. runs reports that it could not stop the prison. stops is how often it has
// stopped one during the hold, so that the hold begins again with each stop.
func Full(reason string, runs bool, stops int) string {
	switch {
	case runs:
		return reason + stillRuns
	case stops > 1:
		return fmt.Sprintf("%s; the prison was stopped %d times", reason, stops)
	}
	return reason + "; the prison was stopped"
}

// Overfilled returns the message with which the disk watchdog has stopped the prison since its last start. The text is empty if it has not, or
// if the events cannot be read.
func Overfilled(dir string) (message string) {
	all, _ := Read(dir)
	for _, e := range all {
		switch {
		case e.Kind == record.EventStart, strings.HasSuffix(e.Data["message"], stillRuns):
			message = ""
		case e.Kind == record.EventLimit && e.Data["reason"] == string(ledger.WorkspaceFull):
			message = e.Data["message"]
		}
	}
	return message
}
