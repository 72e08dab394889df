package modes

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestSet checks which sequences follow from an output, whatever the pieces in which the output comes.
func TestSet(t *testing.T) {
	for output, want := range map[string]string{
		"text\r\n": "",
		"\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?25l":   "\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?25l",
		"\x1b[?1049;2004;1h\x1b=\x1b[?1049l":                      "\x1b[?2004h\x1b[?1h\x1b=",
		"\x1b[?25l\x1b[?25h\x1b[?1000h\x1b[?1003h":                "\x1b[?1003h",
		"\x1b[?1000h\x1b[?1003h\x1b[?1000l":                       "",
		"\x1b[?47h\x1b[?1049l\x1b=\x1b>":                          "",
		"\x1b[>1u\x1b[>5u\x1b[<u\x1b[=2;2u\x1b[>4;2m":             "\x1b[>4;2m\x1b[>3u",
		"\x1b[>4;2m\x1b[>4m\x1b[>1u\x1b[<9u":                      "",
		"\x1b[?1004h\x1b=\x1b[>7u\x1bc":                           "",
		"\x1b[?1;2004h\x1b[?7l\x1b=\x1b[!p":                       "\x1b[?2004h",
		"\x1b[?20\x1804h\x1b[?3h\x1b[?5h\x1b[4h\x1b[2;5r\x1b[31m": "",
		"\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1bP+q\x1b\\\x1b[?2026h\x1b[22t\x1b[21t\x1b[>99u\x1b[>4;9m\x1b[?1h;6n": "\x1b[?1h",
	} {
		for size := 1; size < len(output)+2; size += 3 {
			var m Tracker
			for rest := output; rest != ""; {
				n := min(size, len(rest))
				m.Read([]byte(rest[:n]))
				rest = rest[n:]
			}
			if got := string(m.Set()); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", output, size, got, want)
			}
		}
	}
}

// harmless matches a sequence of each kind that a Tracker may write.
var harmless = regexp.MustCompile(`^(\x1b\[\?(1|7|9|25|47|66|100[0-6]|1015|1016|104[79]|2004|2048)[hl]|\x1b=|\x1b\[>4;[1-3]m|\x1b\[>([12]?[0-9]|3[01])u)*$`)

// TestHostileOutput reads random output and checks that a Tracker writes known sequences alone, and few of them. Set must also be the
// output of the program that needs no more: who reads it has the same modes.
func TestHostileOutput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"\x1b", "[", "?", ">", "<", "=", "!", "h", "l", "u", "m", "p", "c", ";", ":", "0", "1", "4", "7", "25", "47", "1000", "1049", "2004", "99999999999999999999", "-1", "\x18", "\r", "a", "\x9b", strings.Repeat("1", 200)}
	for n := range 4000 {
		var m Tracker
		var sent strings.Builder
		for range random.IntN(200) {
			if random.IntN(2) == 0 {
				fmt.Fprintf(&sent, "\x1b[%s%d;%d%s", parts[2+random.IntN(5)], random.IntN(40), []int{1, 25, 1000, 1049, 2004}[random.IntN(5)], parts[7+random.IntN(5)])
			}
			sent.WriteString(parts[random.IntN(len(parts))])
		}
		m.Read([]byte(sent.String()))
		set := m.Set()
		if !harmless.Match(set) || len(set) > 500 || len(m.sequence) > longest {
			t.Fatalf("case %d: %q makes %q", n, sent.String(), set)
		}
		var again Tracker
		again.Read(set)
		if string(again.Set()) != string(set) {
			t.Fatalf("case %d: %q sets %q", n, set, again.Set())
		}
	}
}
