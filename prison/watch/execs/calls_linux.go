package execs

import (
	"slices"
	"time"
)

// The recorder is a process of the host, and no limit of the prison applies to it. Therefore its memory is bounded: a call beyond one of
// these bounds is written without waiting for its result, as disputed.
const (
	// maxCalls bounds the calls of a process that can have failed. Each thread makes one at a time.
	maxCalls = 64
	// maxHeld bounds the size in bytes of all entries: calls that can have failed, and programs that run.
	maxHeld = 12 << 20
	// maxQueue and maxQueued bound the records that wait to be written, and their size in bytes. A further call waits for them.
	maxQueue  = 1024
	maxQueued = 4 << 20
	// overhead is about the size in bytes of an entry without its texts, and overheadWord that of a word.
	overhead, overheadWord = 512, 16
)

// size returns about how many bytes of memory a record takes.
func (r *Record) size() int {
	n := overhead + len(r.CWD) + len(r.Path)
	for _, w := range r.Argv {
		n += overheadWord + len(w)
	}
	return n
}

// awaitRoom waits until the queue has room. The caller holds the lock, as of all functions in this file.
func (r *recorder) awaitRoom() {
	for len(r.queue) >= maxQueue || r.queued >= maxQueued {
		r.poll.wake()
		r.drained.Wait()
	}
}

// push adds a record to the queue.
func (r *recorder) push(record Record) {
	r.queue = append(r.queue, record)
	r.queued += record.size()
}

// hold adds a call to those of a process.
func (r *recorder) hold(p *process, e *entry) {
	if len(p.calls) >= maxCalls {
		oldest := p.calls[0]
		p.calls = slices.Delete(p.calls, 0, 1)
		oldest.Disputed = true
		r.release(p, oldest)
	}
	p.calls = append(p.calls, e)
	r.held += e.size
	if e.thread != p.pid {
		r.callers[e.thread] = p
	}
}

// release queues a record that does not change any more.
func (r *recorder) release(p *process, e *entry) {
	r.decided(p, e)
	r.held -= e.size
	r.push(e.Record)
}

// decided forgets the thread of a call whose result is known.
func (r *recorder) decided(p *process, e *entry) {
	if r.callers[e.thread] == p {
		delete(r.callers, e.thread)
	}
}

// failed queues the records of calls that have failed, after which the process executes the same program as before. Calls of other threads
// may still wait. Another goroutine may read the previous list, see pending.
func (r *recorder) failed(p *process, is func(*entry) bool, now image) {
	p.calls = slices.DeleteFunc(slices.Clone(p.calls), func(e *entry) bool {
		if !is(e) {
			return false
		}
		e.Disputed = e.Disputed || !now.sure(e.before)
		r.release(p, e)
		return true
	})
}

// ran records the program that a process executes. At most one of its calls can have been carried out: the others waited in other
// threads, which the kernel has ended. If it is not known which one, all are disputed. The record of the one that was carried out has only
// those bytes of the arguments that the program still has.
func (r *recorder) ran(p *process, f found) {
	calls := p.calls
	p.calls = nil
	chosen := calls[len(calls)-1]
	disputed, matches := true, false
	for _, e := range calls {
		if f.ok && f.exe != "" && e.call.gave(f.given) { // without exe, the process ended while it was read
			chosen, matches = e, true
			disputed = e.before.failed || r.rules.refusesFile(f.exe) != "" && e.call.direct(f.given) // a link was changed after it was followed
		}
	}
	for _, e := range calls {
		if e != chosen {
			e.Disputed = !matches
			r.release(p, e)
		}
	}
	if matches && len(chosen.Argv) > 0 { // without any, the kernel gives an empty one
		chosen.Argv, _ = chosen.call.known(f.given)
	}
	r.became(p, chosen, f.exe, disputed)
}

// became makes an entry the program of a process. The program before has ended, and has no exit status.
func (r *recorder) became(p *process, e *entry, exe string, disputed bool) {
	r.decided(p, e)
	if exe != "" {
		e.Exe = &exe
	}
	e.Disputed = disputed
	if p.last != nil && p.last != p.first {
		p.last.ended(e.begun, nil)
		r.release(p, p.last)
	}
	p.last = e
	if p.first == nil {
		p.first = e
	}
}

// ended sets the duration and the exit status.
func (e *entry) ended(at time.Time, code *int) {
	ms := max(at.Sub(e.begun).Milliseconds(), 0)
	e.MS, e.Exit = &ms, code
}

// end finishes the records of a process that has ended, at the time at, or now if at is nil.
func (r *recorder) end(p *process, at *time.Time) {
	now := time.Now()
	if at != nil {
		now = *at
	}
	delete(r.processes, p.pid)
	r.unused = append(r.unused, p.fd)
	if len(r.gone) >= maxGone {
		clear(r.gone)
	}
	r.gone[p.pid] = p.origin
	if len(p.calls) > 0 { // it was killed before it could be checked
		r.ran(p, found{})
	}
	for i, e := range []*entry{p.first, p.last} {
		if e != nil && (i == 0 || e != p.first) {
			e.ended(now, p.code)
			r.release(p, e)
		}
	}
	r.hurry()
}
