package ui

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"
)

// What a step has to take before it is worth a line on a terminal, and how often that line changes.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

// Progress is a line on a terminal that says what a long command is at and how far. A nil Progress shows nothing. It is
// taken away before anything else is said.
type Progress struct {
	mu        sync.Mutex
	what      string
	done, all int // of what can be counted; where nothing can, the time is shown
	began     time.Time
	shown     bool
	end       chan struct{}
	ended     sync.WaitGroup
}

// NewProgress begins a line, if standard error is a terminal. GIT_PROGRESS_DELAY is how many seconds pass before it is
// shown, as for git.
func NewProgress(what string) *Progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	after := progressAfter
	if seconds, err := strconv.Atoi(os.Getenv("GIT_PROGRESS_DELAY")); err == nil && seconds >= 0 {
		after = time.Duration(seconds) * time.Second
	}
	p := &Progress{what: what, began: time.Now(), end: make(chan struct{})}
	oneLine.Lock()
	oneLine.steps = append(oneLine.steps, p)
	oneLine.Unlock()
	if after == 0 {
		p.draw()
	}
	p.ended.Add(1)
	go p.run(after)
	return p
}

func (p *Progress) run(after time.Duration) {
	defer p.ended.Done()
	for next := time.After(after); ; next = time.After(progressEvery) {
		select {
		case <-p.end:
			return
		case <-next:
			p.draw()
		}
	}
}

// oneLine is the one line that there is. Of several steps at the same time it tells of the one that began last.
var oneLine struct {
	sync.Mutex
	steps []*Progress
}

func (p *Progress) draw() {
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
		fmt.Fprintf(os.Stderr, "%s, for %s\x1b[K", text, span(time.Since(p.began)))
	}
	p.shown = true
}

// Step says what it is at now, and how much of it is done, of all if that is known.
func (p *Progress) Step(what string, done, all int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.what != what {
		p.began = time.Now()
	}
	p.what, p.done, p.all = what, done, all
}

// Close takes the line away. It can be called again.
func (p *Progress) Close() {
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
	oneLine.steps = slices.DeleteFunc(oneLine.steps, func(o *Progress) bool { return o == p })
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

// CountedProgress shows how far one long step is. done takes the line away.
func CountedProgress(what string) (progress func(done, all int), done func()) {
	p := NewProgress(what)
	if p == nil {
		return nil, func() {}
	}
	return func(done, all int) { p.Step(what, done, all) }, p.Close
}

// Count returns r; what is read of it is shown as progress, in MiB.
func (p *Progress) Count(r io.Reader, what string) io.Reader {
	return &countedReader{Reader: r, line: p, what: what}
}

// countedReader counts what is read, in MiB, as progress.
type countedReader struct {
	io.Reader
	line *Progress
	what string
	read int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	c.line.Step(c.what, int(c.read>>20), 0)
	return n, err
}
