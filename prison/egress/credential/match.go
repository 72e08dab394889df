package credential

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"

	"github.com/git-airlock/git-airlock/prison/passed"
)

// Echoes are the forms of a value that answers are searched for: the value itself, and its base64, at any offset in an encoded text and with
// any white space between its digits. They find a value that comes back by accident, for example in a page that shows the request. Each form
// is also found if some of its characters are written as percent encodings, as escapes of JSON or JavaScript, or as entities of HTML. Forms
// within forms, such as base64 of base64, are not found. A server that wants to give the value away can always write it in yet another form.
type Echoes struct {
	text, name [2]forms // of a text, and of the name of a header: the value, and its base64
	longest    int      // the length of the longest form
}

// forms are texts to search for, and how the bytes of another text are read for that.
type forms struct {
	all     [][]byte
	as      *[256]byte // the byte that stands for each byte, 0 for one to skip
	longest int
	mask    uint64    // selects the bytes of ends, fewer than eight if a form is shorter
	ends    [3]uint64 // the last bytes of each form
}

// echoesOf returns the forms of a value, which must not be empty.
func echoesOf(value string) (e Echoes) {
	base64 := passed.Base64(value)
	e.text = [2]forms{newForms(&asIs, value), newForms(&asDigits, base64...)}
	e.name = [2]forms{newForms(&asLower, value), newForms(&asLowerDigits, base64...)}
	e.longest = max(e.text[0].longest, e.text[1].longest)
	return e
}

func newForms(as *[256]byte, texts ...string) forms {
	f := forms{as: as, mask: ^uint64(0)}
	seen := map[string]bool{"": true}
	for _, text := range texts {
		read := []byte(text)
		for i, c := range read {
			read[i] = as[c]
		}
		if seen[string(read)] {
			continue // the digits of base64 and of base64 for URLs are read as the same
		}
		seen[string(read)] = true
		f.all, f.longest = append(f.all, read), max(f.longest, len(read))
		f.mask = min(f.mask, ^uint64(0)>>(8*max(0, word-len(read))))
	}
	for i := range f.ends {
		if len(f.all) > 0 {
			end := append(make([]byte, word), f.all[min(i, len(f.all)-1)]...)
			f.ends[i] = binary.BigEndian.Uint64(end[len(end)-word:]) & f.mask
		}
	}
	return f
}

// The ways to read bytes: as they are, as the digits of base64, and the same in lower case.
var asIs, asDigits, asLower, asLowerDigits = func() (is, digits, lower, lowerDigits [256]byte) {
	for i := range is {
		is[i], digits[i] = byte(i), byte(i)
	}
	digits['-'], digits['_'] = '+', '/' // of base64 for URLs
	for _, blank := range " \t\r\n" {   // programs write base64 in lines
		digits[blank] = 0
	}
	lower, lowerDigits = is, digits
	for c := 'A'; c <= 'Z'; c++ {
		lower[c], lowerDigits[c] = byte(c|0x20), byte(c|0x20)
	}
	return is, digits, lower, lowerDigits
}()

const (
	word  = 8   // the bytes of a uint64
	block = 512 // how many bytes are searched at a time
)

// reading searches a text, which comes in pieces, for forms. The time that it takes does not depend on how many bytes at the beginning of a
// form match, so that a program inside cannot find out a value byte after byte: only the last eight bytes of a form are looked for, and then
// all others are compared at once.
type reading struct {
	*forms
	last uint64 // the last bytes
	seen []byte // the last bytes, as many as the longest form has, and room for a block
}

func (f *forms) reading() *reading { return &reading{forms: f, seen: make([]byte, f.longest+block)} }

func (r *reading) clone() *reading { return &reading{r.forms, r.last, bytes.Clone(r.seen)} }

// add continues the search, and reports whether a form was found.
func (r *reading) add(text []byte) (found bool) {
	last, mask, seen, as := r.last, r.mask, r.seen, r.as
	first, second, third := r.ends[0], r.ends[1], r.ends[2]
	for len(text) > 0 {
		n, end := min(len(text), block), r.longest
		for _, c := range text[:n] {
			if c = as[c]; c == 0 {
				continue
			}
			seen[end] = c
			end++
			last = last<<8 | uint64(c)
			if tail := last & mask; (tail == first || tail == second || tail == third) && r.endsWith(seen[:end]) {
				return true
			}
		}
		copy(seen, seen[end-r.longest:end])
		text = text[n:]
	}
	r.last = last
	return false
}

// endsWith reports whether a text ends with a form. The text is at least as long as the longest form.
func (r *reading) endsWith(text []byte) (found bool) {
	for _, form := range r.all {
		found = found || subtle.ConstantTimeCompare(text[len(text)-len(form):], form) == 1
	}
	return found
}

// readings search a text for a value and for its base64.
type readings [2]*reading

func readingsOf(f *[2]forms) readings { return readings{f[0].reading(), f[1].reading()} }

func (r readings) add(text []byte) (found bool) { return r[0].add(text) || r[1].add(text) }

// search searches a text, which comes in pieces, for the value.
type search struct {
	read    readings
	escaped readings // the same without escapes; nil before the first escape
	partial []byte   // the end of the text, which may be the beginning of an escape
}

func (e *Echoes) search() *search { return &search{read: readingsOf(&e.text)} }

// add continues the search, and reports whether the value was found.
func (s *search) add(text []byte) (found bool) {
	if s.escaped[0] == nil {
		first := bytes.IndexAny(text, escapes)
		if first < 0 {
			return s.read.add(text)
		}
		if s.read.add(text[:first]) {
			return true
		}
		s.escaped, text = readings{s.read[0].clone(), s.read[1].clone()}, text[first:]
	}
	if s.read.add(text) {
		return true
	}
	var plain [block + maxEscape]byte
	for len(text) > 0 {
		n := min(len(text), block)
		s.partial, text = append(s.partial, text[:n]...), text[n:]
		unescaped, size := unescape(plain[:0], s.partial)
		if s.escaped.add(unescaped) {
			return true
		}
		s.partial = append(s.partial[:0], s.partial[size:]...)
	}
	return false
}

// end ends the search, and reports whether the value was found at the end.
func (s *search) end() (found bool) { return s.escaped[0] != nil && s.escaped.add(s.partial) }
