// Package modes records the modes that a program has set on its terminal, for a terminal that joins the program later.
//
// It knows a fixed list of modes, see console_codes(4), xterm's ctlseqs and kitty's keyboard protocol. [Tracker.Set] writes sequences
// for these modes alone, so the output of a hostile program can set nothing else, and cannot make a Tracker grow.
package modes

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Groups of private modes. Only one mode of a group is on at a time: setting one replaces another, and resetting any resets the group.
var groups = map[int]string{
	47: "screen", 1047: "screen", 1049: "screen", // the alternate screen
	9: "mouse", 1000: "mouse", 1001: "mouse", 1002: "mouse", 1003: "mouse",
	1005: "positions", 1006: "positions", 1015: "positions", 1016: "positions", // how the mouse is reported
	1: "cursor keys", 66: "number pad", 7: "wrap", 25: "cursor", 1004: "focus", 2004: "paste", 2048: "sizes",
}

// usuallyOn lists the modes that are on when a terminal starts.
var usuallyOn = []int{7, 25}

const (
	// longest is greater than the length of any control sequence that sets a known mode.
	longest = 128
	// deepest bounds the stack of keyboard modes.
	deepest = 16
	// allKeys has all flags of kitty's keyboard protocol.
	allKeys = 31
)

// Tracker reads the output of a program. The zero value is a terminal as it starts.
type Tracker struct {
	sequence []byte // the current sequence, from its escape on
	changed  []int  // private modes that are not as a terminal starts, in the order of their changes
	keypad   bool   // the number pad sends sequences of its own
	modified int    // xterm's modifyOtherKeys
	keyboard []int  // the stack of flags of kitty's keyboard protocol
}

// Read reads a piece of the output.
func (t *Tracker) Read(output []byte) {
	for len(output) > 0 {
		if len(t.sequence) == 0 {
			i := bytes.IndexByte(output, 0x1b)
			if i < 0 {
				return
			}
			output = output[i:]
		}
		t.next(output[0])
		output = output[1:]
	}
}

// next processes one byte in or at the beginning of a sequence.
func (t *Tracker) next(c byte) {
	const cancel, substitute = 0x18, 0x1a // they end a sequence
	switch {
	case c == 0x1b:
		t.sequence = append(t.sequence[:0], c)
	case c == cancel, c == substitute, len(t.sequence) >= longest:
		t.sequence = t.sequence[:0]
	case c < ' ': // terminals obey control characters in the middle of a sequence
	case len(t.sequence) == 1 && c != '[':
		t.short(c)
		t.sequence = t.sequence[:0]
	case len(t.sequence) > 1 && c >= '@' && c <= '~':
		t.control(string(t.sequence[2:]), c)
		t.sequence = t.sequence[:0]
	default:
		t.sequence = append(t.sequence, c)
	}
}

// short obeys a sequence of an escape and one more byte.
func (t *Tracker) short(c byte) {
	switch c {
	case 'c': // reset
		*t = Tracker{sequence: t.sequence}
	case '=', '>':
		t.keypad = c == '='
	}
}

// control obeys a control sequence, given its parameters and its last byte.
func (t *Tracker) control(parameters string, final byte) {
	switch {
	case parameters == "!" && final == 'p': // soft reset
		t.keypad = false
		for _, mode := range []int{1, 66, 7, 25} {
			t.put(mode, slices.Contains(usuallyOn, mode))
		}
	case parameters == "":
	case parameters[0] == '?' && (final == 'h' || final == 'l'):
		for text := range strings.SplitSeq(parameters[1:], ";") {
			if mode, err := strconv.Atoi(text); err == nil {
				t.put(mode, final == 'h')
			}
		}
	case parameters[0] == '>' && final == 'm':
		resource, value, _ := strings.Cut(parameters[1:], ";")
		if n, _ := strconv.Atoi(value); resource == "4" && n >= 0 && n <= 3 {
			t.modified = n
		} else if resource == "" {
			t.modified = 0
		}
	case final == 'u' && strings.IndexByte("<=>", parameters[0]) >= 0:
		t.keys(parameters[0], parameters[1:])
	}
}

// put records that a private mode is on or off.
func (t *Tracker) put(mode int, on bool) {
	group := groups[mode]
	if group == "" {
		return
	}
	t.changed = slices.DeleteFunc(t.changed, func(other int) bool { return groups[other] == group })
	if on != slices.Contains(usuallyOn, mode) {
		t.changed = append(t.changed, mode)
	}
}

// keys obeys a sequence of kitty's keyboard protocol: > pushes flags, < pops them, and = changes the present ones.
func (t *Tracker) keys(kind byte, parameters string) {
	first, second, _ := strings.Cut(parameters, ";")
	n, err := strconv.Atoi(first)
	if first != "" && err != nil || n < 0 || kind != '<' && n > allKeys {
		return
	}
	switch kind {
	case '>':
		if len(t.keyboard) == deepest {
			t.keyboard = slices.Delete(t.keyboard, 0, 1) // as terminals do
		}
		t.keyboard = append(t.keyboard, n)
	case '<':
		t.keyboard = t.keyboard[:len(t.keyboard)-min(max(n, 1), len(t.keyboard))]
	default:
		if len(t.keyboard) == 0 {
			t.keyboard = []int{0}
		}
		present := &t.keyboard[len(t.keyboard)-1]
		switch second {
		case "", "1":
			*present = n
		case "2":
			*present |= n
		case "3":
			*present &^= n
		}
	}
}

// Set returns the sequences that set the recorded modes on a terminal as it starts, and nothing if there are none.
func (t *Tracker) Set() []byte {
	var b bytes.Buffer
	for _, mode := range t.changed {
		final := 'h'
		if slices.Contains(usuallyOn, mode) {
			final = 'l'
		}
		fmt.Fprintf(&b, "\x1b[?%d%c", mode, final)
	}
	if t.keypad {
		b.WriteString("\x1b=")
	}
	if t.modified != 0 {
		fmt.Fprintf(&b, "\x1b[>4;%dm", t.modified)
	}
	for _, flags := range t.keyboard {
		fmt.Fprintf(&b, "\x1b[>%du", flags)
	}
	return b.Bytes()
}
