package terminal

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/git-airlock/git-airlock/gitops"
)

// write interprets output: characters, control characters, and control sequences, see console_codes(4).
func (t *terminal) write(output []byte) {
	for len(output) > 0 {
		c, n := output[0], 1
		switch {
		case c == '\x1b':
			n = t.afterEscape(output)
		case c < ' ', c == '\x7f':
			t.control(c)
		default:
			var r rune
			r, n = utf8.DecodeRune(output)
			switch {
			case r == blankBraille:
				t.put(" ", 1)
			case !invisible(r):
				t.put(string(output[:n]), columns(r))
			}
		}
		output = output[n:]
	}
}

// blankBraille is the braille pattern without a dot, which programs draw between others.
const blankBraille = '\u2800'

// invisible reports whether a terminal shows nothing for a character. Controls and private characters are shown, as escapes.
func invisible(r rune) bool { return gitops.Hidden(r) && !unicode.In(r, unicode.Cc, unicode.Co) }

// columns returns the width of a character.
func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// control obeys a control character.
func (t *terminal) control(c byte) {
	const tab = 8
	switch c {
	case '\b':
		t.move(t.x-1, t.y)
	case '\t':
		t.move((t.x/tab+1)*tab, t.y)
	case '\n', '\v', '\f':
		t.full = false
		t.feed()
	case '\r':
		t.move(0, t.y)
	}
}

// afterEscape obeys the sequence at the beginning of output, and returns its length. A sequence without an end is dropped.
func (t *terminal) afterEscape(output []byte) int {
	if len(output) < 2 {
		return len(output)
	}
	switch c := output[1]; c {
	case '[':
		return t.sequence(output)
	case ']', 'P', 'X', '^', '_': // a title, or other text that is not shown
		end := bytes.IndexAny(output[2:], "\a\x1b\x18\x1a")
		switch {
		case end < 0:
			return len(output)
		case bytes.HasPrefix(output[2+end:], []byte("\x1b\\")):
			return 2 + end + 2
		case output[2+end] == '\x1b':
			return 2 + end
		}
		return 2 + end + 1
	case '7':
		t.savedX, t.savedY = t.x, t.y
	case '8':
		t.move(t.savedX, t.savedY)
	case 'D':
		t.feed()
	case 'E':
		t.move(0, t.y)
		t.feed()
	case 'M':
		if t.y == t.top {
			t.scrollDown(t.top, 1)
		} else {
			t.move(t.x, t.y-1)
		}
	case 'c':
		t.show(false)
		t.wipe()
		t.grid, t.noWrap = newGrid(t.height), false
	default:
		n := 1
		for n < len(output) && output[n] >= ' ' && output[n] <= '/' {
			n++
		}
		return min(n+1, len(output))
	}
	return 2
}

// sequence obeys a control sequence, which begins with ESC [, and returns its length.
func (t *terminal) sequence(output []byte) int {
	n := 2
	for n < len(output) && output[n] >= ' ' && output[n] <= '?' {
		n++
	}
	if n == len(output) || output[n] < '@' || output[n] > '~' {
		return n
	}
	parameters, final := output[2:n], output[n]
	private := len(parameters) > 0 && parameters[0] > ';'
	switch numbers := numbersOf(parameters); {
	case !private && !slices.ContainsFunc(parameters, func(c byte) bool { return c < '0' }):
		t.obey(final, numbers)
	case parameters[0] == '?' && (final == 'h' || final == 'l'):
		for _, mode := range numbers {
			t.setMode(mode, final == 'h')
		}
	case parameters[0] == '?' && (final == 'J' || final == 'K'):
		t.obey(final, numbers)
	}
	return n + 1
}

// maxNumber bounds the numbers of a sequence.
const maxNumber = 9999

// numbersOf returns the numbers of a sequence, of which there is at least one. A missing one is 0.
func numbersOf(parameters []byte) []int {
	const most = 16
	numbers := []int{0}
	for _, c := range parameters {
		last := &numbers[len(numbers)-1]
		switch {
		case c >= '0' && c <= '9':
			*last = min(*last*10+int(c-'0'), maxNumber)
		case c == ';' || c == ':':
			if len(numbers) == most {
				return numbers
			}
			numbers = append(numbers, 0)
		}
	}
	return numbers
}

// setMode obeys a change of a mode.
func (t *terminal) setMode(mode int, on bool) {
	switch mode {
	case 7:
		t.noWrap = !on
	case 47, 1047, 1049:
		t.show(on)
	}
}

// obey obeys a control sequence with its final byte and its numbers.
func (t *terminal) obey(final byte, numbers []int) {
	n := max(1, numbers[0])
	second := 0
	if len(numbers) > 1 {
		second = numbers[1]
	}
	switch final {
	case 'A':
		t.move(t.x, t.y-n)
	case 'B', 'e':
		t.move(t.x, t.y+n)
	case 'C', 'a':
		t.move(t.x+n, t.y)
	case 'D':
		t.move(t.x-n, t.y)
	case 'E':
		t.move(0, t.y+n)
	case 'F':
		t.move(0, t.y-n)
	case 'G', '`':
		t.move(n-1, t.y)
	case 'd':
		t.move(t.x, n-1)
	case 'H', 'f':
		t.move(max(1, second)-1, n-1)
	case 's':
		t.savedX, t.savedY = t.x, t.y
	case 'u':
		t.move(t.savedX, t.savedY)
	case 'r':
		t.setMargins(n-1, second-1)
	case 'b':
		last, _ := utf8.DecodeRuneInString(t.last)
		for range min(n, t.width) {
			if t.last != "" {
				t.put(t.last, columns(last))
			}
		}
	default:
		t.edit(final, n, numbers[0])
	}
}

// setMargins sets the rows that scroll. Margins that are not possible mean the whole screen.
func (t *terminal) setMargins(top, bottom int) {
	if bottom < 0 || bottom >= t.height {
		bottom = t.height - 1
	}
	if top >= bottom {
		top, bottom = 0, t.height-1
	}
	t.top, t.bottom = top, bottom
	t.move(0, 0)
}

// edit obeys a sequence that erases, inserts, deletes or scrolls: n times, or in the way that kind is the number of.
func (t *terminal) edit(final byte, n, kind int) {
	r := &t.rows[t.y]
	switch final {
	case 'J':
		t.eraseScreen(kind)
	case 'K':
		switch kind {
		case 0:
			r.erase(t.x, t.width)
		case 1:
			r.erase(0, t.x+1)
		case 2:
			r.erase(0, t.width)
		}
	case 'X':
		r.erase(t.x, min(t.x+n, t.width))
	case '@':
		if n = min(n, t.width-t.x); t.x < len(r.cells) {
			r.cells = slices.Insert(r.cells, t.x, make([]string, n)...)
			r.cells = r.cells[:min(len(r.cells), t.width)]
		}
	case 'P':
		if t.x < len(r.cells) {
			r.cells = slices.Delete(r.cells, t.x, min(t.x+n, len(r.cells)))
		}
	case 'L':
		t.scrollDown(max(t.y, t.top), n)
	case 'M':
		if t.y >= t.top && t.y <= t.bottom {
			t.deleteRows(t.y, n) // not kept, since a program removes them on purpose
		}
	case 'S':
		t.scrollUp(n)
	case 'T':
		t.scrollDown(t.top, n)
	}
}

// eraseScreen erases from the cursor on (0), up to it (1), everything (2), or the lines that have left the screen (3).
func (t *terminal) eraseScreen(kind int) {
	switch kind {
	case 0:
		if t.x == 0 && t.y == 0 {
			t.wipe()
			return
		}
		t.rows[t.y].erase(t.x, t.width)
		clear(t.rows[t.y+1:])
	case 1:
		clear(t.rows[:t.y])
		t.rows[t.y].erase(0, t.x+1)
	case 2:
		t.wipe()
	case 3:
		t.above, t.size = nil, 0
	}
}
