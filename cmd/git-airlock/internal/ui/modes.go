package ui

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// backToNormal restores the terminal modes that a shell expects, see console_codes(4) and xterm's ctlseqs. On a terminal
// that is in these modes already, no sequence changes anything, not even the position of the cursor. "?1049l" moves the
// cursor, and is therefore only sent after "?1049h".
const backToNormal = "\x1b\\" + // end an open string
	"\x1b[?47l\x1b[?1047l" + // alternate screen
	"\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" + // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2048l" + // focus, bracketed paste, synchronized updates, size reports
	"\x1b[?1l\x1b>\x1b[>4m" + // cursor keys, number pad, modified keys
	"\x1b[?5l\x1b[?7h\x1b[?8h\x1b[?25h\x1b[2l\x1b[4l\x1b[12h\x1b[20l" + // reverse video, wrap, key repeat, cursor, keyboard, insertion, echo, line feeds
	"\x1b7\x1b[r\x1b8" + // scroll region, which moves the cursor
	"\x0f\x1b(B\x1b)B\x1b[0m" // character sets and colours

// usuallyOn lists the private modes that are on when a terminal starts.
var usuallyOn = []string{"7", "8", "25"}

const (
	// mostModes bounds the number of modes that are remembered.
	mostModes = 256
	// mostPops is greater than the depth of terminals' title stacks.
	mostPops = 16
	// longestSequence is greater than the length of any control sequence that sets a mode.
	longestSequence = 128
)

// Modes passes a program's output on, and records which modes of the terminal the program has changed. Terminals read some
// sequences in different ways. [backToNormal] also resets the modes that are missed for this reason.
type Modes struct {
	Out io.Writer

	mu       sync.Mutex
	over     bool            // the rest of the output is not shown
	touched  bool            // the output contained more than text
	sequence []byte          // the current sequence, from its escape on
	set      map[string]bool // private modes that are on, but usually off
	titles   int             // number of titles on the stack
	keyboard bool            // another keyboard protocol is on
}

func (m *Modes) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return 0, io.ErrClosedPipe
	}
	for _, c := range p {
		m.note(c)
	}
	return m.Out.Write(p)
}

// note processes one byte of output.
func (m *Modes) note(c byte) {
	const shiftOut, eightBits = 0x0e, 0x80 // these can begin a sequence, too
	m.touched = m.touched || c == 0x1b || c == shiftOut || c >= eightBits
	switch {
	case c == 0x1b:
		m.sequence = append(m.sequence[:0], c)
	case len(m.sequence) == 0 || c < ' ': // terminals obey control characters in the middle of a sequence
	case len(m.sequence) == 1 && c != '[' || len(m.sequence) >= longestSequence:
		m.sequence = m.sequence[:0]
	case len(m.sequence) > 1 && c >= '@' && c <= '~':
		m.change(string(m.sequence[2:]), c)
		m.sequence = m.sequence[:0]
	default:
		m.sequence = append(m.sequence, c)
	}
}

// change records a control sequence, given its parameters and its last byte.
func (m *Modes) change(parameters string, final byte) {
	private, isPrivate := strings.CutPrefix(parameters, "?")
	switch {
	case isPrivate && (final == 'h' || final == 'l'):
		for mode := range strings.SplitSeq(private, ";") {
			mode = strings.TrimLeft(mode, "0")
			switch {
			case final == 'l' || slices.Contains(usuallyOn, mode):
				delete(m.set, mode)
			case len(m.set) < mostModes && mode != "" && strings.Trim(mode, "0123456789") == "":
				if m.set == nil {
					m.set = map[string]bool{}
				}
				m.set[mode] = true
			}
		}
	case final == 'u' && strings.IndexAny(parameters, ">=") == 0:
		m.keyboard = true
	case final == 't' && (parameters == "22" || strings.HasPrefix(parameters, "22;")):
		m.titles++
	case final == 't' && (parameters == "23" || strings.HasPrefix(parameters, "23;")):
		m.titles = max(0, m.titles-1)
	}
}

// Undo restores the terminal's modes. Later output is not shown.
func (m *Modes) Undo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	if !m.touched {
		return
	}
	var b strings.Builder
	b.WriteString("\x18") // ends an open sequence
	for _, mode := range slices.Sorted(maps.Keys(m.set)) {
		fmt.Fprintf(&b, "\x1b[?%sl", mode)
	}
	if m.keyboard {
		b.WriteString("\x1b[<99u\x1b[=0u")
	}
	b.WriteString(strings.Repeat("\x1b[23;0t", min(m.titles, mostPops)))
	b.WriteString(backToNormal)
	_, _ = io.WriteString(m.Out, b.String()) // a terminal that is gone has no modes
}
