package secrets

import (
	"bytes"
	"iter"
	"unicode/utf8"
)

// A token in Base64 is as valuable as the token itself. It can be in the data of a Kubernetes secret, in a header, or in a file that was encoded
// for a variable. Therefore literals that are longer than a word and decode to text are decoded once, and the result is searched as well. Only
// the rules for secrets with a form of their own apply there, since the words beside a secret mean little in decoded text.

const (
	shortestLiteral = 20 // in characters; no token is shorter than 15 bytes
	longestLiteral  = 8 << 20
	wrappedLine     = 60 // minimum length of a line that continues on the next one
)

// sextets are the values of Base64's characters in both of its alphabets. All other bytes have the value noSextet.
var sextets = func() (values [256]byte) {
	for i := range values {
		values[i] = noSextet
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		values[c] = byte(i)
	}
	values['-'], values['_'] = values['+'], values['/']
	return values
}()

const noSextet = 0xff

// encoded finds secrets in the Base64 literals of a text. The line is the one on which the literal begins.
func (d *Detector) encoded(s search) (found []Match) {
	line, counted := 1, 0
	for from, literal := range literals(s.text, s.near) {
		// The first line of a literal decides whether it counts. That check is fast, and decoding is slow.
		if s.counts != nil {
			line, counted = line+bytes.Count(s.text[counted:from], newline), from
			if !s.counts(Match{Line: line, Last: line, Encoded: true}) {
				continue
			}
		}
		plain := decode(literal)
		if plain == nil || !d.may(plain) {
			continue
		}
		line, counted = line+bytes.Count(s.text[counted:from], newline), from
		for _, m := range d.find(search{path: s.path, text: plain}) {
			s.note(from, from+len(literal))
			found = append(found, Match{Rule: m.Rule, Line: line, Last: line, Encoded: true})
		}
		if len(found) >= matchLimit {
			break
		}
	}
	return found
}

// may reports whether a text contains a keyword of a rule that does not guess. Most literals contain none, and there
// may be very many.
func (d *Detector) may(text []byte) (yes bool) {
	d.keywords.each(text, func(n, end int) {
		if yes || d.rules[n].guess {
			return
		}
		b := d.rules[n].begin()
		yes = b == nil || b.matchBefore(text, end) >= 0
	})
	return yes
}

// literals returns the runs of Base64 characters in a text that are long enough, with their offsets. A run can
// continue on the next line, and contains the line breaks then. If near is given, not all runs that begin outside of
// its parts are returned.
func literals(text []byte, near []Part) iter.Seq2[int, []byte] {
	where := spans{{0, len(text)}}
	if near != nil {
		where = nil
		for _, p := range near {
			where = where.add(span{lineStartBefore(text, p.From), p.To}, 0)
		}
	}
	return func(yield func(int, []byte) bool) {
		for _, part := range where {
			if !literalsFrom(text, part, yield) {
				return
			}
		}
	}
}

// lineStartBefore returns the last beginning of a line, at or before an offset, which is not inside a literal.
func lineStartBefore(text []byte, at int) int {
	for at > 0 {
		if at = bytes.LastIndexByte(text[:at], '\n') + 1; at == 0 {
			break
		}
		before := bytes.TrimSuffix(text[:at-1], []byte("\r"))
		if len(before) == 0 || sextets[before[len(before)-1]] == noSextet {
			break
		}
		at = len(before)
	}
	return at
}

// literalsFrom yields the literals that begin in a part of a text. It reports whether more are wanted.
func literalsFrom(text []byte, part span, yield func(int, []byte) bool) bool {
	for at := part.from; at < part.to; {
		if sextets[text[at]] == noSextet {
			at++
			continue
		}
		from := at
		for at = run(text, from); ; {
			next := wrapped(text, at)
			if next < 0 || at-lineOf(text, from, at) < wrappedLine || next-from > longestLiteral {
				break
			}
			at = run(text, next)
		}
		if at-from >= shortestLiteral && !yield(from, text[from:at]) {
			return false
		}
	}
	return true
}

// run returns the end of the sequence of Base64 characters at an offset.
func run(text []byte, at int) int {
	for at < len(text) && sextets[text[at]] != noSextet {
		at++
	}
	return at
}

// lineOf returns the offset at which the last line of a run begins.
func lineOf(text []byte, from, to int) int {
	for at := to; at > from; at-- {
		if sextets[text[at-1]] == noSextet {
			return at
		}
	}
	return from
}

// wrapped returns the offset at which a literal continues after a line break and indentation, or -1 if it does not
// continue.
func wrapped(text []byte, at int) int {
	if at < len(text) && text[at] == '\r' {
		at++
	}
	if at == len(text) || text[at] != '\n' {
		return -1
	}
	for at++; at < len(text) && (text[at] == ' ' || text[at] == '\t'); at++ {
	}
	if at == len(text) || sextets[text[at]] == noSextet {
		return -1
	}
	return at
}

// decode decodes a literal, or returns nil if the result is not text. Most literals are not Base64, which shows
// within a few bytes.
func decode(literal []byte) []byte {
	var plain []byte
	bits, have := 0, 0
	for _, c := range literal {
		value := sextets[c]
		if value == noSextet {
			continue
		}
		if bits, have = bits<<6|int(value), have+6; have < 8 {
			continue
		}
		have -= 8
		b := byte(bits >> have)
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' || b == 0x7f {
			return nil
		}
		plain, bits = append(plain, b), bits&(1<<have-1)
	}
	if !utf8.Valid(plain) {
		return nil
	}
	return plain
}
