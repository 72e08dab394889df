package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/promote"
)

const (
	// watchPoll is how often the status is looked up whatever the signs of a change say: what the agent has not
	// committed gives none.
	watchPoll = 2 * time.Second
	// watchPause keeps a burst of changes from being looked at one by one.
	watchPause = 200 * time.Millisecond
)

// errUnread says that nobody reads what a command says: it ends as the signal would have it end.
const errUnread = childStatus(128 + int(syscall.SIGPIPE))

// watch shows the status again whenever it changes, until it is interrupted, nobody reads it or the airlock is gone.
func (a *app) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if untilUnread(os.Stdout) { // where nothing changes, no write would tell
			cancel(errUnread)
		}
	}()
	err := a.watchWhile(ctx)
	if err == nil && errors.Is(context.Cause(ctx), errUnread) {
		return errUnread
	}
	return err
}

// watchWhile watches until ctx ends or the airlock is gone.
func (a *app) watchWhile(ctx context.Context) error {
	r, err := a.here(ctx)
	if err != nil {
		return err
	}
	changes := promote.WatchState(ctx, a.repo, a.store, r)
	view := newView(a)
	defer view.close()
	for ctx.Err() == nil {
		if err := a.look(ctx, view); err != nil {
			if ctx.Err() != nil {
				return nil // what was interrupted in the middle of a look
			}
			return err
		}
		poll := time.After(watchPoll)
		for looked := false; !looked; {
			select {
			case <-ctx.Done():
				return nil
			case <-poll:
				looked = true
			case <-changes:
				time.Sleep(watchPause)
				looked = true
			case <-view.tick:
				view.draw()
			}
		}
	}
	return nil
}

// look looks up the status and shows it. What there is to say besides is shown with it, once.
func (a *app) look(ctx context.Context, v *view) error {
	there, said := *a, &bytes.Buffer{}
	there.message = said
	r, err := there.here(ctx)
	if err != nil {
		return err
	}
	d, err := there.document(ctx, r)
	if err != nil {
		return err
	}
	return v.show(d, said.String())
}

// view is where a status is shown that changes: on a terminal always in the same place, elsewhere one after the other.
type view struct {
	out, message io.Writer
	paint
	size func() (rows, cols int) // of the terminal; nil: none
	tick <-chan time.Time

	ticker *time.Ticker
	began  time.Time
	shown  string // without what only tells the time
	last   document
	said   string
}

func newView(a *app) *view {
	v := &view{out: a.out, message: a.message, began: time.Now(), paint: paint(wantsColour(a.config, stdout, "color.airlock", "color.ui"))}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) && os.Getenv("TERM") != "dumb" {
		v.size = func() (rows, cols int) {
			size := terminalSize(fd)
			return int(size.Rows), int(size.Cols)
		}
		v.ticker = time.NewTicker(time.Second) // how long ago things were goes on
		v.tick = v.ticker.C
		fmt.Fprint(v.out, "\x1b[?1049h\x1b[?25l") // the other screen, no cursor (xterm's control sequences)
	}
	return v
}

// show shows a status, if it is another than the last one.
func (v *view) show(d document, said string) error {
	var b strings.Builder
	if err := d.print(&b, false, v.began); err != nil {
		return err
	}
	changed := b.String() != v.shown
	first := v.shown == ""
	v.shown, v.last = b.String(), d
	if v.size != nil {
		v.said = said
		v.draw()
		return nil
	}
	if said != v.said {
		fmt.Fprint(v.message, said)
	}
	v.said = said
	if !changed {
		return nil
	}
	var block strings.Builder // written at once: a reader finds no half of it
	if !first {
		block.WriteByte('\n')
	}
	if err := d.print(&block, v.paint, time.Now()); err != nil {
		return err
	}
	_, err := io.WriteString(v.out, block.String())
	return err
}

// draw draws the last status over the one before.
func (v *view) draw() {
	if v.size == nil || v.shown == "" {
		return
	}
	var b strings.Builder
	_ = v.last.print(&b, v.paint, time.Now())
	b.WriteString(v.said)
	rows, cols := v.size()
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		lines = append(lines, fold(line, cols)...)
	}
	if most := max(1, rows-1); len(lines) > most {
		lines = lines[:most]
	}
	fmt.Fprint(v.out, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\x1b[J")
}

// statusIndent is where the second column of a status begins.
const statusIndent = 11

// fold breaks a line into rows of a terminal, behind spaces where it can: what a terminal breaks by itself nobody counts.
func fold(line string, cols int) (rows []string) {
	cells, lead := cellsOf(line), 0
	for cols > 0 && lead+len(cells) > cols {
		room := cols - lead
		at := room
		for at > 0 && !strings.HasSuffix(cells[at-1], " ") {
			at--
		}
		if at == 0 {
			at = room
		}
		rows = append(rows, strings.Repeat(" ", lead)+strings.Join(cells[:at], ""))
		if cells = cells[at:]; cols > 2*statusIndent {
			lead = statusIndent
		}
	}
	return append(rows, strings.Repeat(" ", lead)+strings.Join(cells, ""))
}

// cellsOf are the characters of a line, each with the colours that begin or end at it, which take no room.
func cellsOf(line string) (cells []string) {
	colour, within := "", false
	for _, r := range line {
		switch {
		case r == 0x1b || within:
			colour, within = colour+string(r), r != 'm'
		default:
			cells, colour = append(cells, colour+string(r)), ""
		}
	}
	if n := len(cells); n > 0 {
		cells[n-1] += colour
	}
	return cells
}

// close leaves the last status on the screen that was there before.
func (v *view) close() {
	if v.size == nil {
		return
	}
	v.ticker.Stop()
	fmt.Fprint(v.out, "\x1b[?25h\x1b[?1049l")
	if v.shown != "" {
		_ = v.last.print(v.out, v.paint, time.Now())
	}
}
