package ui

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The time after which a step gets a progress line on a terminal, and the interval of its updates.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// progress is a line on a terminal that shows the current step of a long command, and how much of it is done. A nil progress
// shows nothing. The line is removed before any other output.
type progress struct {
	mu        sync.Mutex
	what      string
	done, all int // counts; without counts the elapsed time is shown
	began     time.Time
	shown     bool
	end       chan struct{}
	ended     sync.WaitGroup
}

// newProgress starts a line if standard error is a terminal. As in git, GIT_PROGRESS_DELAY is the number of seconds before
// the line is shown.
func newProgress(what string) *progress {
	if !IsTerminal(os.Stderr) {
		return nil
	}
	after := progressAfter
	if seconds, err := strconv.Atoi(Variable("GIT_PROGRESS_DELAY")); err == nil && seconds >= 0 {
		after = time.Duration(seconds) * time.Second
	}
	p := &progress{what: what, began: Now(), end: make(chan struct{})}
	oneLine.Lock()
	oneLine.steps = append(oneLine.steps, p)
	oneLine.Unlock()
	if after == 0 {
		p.draw()
	}
	p.ended.Go(func() { p.run(after) })
	return p
}

func (p *progress) run(after time.Duration) {
	for next := time.After(after); ; next = time.After(progressEvery) {
		select {
		case <-p.end:
			return
		case <-next:
			p.draw()
		}
	}
}

// oneLine is the only progress line. If several steps run at once, it shows the one that started last.
var oneLine struct {
	sync.Mutex
	steps []*progress
}

func (p *progress) draw() {
	oneLine.Lock()
	defer oneLine.Unlock()
	if oneLine.steps[len(oneLine.steps)-1] != p {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch text := "\rairlock: " + p.what; {
	case p.all > 0:
		fmt.Fprintf(os.Stderr, "%s: %3d%% (%d of %d)\x1b[K", text, 100*p.done/p.all, p.done, p.all)
	case p.done > 0:
		fmt.Fprintf(os.Stderr, "%s: %d\x1b[K", text, p.done)
	default:
		fmt.Fprintf(os.Stderr, "%s, for %s\x1b[K", text, span(Now().Sub(p.began)))
	}
	p.shown = true
}

// step sets the text of the line, and how much of the step is done. all is 0 if it is unknown.
func (p *progress) step(what string, done, all int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.what != what {
		p.began = Now()
	}
	p.what, p.done, p.all = what, done, all
}

// close removes the line. It can be called more than once.
func (p *progress) close() {
	if p == nil {
		return
	}
	select {
	case <-p.end:
		return
	default:
	}
	close(p.end)
	p.ended.Wait()
	oneLine.Lock()
	defer oneLine.Unlock()
	oneLine.steps = slices.DeleteFunc(oneLine.steps, func(o *progress) bool { return o == p })
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
