// Package terminal interprets the output of a program as a terminal does, and returns the text that people would see there.
//
// The output is hostile. Its control sequences change a grid of cells in memory and nothing else, each in a time that the size of the
// grid bounds, and the text is escaped. Colours are left out.
package terminal

import (
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Limits of a screen. Output that goes further is drawn at the border.
const (
	maxWidth, maxHeight         = 500, 200
	defaultWidth, defaultHeight = 80, 24
	// maxAbove bounds the bytes of the lines that have left a screen. The oldest ones are dropped. lineCost is what each takes besides its text.
	maxAbove = 8 << 20
	lineCost = 32
)

// Text returns what a terminal of a size shows after a program's output: the lines that have left the screen at its top, and the
// screen. A size of zero is that of an ordinary terminal. The text is escaped, and a line that the terminal had to break is one line.
func Text(output []byte, width, height int) string {
	t := newTerminal(width, height)
	t.write(output)
	var all strings.Builder
	var line string
	for _, l := range t.lines() {
		if line += l.text; l.goesOn {
			continue
		}
		all.WriteString(gitops.Text(strings.TrimRight(line, " ")).String())
		all.WriteByte('\n')
		line = ""
	}
	return all.String()
}

// line is the text of a row.
type line struct {
	text   string
	goesOn bool // in the next row
}

// row is a row of the grid. Cells that are missing at its end are blank.
type row struct {
	cells  []string // each a character with its marks; empty if it is blank
	goesOn bool
}

// covered is the second cell of a wide character.
const covered = "\x00"

func (r row) line() line {
	var b strings.Builder
	for _, c := range r.cells {
		switch c {
		case "":
			b.WriteByte(' ')
		case covered:
		default:
			b.WriteString(c)
		}
	}
	return line{b.String(), r.goesOn}
}

// set changes a cell.
func (r *row) set(x int, c string) {
	for len(r.cells) <= x {
		r.cells = append(r.cells, "")
	}
	r.cells[x] = c
}

// erase makes cells blank.
func (r *row) erase(from, to int) {
	if to >= len(r.cells) {
		r.cells, r.goesOn = r.cells[:min(from, len(r.cells))], false
		return
	}
	clear(r.cells[from:to])
}

// grid is one of the two screens of a terminal.
type grid struct {
	rows           []row
	x, y           int
	full           bool // the last column is written, and the next character goes into the next row
	savedX, savedY int
	top, bottom    int // the rows that scroll
}

func newGrid(height int) grid { return grid{rows: make([]row, height), bottom: height - 1} }

// used returns the rows up to the last one that has text.
func (g *grid) used() []row {
	n := len(g.rows)
	for n > 0 && strings.TrimSpace(g.rows[n-1].line().text) == "" {
		n--
	}
	return g.rows[:n]
}

type terminal struct {
	width, height int
	grid          // the visible screen
	other         grid
	alternate     bool // the visible screen is the second one, which full-screen programs use
	noWrap        bool
	last          string // the last character, for its repetition
	above         []line // that have left the first screen
	size          int    // of above in bytes
	blank         int    // lines at the end of above that have no text
}

func newTerminal(width, height int) *terminal {
	if width <= 0 || height <= 0 {
		width, height = defaultWidth, defaultHeight
	}
	width, height = max(2, min(width, maxWidth)), min(height, maxHeight)
	return &terminal{width: width, height: height, grid: newGrid(height), other: newGrid(height)}
}

// lines returns all lines: those above, the first screen, and the second one if it is visible.
func (t *terminal) lines() []line {
	all := t.above
	screens := []*grid{&t.grid}
	if t.alternate {
		screens = []*grid{&t.other, &t.grid}
	}
	for _, g := range screens {
		for _, r := range g.used() {
			all = append(all, r.line())
		}
		if n := len(all); n > 0 {
			all[n-1].goesOn = false
		}
	}
	return all
}

// keep adds rows to the lines above. Of blank rows it keeps as many in a row as the screen has, because a few bytes of output can scroll a whole
// blank screen away.
func (t *terminal) keep(rows []row) {
	for _, r := range rows {
		if t.blank++; len(r.cells) > 0 || r.goesOn {
			t.blank = 0
		}
		if t.blank > t.height {
			continue
		}
		l := r.line()
		t.above, t.size = append(t.above, l), t.size+len(l.text)+lineCost
	}
	for t.size > maxAbove {
		t.size -= len(t.above[0].text) + lineCost
		t.above = t.above[1:]
	}
}

// put writes a character of a width at the cursor. One without a width belongs to the character before.
func (t *terminal) put(c string, width int) {
	if width == 0 {
		t.mark(c)
		return
	}
	if t.x+width > t.width && !t.full {
		t.full = true
		t.x = t.width - 1
	}
	if t.full {
		t.full = false
		if t.noWrap {
			t.x = t.width - width
		} else {
			t.rows[t.y].goesOn = true
			t.x = 0
			t.feed()
		}
	}
	r := &t.rows[t.y]
	r.set(t.x, c)
	if width == 2 {
		r.set(t.x+1, covered)
	}
	t.last = c
	if t.x += width; t.x >= t.width {
		t.x, t.full = t.width-1, true
	}
}

// mark adds a mark, such as an accent, to the character before the cursor.
func (t *terminal) mark(c string) {
	const most = 32 // bytes of a cell
	x := t.x - 1
	if t.full {
		x = t.x
	}
	r := &t.rows[t.y]
	if x >= 0 && x < len(r.cells) && r.cells[x] == covered {
		x--
	}
	if x >= 0 && x < len(r.cells) && r.cells[x] != "" && len(r.cells[x])+len(c) <= most {
		r.cells[x] += c
	}
}

// move moves the cursor, at most to a border.
func (t *terminal) move(x, y int) {
	t.x, t.y, t.full = max(0, min(x, t.width-1)), max(0, min(y, t.height-1)), false
}

// feed moves the cursor one row down, and scrolls at the end.
func (t *terminal) feed() {
	switch {
	case t.y == t.bottom:
		t.scrollUp(1)
	case t.y < t.height-1:
		t.y++
	}
}

// scrollUp removes the first of the rows that scroll. What leaves the first screen at its top is kept.
func (t *terminal) scrollUp(n int) {
	if t.top == 0 && !t.alternate {
		t.keep(t.rows[:min(n, t.bottom+1)])
	}
	t.deleteRows(t.top, n)
}

// deleteRows removes rows at the row from, which is one of those that scroll. It does not keep them.
func (t *terminal) deleteRows(from, n int) {
	n = min(n, t.bottom-from+1)
	copy(t.rows[from:t.bottom+1], t.rows[from+n:t.bottom+1])
	clear(t.rows[t.bottom+1-n : t.bottom+1])
}

// scrollDown inserts blank rows at the row from.
func (t *terminal) scrollDown(from, n int) {
	if from > t.bottom {
		return
	}
	n = min(n, t.bottom-from+1)
	copy(t.rows[from+n:t.bottom+1], t.rows[from:t.bottom+1-n])
	clear(t.rows[from : from+n])
}

// wipe makes the screen blank. Its text is kept, because people may want to read it.
func (t *terminal) wipe() {
	if !t.alternate {
		t.keep(t.used())
	}
	clear(t.rows)
}

// show makes the second screen visible, or the first one again. The last text of the second one is kept.
func (t *terminal) show(alternate bool) {
	if t.alternate == alternate {
		return
	}
	t.grid, t.other, t.alternate = t.other, t.grid, alternate
	if alternate {
		t.grid = newGrid(t.height)
		t.x, t.y = t.other.x, t.other.y
	} else {
		t.keep(t.other.used())
	}
}
