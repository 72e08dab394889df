package checking

import (
	"bytes"
	"strings"
	"testing"
)

// TestOutput checks that text of any kind arrives line by line and escaped, however it is divided into writes.
func TestOutput(t *testing.T) {
	const text = "plain\n\x1b[31mred\x1b[0m\ttab\r\nä\u202eü\n\xff\n\nno end"
	const want = "plain\n\\u001b[31mred\\u001b[0m\ttab\nä\\u202eü\n\\xff\n\nno end\n"
	for size := 1; size <= len(text); size++ {
		var shown bytes.Buffer
		o := &output{to: &shown}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			o.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		o.flush()
		if shown.String() != want || string(o.tail) != want {
			t.Fatalf("in pieces of %d: %q, and kept %q, want %q", size, shown.String(), o.tail, want)
		}
	}
}

// TestOutputIsBounded checks what is kept of much output, and of a line without an end.
func TestOutputIsBounded(t *testing.T) {
	o := &output{}
	for range 100 {
		o.Write([]byte(strings.Repeat("x", 10<<10) + "\n"))
		if len(o.line) > longestLine || len(o.tail) > 2*tailSize+2*longestLine {
			t.Fatalf("%d and %d bytes are kept", len(o.line), len(o.tail))
		}
	}
	o.Write([]byte("last\n"))
	if !bytes.HasSuffix(o.tail, []byte("\nlast\n")) || len(o.tail) < tailSize {
		t.Errorf("%d bytes are kept, and the end is %q", len(o.tail), o.tail[len(o.tail)-10:])
	}
}
