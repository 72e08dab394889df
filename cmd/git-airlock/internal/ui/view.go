package ui

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Printed is the content of a [View]: it prints itself as text, with the times that have passed until now.
type Printed interface {
	Print(w io.Writer, p Paint, now time.Time) error
}

// View shows a changing status. On a terminal each status replaces the previous one, elsewhere it follows it.
type View struct {
	out, message io.Writer
	colour       Paint
	size         func() (rows, cols int) // of the terminal; nil without one
	Tick         <-chan time.Time

	ticker *time.Ticker
	began  time.Time
	shown  string // the last status, without relative times
	last   Printed
	said   string
}

// NewView returns a view that shows a status on out, and other messages on message.
func NewView(out, message io.Writer, p Paint) *View {
	v := &View{out: out, message: message, began: Now(), colour: p}
	if IsTerminal(os.Stdout) && Variable("TERM") != "dumb" {
		v.size = func() (rows, cols int) { return TerminalSize(os.Stdout) }
		v.ticker = time.NewTicker(time.Second) // updates the relative times
		v.Tick = v.ticker.C
		fmt.Fprint(v.out, "\x1b[?1049h\x1b[?25l") // alternate screen, no cursor (xterm's control sequences)
	}
	return v
}

// Show shows a status if it differs from the last one.
func (v *View) Show(d Printed, said string) error {
	var b strings.Builder
	if err := d.Print(&b, false, v.began); err != nil {
		return err
	}
	changed, first := b.String() != v.shown, v.shown == ""
	v.shown, v.last = b.String(), d
	if v.size != nil {
		v.said = said
		v.Draw()
		return nil
	}
	if said != v.said {
		fmt.Fprint(v.message, said)
	}
	v.said = said
	if !changed {
		return nil
	}
	var block strings.Builder // written with one call, so that a reader never gets half of it
	if !first {
		block.WriteByte('\n')
	}
	if err := d.Print(&block, v.colour, Now()); err != nil {
		return err
	}
	_, err := io.WriteString(v.out, block.String())
	return err
}

// Draw draws the last status on the terminal.
func (v *View) Draw() {
	if v.size == nil || v.shown == "" {
		return
	}
	var b strings.Builder
	_ = v.last.Print(&b, v.colour, Now())
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

// statusIndent is the position of the second column of a status.
const statusIndent = 11

// fold breaks a line into rows of a terminal, after spaces if possible. It is needed to count the rows, which a terminal that
// breaks lines itself does not report.
func fold(line string, cols int) (rows []string) {
	cells, lead := cellsOf(line), 0
	for cols > 0 && lead+len(cells) > cols {
		room := cols - lead
		at := room
		for at > 0 && !strings.HasSuffix(cells[at-1], " ") {
			at--
		}
		at = cmp.Or(at, room)
		rows = append(rows, strings.Repeat(" ", lead)+strings.Join(cells[:at], ""))
		if cells = cells[at:]; cols > 2*statusIndent {
			lead = statusIndent
		}
	}
	return append(rows, strings.Repeat(" ", lead)+strings.Join(cells, ""))
}

// cellsOf returns the characters of a line, each with the colour sequences before it, which take no space.
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

// Close restores the previous screen, and prints the last status there.
func (v *View) Close() {
	if v.size == nil {
		return
	}
	v.ticker.Stop()
	fmt.Fprint(v.out, "\x1b[?25h\x1b[?1049l")
	if v.shown != "" {
		_ = v.last.Print(v.out, v.colour, Now())
	}
}
