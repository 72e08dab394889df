package checking

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// TestOutput checks that text of any kind arrives line by line and escaped, however it is divided into writes.
func TestOutput(t *testing.T) {
	const text = "plain\n\x1b[31mred\x1b[0m\ttab\r\nä\u202eü\n\xff\n\nno end"
	const want = "plain\n\\u001b[31mred\\u001b[0m\ttab\nä\\u202eü\n\\xff\n\nno end\n"
	for size := 1; size <= len(text); size++ {
		var shown bytes.Buffer
		o := newOutput(&shown)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			o.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		o.Flush()
		if shown.String() != want || string(o.tail) != want {
			t.Fatalf("in pieces of %d: %q, and kept %q, want %q", size, shown.String(), o.tail, want)
		}
	}
}

// TestOutputIsBounded checks what is kept of much output.
func TestOutputIsBounded(t *testing.T) {
	o := newOutput(nil)
	for range 100 {
		o.Write([]byte(strings.Repeat("x", 10<<10) + "\n"))
		if len(o.tail) > 2*tailSize+8<<10 {
			t.Fatalf("%d bytes are kept", len(o.tail))
		}
	}
	o.Write([]byte("last\n"))
	if !bytes.HasSuffix(o.tail, []byte("\nlast\n")) || len(o.tail) < tailSize {
		t.Errorf("%d bytes are kept, and the end is %q", len(o.tail), o.tail[len(o.tail)-10:])
	}
}

// counter counts writes. Each is announced on came.
type counter struct {
	bytes.Buffer
	writes int
	came   chan struct{}
}

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	n, err := c.Buffer.Write(p)
	select {
	case c.came <- struct{}{}:
	default:
	}
	return n, err
}

// TestOutputWritesSeldom checks that many short lines need few writes, and that a single line arrives without more output.
func TestOutputWritesSeldom(t *testing.T) {
	const lines = 200_000
	shown := &counter{}
	o := newOutput(shown)
	begun := time.Now()
	o.Write([]byte(strings.Repeat("y\n", lines)))
	o.Flush()
	if most := 2*lines/shownSize + int(time.Since(begun)/shownTime) + 2; shown.Len() != 2*lines || shown.writes > most {
		t.Errorf("%d bytes in %d writes, want at most %d", shown.Len(), shown.writes, most)
	}
	shown = &counter{came: make(chan struct{}, 1)}
	o = newOutput(shown)
	for _, line := range []string{"one\n", "two\n"} {
		o.Write([]byte(line))
		select {
		case <-shown.came:
		case <-time.After(10 * time.Second):
			t.Fatalf("%q does not arrive", line)
		}
	}
	o.Flush()
	if shown.String() != "one\ntwo\n" {
		t.Errorf("%q", shown.String())
	}
}

// BenchmarkOutput measures short lines.
func BenchmarkOutput(b *testing.B) {
	text := bytes.Repeat([]byte("y\n"), 16<<10)
	b.SetBytes(int64(len(text)))
	o := newOutput(io.Discard)
	for b.Loop() {
		o.Write(text)
	}
}
