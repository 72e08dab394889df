package secrets

import (
	"bytes"
	"iter"
	"unicode/utf8"
)

// A token in Base64 is as good as the token: the data of a Kubernetes secret, a header, a file that was wrapped to be
// put into a variable. What is longer than a word, and decodes to text, is searched as well, once: for what has a form
// of its own, since words beside it mean little in there.

const (
	shortestLiteral = 20 // in characters; no token is shorter than 15 bytes
	longestLiteral  = 8 << 20
	wrappedLine     = 60 // a line that goes on in the next one has at least so many
)

// sextets are the values of Base64's characters, in both of its alphabets; noSextet is that of others.
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

// encoded finds what is in Base64 in a text. The line is that on which the literal begins.
func (d *Detector) encoded(s search) (found []Match) {
	line, counted := 1, 0
	for from, literal := range literals(s.text) {
		// What counts is decided by the line on which a literal begins. That is quickly told, decoding takes longer.
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
			found = append(found, Match{Rule: m.Rule, Line: line, Last: line, Encoded: true})
		}
		if len(found) >= matchLimit {
			break
		}
	}
	return found
}

// may reports whether a text has a word that a rule that does not guess wants to see. Most have none, and there may be very
// many.
func (d *Detector) may(text []byte) (yes bool) {
	d.keywords.each(text, func(n, end int) {
		if yes || d.rules[n].guess {
			return
		}
		b := d.rules[n].begin()
		yes = b == nil || b.before(text, end) >= 0
	})
	return yes
}

// literals are the runs of Base64's characters in a text that are long enough, with their places. A run goes on where
// a line was wrapped; its breaks are still in it.
func literals(text []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for at := 0; at < len(text); {
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
				return
			}
		}
	}
}

// run is the end of the characters of Base64 that follow each other from a place on.
func run(text []byte, at int) int {
	for at < len(text) && sextets[text[at]] != noSextet {
		at++
	}
	return at
}

// lineOf is where, in a run, the characters of its last line begin.
func lineOf(text []byte, from, to int) int {
	for at := to; at > from; at-- {
		if sextets[text[at-1]] == noSextet {
			return at
		}
	}
	return from
}

// wrapped is where a literal goes on behind a line's end, -1 if it does not. It may be indented there.
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

// decode decodes a literal, nil if that gives no text: most that looks like Base64 is something else, which shows
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
