package words

import "strings"

// longestLine is the number of bytes after which [LineWriter] passes on the beginning of a line.
const longestLine = 4 << 10

// LineWriter is an [io.Writer] that calls Each for each line, without the line's end.
type LineWriter struct {
	Each func(line string)

	line []byte
}

// Write implements [io.Writer]. It never fails.
func (w *LineWriter) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == '\n' || len(w.line) >= longestLine {
			w.end()
		}
		if c != '\n' {
			w.line = append(w.line, c)
		}
	}
	return len(p), nil
}

// Flush passes on a last line that has no end.
func (w *LineWriter) Flush() {
	if len(w.line) > 0 {
		w.end()
	}
}

func (w *LineWriter) end() {
	w.Each(strings.TrimRight(string(w.line), "\r"))
	w.line = w.line[:0]
}
