// Package busy bounds the processor time of git commands.
//
// An agent chooses what git merges: a file of a million lines that differ everywhere takes 16 seconds, and a commit can have any number of such
// files. The time of a clock would also count the work of other programs, of which a machine may have much.
package busy

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// Meter counts the processor time of some commands, and bounds that of each.
type Meter struct {
	Most time.Duration // for each of them; 0: no limit
	used atomic.Int64  // by all of them, in nanoseconds
	over atomic.Bool   // one has used more than Most
}

// Start watches a command that has just started. On another system than Linux, a command has no limit.
func (t *Meter) Start(p *os.Process) {
	if t != nil && t.Most > 0 {
		go t.watch(p)
	}
}

// Ended counts the time of a command that has ended. p is nil for one that did not start.
func (t *Meter) Ended(p *os.ProcessState) {
	if t != nil && p != nil {
		t.used.Add(int64(p.UserTime() + p.SystemTime()))
	}
}

// Work names a merge by the objects that are merged: the change From one To another goes Onto a third. Change names the same change if its objects
// differ each time; it may be empty.
type Work struct{ Kind, From, To, Onto, Change string }

// change returns what a merge has in common with those of the same change onto other objects, which usually take as long.
func (w Work) change() Work {
	if w.Change != "" {
		return Work{Kind: w.Kind, Change: w.Change}
	}
	return Work{Kind: w.Kind, From: w.From, To: w.To}
}

// Slow remembers the merges that did not end in their time. The zero value is ready for use.
type Slow struct {
	given    map[Work]time.Duration // the time that they had
	cutShort bool                   // see CutShort
}

// mostRemembered bounds the merges in a [Slow]. Each has taken some time.
const mostRemembered = 10_000

const (
	shortTime   = 3 * time.Second // see [Slow.Budget]
	moments     = 60              // in the limit
	mostRetried = 5               // bounds the merges with a change that is known to take long, and that take long again
)

// Budget returns the processor time for the merges of a build. Each can have limit, which is airlock.limit.time. In a short budget it has at most
// a few seconds, because a command that must end soon waits for the build.
func (m *Slow) Budget(limit time.Duration, short bool) Budget {
	b := Budget{limit: limit, memory: m}
	if m.cutShort = false; short && limit > shortTime {
		b.limit, b.short = shortTime, true
	}
	return b
}

// CutShort reports whether a merge of the last build had not enough time, and airlock.limit.time allows more.
func (m *Slow) CutShort() bool { return m.cutShort }

// add remembers that a merge did not end in the time that it was given.
func (m *Slow) add(w Work, given time.Duration) {
	if m.given == nil || len(m.given) > mostRemembered {
		m.given = map[Work]time.Duration{}
	}
	m.given[w] = max(m.given[w], given)
}

// Budget bounds the processor time of the merges of one build. Each merge can have all of the limit, unless those before it, or another one with
// the same change, have used that much. Then it has only a moment, which is enough for most merges, and after twice the limit it has no time. The
// zero value has no limit.
type Budget struct {
	limit   time.Duration // for one merge; 0: none
	short   bool          // limit is shorter than the setting
	memory  *Slow         // of former builds; nil without a limit
	used    time.Duration
	retried int // see mostRetried
}

// Left reports whether the merges so far have not used the limit.
func (b *Budget) Left() bool { return b.memory == nil || b.used < b.limit }

// Do makes a merge, whose commands use the meter. The error is an *[Error] if there is not enough time, or was not when the same merge was tried.
func (b *Budget) Do(w Work, merge func(*Meter) error) error {
	if b.memory == nil {
		return merge(nil)
	}
	t, known := &Meter{Most: b.limit}, b.memory.given[w.change()] >= b.limit
	if known || !b.Left() {
		t.Most = b.limit / moments
	}
	over := &Error{limit: b.limit, short: b.short, all: !known && !b.Left()}
	if b.used < 2*b.limit && b.memory.given[w] < t.Most && (!known || b.retried < mostRetried) {
		err := merge(t)
		b.used += time.Duration(t.used.Load())
		if err == nil || !t.over.Load() {
			return err
		}
		if known {
			b.retried++
		}
		b.memory.add(w, t.Most)
		b.memory.add(w.change(), t.Most)
	}
	b.memory.cutShort = b.memory.cutShort || b.short
	return over
}

// Error reports that there was not enough processor time for a merge.
type Error struct {
	limit time.Duration
	short bool // limit is shorter than the setting
	all   bool // other merges have used the time
}

func (e *Error) Error() string {
	what := "it needs"
	if e.all {
		what = "the merges of one cycle need"
	}
	if e.short {
		return fmt.Sprintf("%s more than %s s of processor time", what, seconds(e.limit))
	}
	return fmt.Sprintf("%s more than the %s s of processor time that airlock.limit.time allows", what, seconds(e.limit))
}

// More returns a command that allows a merge more processor time, or an empty string if the same setting allows more in another cycle.
func (e *Error) More() string {
	if e.short {
		return ""
	}
	return "git config airlock.limit.time " + seconds(moreTimes*e.limit)
}

// moreTimes is how many times the limit is that a hint names.
const moreTimes = 10

// seconds formats a duration without a unit.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
