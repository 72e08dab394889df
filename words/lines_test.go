package words

import (
	"slices"
	"strings"
	"testing"
)

// TestLineWriter checks that lines arrive whole, however they are divided into writes, and that a long one arrives in parts.
func TestLineWriter(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	text, want := "one\r\n\n"+long+"y\nno end", []string{"one", "", long, "y", "no end"}
	for _, size := range []int{1, 3, longestLine, len(text)} {
		var got []string
		w := LineWriter{Each: func(line string) { got = append(got, line) }}
		for part := range slices.Chunk([]byte(text), size) {
			w.Write(part)
		}
		w.Flush()
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %.40q", size, got)
		}
	}
}
