package execs

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestCallsAreBounded makes, ends and forgets calls of many processes in any order. The recorder must never hold more than its bounds, and must
// write each call exactly once when nothing of the call changes any more.
func TestCallsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := &recorder{shared: &shared{}, processes: map[int]*process{}, callers: map[int]*process{}, gone: map[int]origin{}, rules: &Rules{}}
	r.drained = sync.NewCond(&r.mu)
	long := strings.Repeat("x", maxArguments)
	ended, doubted, calls := map[uint64]int{}, 0, uint64(0)
	flush := func() {
		for _, record := range r.queue {
			if ended[record.Seq]++; record.Disputed {
				doubted++
			}
		}
		r.queue, r.queued = nil, 0
	}
	for step := range 40000 {
		pid := 1000 * (1 + random.IntN(300))
		p, fresh := r.processes[pid], false
		if p == nil {
			p, fresh = &process{pid: pid}, true
		}
		switch n := random.IntN(100); {
		case n < 80:
			argv := []string{long[:random.IntN(len(long))]}
			r.enter(p, &entry{call: call{path: "./p", argv: argv}, thread: pid + random.IntN(200)}, fresh)
			calls++
		case fresh:
		case n < 88:
			thread := pid + random.IntN(200)
			r.failed(p, func(e *entry) bool { return e.thread == thread }, image{random: true})
		case n < 97 && len(p.calls) > 0:
			r.ran(p, found{exe: "/p", given: given{path: "./p", argv: p.calls[0].call.argv}, ok: true})
		case n < 99:
			r.end(p, nil)
		}
		flush()
		if step%50 != 0 {
			continue
		}
		held, pending := 0, 0
		for _, p := range r.processes {
			pending += len(p.calls)
			if len(p.calls) > maxCalls {
				t.Fatalf("step %d: %d calls of a process", step, len(p.calls))
			}
			for _, e := range p.entries() {
				held += e.size
			}
		}
		if held != r.held || held > maxHeld || len(r.callers) > pending {
			t.Fatalf("step %d: holds %d bytes, noted %d, %d threads of %d calls", step, held, r.held, len(r.callers), pending)
		}
	}
	for _, p := range r.processes {
		r.end(p, nil)
	}
	flush()
	for seq := uint64(1); seq <= calls; seq++ {
		if ended[seq] != 1 {
			t.Fatalf("call %d was written %d times", seq, ended[seq])
		}
	}
	if r.held != 0 || len(r.callers) != 0 || uint64(len(ended)) != calls {
		t.Errorf("%d bytes and %d threads remain, %d records of %d calls", r.held, len(r.callers), len(ended), calls)
	}
	t.Logf("%d of %d calls are disputed", doubted, calls)
}

// entries returns the entries that a process holds.
func (p *process) entries() []*entry {
	all := slices.Clone(p.calls)
	if p.first != nil {
		all = append(all, p.first)
	}
	if p.last != nil && p.last != p.first {
		all = append(all, p.last)
	}
	return all
}
