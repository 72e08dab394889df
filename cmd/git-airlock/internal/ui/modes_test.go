package ui

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// tracked returns the modes of a terminal after some output. It reads the output in another way than [Modes]: it splits it at
// escapes.
func tracked(shown string) map[string]bool {
	on := map[string]bool{"?7": true, "?8": true, "?25": true}
	for _, part := range strings.Split(shown, "\x1b")[1:] {
		end := strings.IndexFunc(part, func(r rune) bool { return r == 'h' || r == 'l' })
		if !strings.HasPrefix(part, "[?") || end < 0 || strings.Trim(part[2:end], "0123456789;") != "" {
			continue
		}
		for _, mode := range strings.Split(part[2:end], ";") {
			if part[end] == 'h' {
				on["?"+mode] = true
			} else {
				delete(on, "?"+mode)
			}
		}
	}
	return on
}

// TestModesPutBack changes random modes, in writes of random length, and checks that the terminal has its initial modes afterwards.
func TestModesPutBack(t *testing.T) {
	const cases = 10000
	random := rand.New(rand.NewPCG(1, 2))
	known := []string{"1", "5", "6", "7", "9", "25", "47", "1000", "1002", "1003", "1004", "1006", "1015", "1047", "1048", "1049", "2004", "2026", "3000"}
	for n := range cases {
		var sent strings.Builder
		for range 1 + random.IntN(8) {
			list := []string{known[random.IntN(len(known))]}
			for random.IntN(3) == 0 {
				list = append(list, known[random.IntN(len(known))])
			}
			fmt.Fprintf(&sent, "text\x1b[?%s%c\x1b[%dm", strings.Join(list, ";"), "hl"[random.IntN(2)], random.IntN(50))
		}
		var out bytes.Buffer
		m := &Modes{Out: &out}
		for rest := []byte(sent.String()); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			if _, err := m.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		m.Undo()
		if got := tracked(out.String()); len(got) != len(usuallyOn) || !got["?7"] || !got["?8"] || !got["?25"] {
			t.Fatalf("case %d: after %q the terminal has %v", n, out.String(), got)
		}
	}
}

// TestModesOfText checks that pure text changes no mode, and that no output is shown after Undo.
func TestModesOfText(t *testing.T) {
	var out bytes.Buffer
	m := &Modes{Out: &out}
	_, _ = m.Write([]byte("one\r\n\ttwo\a\b"))
	m.Undo()
	if _, err := m.Write([]byte("\x1b[?1000h")); err == nil || out.String() != "one\r\n\ttwo\a\b" {
		t.Errorf("%q, %v", out.String(), err)
	}
	m = &Modes{Out: &out}
	_, _ = m.Write([]byte("\x1b[>1u\x1b[22;0t\x1b[22t\x1b[?1049h\x1b]0;title"))
	out.Reset()
	m.Undo()
	for _, want := range []string{"\x18", "\x1b[?1049l", "\x1b[<99u", "\x1b[23;0t\x1b[23;0t", "\x1b[>4m", "\x1b[?2004l", "\x1b7\x1b[r\x1b8"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}
