package runs

import (
	"bytes"
	"strings"

	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/promote/record"
)

// mark returns the text by which packs of records are recognised, from the token of a host state.
func mark(token string) string {
	return strings.ReplaceAll(strings.TrimSpace(token), " ", "-") + "-record"
}

// masked stands for a line, or a word, with a secret.
const masked = "[masked: it looks like a secret]"

const (
	// maskPart is the number of bytes that are searched for secrets at once. The parts end with lines.
	maskPart = 64 << 10
	// maskRounds bounds the searches in a part: each finds at most a hundred secrets.
	maskRounds = 20
)

// maskedWords returns the words of a command line without secrets. A word is searched by itself and with the one before it,
// since an option's name shows what its value is.
func maskedWords(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		text := word
		if i > 0 {
			text = words[i-1] + "=" + word
		}
		out[i] = strings.ToValidUTF8(word, "\uFFFD")
		if len(secrets.Default().Find("", []byte(word)))+len(secrets.Default().Find("", []byte(text))) > 0 {
			out[i] = masked
		}
	}
	return out
}

// maskedText returns a text in which lines with secrets are replaced, and their number.
func maskedText(text []byte) (out []byte, lines int) {
	for len(text) > 0 {
		part := text
		if len(part) > maskPart {
			part = part[:maskPart]
			if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
				part = part[:end+1]
			}
		}
		text = text[len(part):]
		clean, n := maskedPart(part)
		out, lines = append(out, clean...), lines+n
	}
	return out, lines
}

func maskedPart(part []byte) (out []byte, lines int) {
	for range maskRounds {
		found := secrets.Default().Find("", part)
		if len(found) == 0 {
			return part, lines
		}
		split := bytes.SplitAfter(part, []byte("\n"))
		for _, m := range found {
			for i := m.Line - 1; i < m.Last && i < len(split); i++ {
				ending := []byte{}
				if bytes.HasSuffix(split[i], []byte("\n")) {
					ending = []byte("\n")
				}
				if i >= 0 && !bytes.HasPrefix(split[i], []byte(masked)) {
					split[i] = append([]byte(masked), ending...)
					lines++
				}
			}
		}
		part = bytes.Join(split, nil)
	}
	return []byte(masked + "\n"), lines + 1
}

// maskedEvents returns the output of a terminal without secrets, and the number of masked lines. Output comes in pieces, so all of
// it is searched at once. The first piece of a line with a secret has the mask, and the others lose their part of the line.
func maskedEvents(events []record.CastEvent) (out []record.CastEvent, lines int) {
	var all []byte
	for _, e := range events {
		all = append(all, e.Text...)
	}
	clean, lines := maskedText(all)
	if lines == 0 {
		return events, 0
	}
	before, after := bytes.SplitAfter(all, []byte("\n")), bytes.SplitAfter(clean, []byte("\n"))
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
