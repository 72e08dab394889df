package ui

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// backToNormal puts a terminal back into the modes that a shell expects, see console_codes(4) and xterm's ctlseqs. Each
// sequence changes nothing on a terminal that is in these modes, the place of the cursor included: so there is no
// "?1049l", which moves it, unless somebody sent "?1049h".
const backToNormal = "\x1b\\" + // the end of a string that was begun
	"\x1b[?47l\x1b[?1047l" + // the other screen
	"\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" + // the mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?2048l" + // focus, pasting, updates held back, reports of the size
	"\x1b[?1l\x1b>\x1b[>4m" + // keys of the cursor, of the number pad, with modifiers
	"\x1b[?5l\x1b[?7h\x1b[?8h\x1b[?25h\x1b[2l\x1b[4l\x1b[12h\x1b[20l" + // colours turned, lines wrapped, cursor, keyboard, insertion, echo, line feeds
	"\x1b7\x1b[r\x1b8" + // the region that scrolls, which moves the cursor
	"\x0f\x1b(B\x1b)B\x1b[0m" // letters and colours

// usuallyOn are private modes that a terminal begins with.
var usuallyOn = []string{"7", "8", "25"}

const (
	// mostModes bounds what is remembered of what the agent sent.
	mostModes = 256
	// mostPops is deeper than terminals' stacks are.
	mostPops = 16
	// longestSequence is longer than any control sequence that sets a mode.
	longestSequence = 128
)

// Modes passes on what a program shows and notes which modes of the terminal the program has changed. What it misses,
// as terminals read some sequences in ways of their own, [backToNormal] has.
type Modes struct {
	Out io.Writer

	mu       sync.Mutex
	over     bool            // what is left of the output is not shown any more
	touched  bool            // something other than text was shown
	sequence []byte          // from an escape on
	set      map[string]bool // private modes that are on now, and are not usually
	titles   int             // put aside
	keyboard bool            // another protocol for it
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

// note reads one byte of output.
func (m *Modes) note(c byte) {
	const shiftOut, eightBits = 0x0e, 0x80 // what may begin a sequence, too
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

// change notes a control sequence by its parameters and its last byte.
func (m *Modes) change(parameters string, final byte) {
	private, isPrivate := strings.CutPrefix(parameters, "?")
	switch {
	case isPrivate && (final == 'h' || final == 'l'):
		for mode := range strings.SplitSeq(private, ";") {
			mode = strings.TrimLeft(mode, "0")
			switch {
			case final == 'l' || slices.Contains(usuallyOn, mode):
				delete(m.set, mode)
			case len(m.set) < mostModes && digits(mode):
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

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// Undo puts the terminal back; nothing is shown afterwards.
func (m *Modes) Undo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
	if !m.touched {
		return
	}
	var b strings.Builder
	b.WriteString("\x18") // ends a sequence that was begun
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
