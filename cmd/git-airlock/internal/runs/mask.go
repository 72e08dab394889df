package runs

import (
	"bytes"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/passed"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/promote/record"
)

// mark returns the text by which packs of records are recognised, from the token of a host state.
func mark(token string) string {
	return strings.ReplaceAll(strings.TrimSpace(token), " ", "-") + "-record"
}

// masked stands for a line with a secret.
const masked = "[masked: it looks like a secret]"

const (
	// maskPart is the number of bytes that are searched for secrets at once, and maskOverlap how many of them are searched again with
	// those that follow: more than the longest secret, which is a private key of several lines.
	maskPart    = 256 << 10
	maskOverlap = 16 << 10
	// maskRounds bounds the searches in a part: each finds at most a hundred secrets.
	maskRounds = 20
)

// maskedWords returns the words of a command line without secrets and the values of variables, as in the record of programs.
func maskedWords(words []string, values passed.Values) []string {
	out := slices.Clone(secrets.Default().Mask(values.Words(words)))
	for i, word := range out {
		out[i] = strings.ToValidUTF8(word, "\uFFFD")
	}
	return out
}

// maskedText returns a text in which lines with secrets are replaced, and the values of variables, and the number of these lines. Of
// a very long line, the part around a secret is replaced.
func maskedText(text []byte, values passed.Values) (out []byte, lines int) {
	known := values.Find(text)
	pieces := piecesOf(text)
	hidden := make([]bool, len(pieces))
	for from := 0; from < len(pieces); {
		end, size := from, 0
		for end < len(pieces) && size+len(pieces[end]) <= maskPart {
			size, end = size+len(pieces[end]), end+1
		}
		hide(pieces[from:end], hidden[from:end])
		if from = end; end == len(pieces) {
			break
		}
		for again := 0; again < maskOverlap; from-- {
			again += len(pieces[from-1])
		}
	}
	out = make([]byte, 0, len(text)+len(masked))
	within, counted := false, false // a hidden part of a line that has not ended, and whether that line is in lines
	at := 0
	for i, p := range pieces {
		before := len(out)
		if hidden[i] {
			out = append(out, maskOf(p, within)...)
		} else {
			out = passed.Cover(out, p, at, known)
		}
		if !counted && (hidden[i] || !bytes.Equal(out[before:], p)) {
			lines, counted = lines+1, true
		}
		ends := bytes.HasSuffix(p, newline)
		within, counted = hidden[i] && !ends, counted && !ends
		at += len(p)
	}
	return out, lines
}

var newline = []byte("\n")

// piecesOf splits a text into lines, and a long line into several pieces.
func piecesOf(text []byte) (pieces [][]byte) {
	pieces = make([][]byte, 0, bytes.Count(text, newline)+1)
	for line := range bytes.Lines(text) {
		for len(line) > maskOverlap {
			pieces, line = append(pieces, line[:maskOverlap]), line[maskOverlap:]
		}
		pieces = append(pieces, line)
	}
	return pieces
}

// maskOf returns what stands for a hidden piece: the mask, which a line has once, and the end of the line.
func maskOf(piece []byte, within bool) (out []byte) {
	if !within {
		out = append(out, masked...)
	}
	if bytes.HasSuffix(piece, newline) {
		out = append(out, newline...)
	}
	return out
}

// hide sets hidden for the pieces with secrets.
func hide(pieces [][]byte, hidden []bool) {
	for range maskRounds {
		text := make([]byte, 0, maskPart)
		lineOf := make([]int, len(pieces))
		line := 1
		for i, p := range pieces {
			lineOf[i] = line
			if hidden[i] {
				p = maskOf(p, false)
			}
			text = append(text, p...)
			if bytes.HasSuffix(p, newline) {
				line++
			}
		}
		more := false
		for _, m := range secrets.Default().Find("", text) {
			for i := range pieces {
				if !hidden[i] && lineOf[i] >= m.Line && lineOf[i] <= m.Last {
					hidden[i], more = true, true
				}
			}
		}
		if !more {
			return
		}
	}
	for i := range hidden {
		hidden[i] = true
	}
}

// maskedEvents returns the output of a terminal without secrets and the values of variables, and the number of masked lines. Output comes in pieces, so all of
// it is searched at once. The first piece of a line with a secret has the mask, and the others lose their part of the line.
func maskedEvents(events []record.CastEvent, values passed.Values) (out []record.CastEvent, lines int) {
	var all []byte
	for _, e := range events {
		all = append(all, e.Text...)
	}
	clean, lines := maskedText(all, values)
	if lines == 0 {
		return events, 0
	}
	before, after := bytes.SplitAfter(all, newline), bytes.SplitAfter(clean, newline)
	if len(before) != len(after) {
		return []record.CastEvent{{Text: string(clean)}}, lines
	}
	line, at := 0, 0 // the place in all: a line, and the bytes of it that are done
	for _, e := range events {
		var text []byte
		for left := len(e.Text); left > 0 && line < len(before); {
			n := min(left, len(before[line])-at)
			if bytes.Equal(before[line], after[line]) {
				text = append(text, before[line][at:at+n]...)
			} else if at == 0 {
				text = append(text, after[line]...)
			}
			left, at = left-n, at+n
			if at == len(before[line]) {
				line, at = line+1, 0
			}
		}
		out = append(out, record.CastEvent{At: e.At, Text: string(text)})
	}
	return out, lines
}
