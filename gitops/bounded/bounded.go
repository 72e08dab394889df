// Package bounded refuses documents that would cost a parser more than their size suggests.
//
// A commit brings the documents, so an agent may have written them. The parsers of TOML and JSON build a value for each
// key, look for each key among its siblings, and follow dotted keys level by level: 80 kB of "a.a.a..." took hours. The
// checks read a document once, byte by byte, and build nothing.
package bounded

import (
	"bytes"
	"fmt"
)

// Limits bound a document. The zero value of a field means that nothing is allowed.
type Limits struct {
	Bytes int
	Depth int // dots in one key and brackets around it, together
	Keys  int // parts of keys and of table headers; in JSON, members and elements
}

// Usual are far above what people write by hand: a recipe has tens of keys.
var Usual = Limits{Bytes: 1 << 20, Depth: 32, Keys: 5000}

// Error reports which limit a document exceeds.
type Error struct {
	Line  int    // counted from 1; 0 if the whole document is meant
	What  string // "bytes", "levels of nesting" or "keys"
	Limit int
}

func (e *Error) Error() string { return fmt.Sprintf("more than %d %s", e.Limit, e.What) }

// scan is one pass over a document.
type scan struct {
	text   []byte
	limits Limits
	at     int
	depth  int // brackets that are open
	dots   int // in the present key
	keys   int
}

func (s *scan) exceeded() error {
	what, limit := "keys", s.limits.Keys
	switch {
	case s.depth+s.dots > s.limits.Depth:
		what, limit = "levels of nesting", s.limits.Depth
	case s.keys <= s.limits.Keys:
		return nil
	}
	return &Error{Line: 1 + bytes.Count(s.text[:min(s.at, len(s.text))], []byte("\n")), What: what, Limit: limit}
}

// open checks the size, which needs no pass.
func (l Limits) open(text []byte) (*scan, error) {
	if len(text) > l.Bytes {
		return nil, &Error{What: "bytes", Limit: l.Bytes}
	}
	return &scan{text: text, limits: l}, nil
}

// TOML returns an [Error] for a document beyond the limits. It does not report other mistakes: up to the first one, it
// counts what a parser would see.
func (l Limits) TOML(text []byte) error {
	s, err := l.open(text)
	if err != nil {
		return err
	}
	for s.at = 0; s.at < len(text); s.at++ {
		switch c := text[s.at]; c {
		case '"', '\'':
			s.tomlString(c)
			continue
		case '#':
			end := bytes.IndexByte(text[s.at:], '\n')
			if end < 0 {
				return nil
			}
			s.at += end - 1 // the end of the line comes next
		case '.':
			s.dots++
			s.keys++
		case '=':
			s.dots = 0
			s.keys++
		case '[', '{':
			s.dots = 0
			s.depth++
		case ']', '}':
			s.dots = 0
			s.depth = max(0, s.depth-1)
		case ',':
			s.dots = 0
		case '\n':
			if s.dots = 0; s.header() {
				s.keys++
			}
		default:
			continue
		}
		if err := s.exceeded(); err != nil {
			return err
		}
	}
	return nil
}

// header reports whether the next line begins with a bracket, as table headers do. Elements of an array that stand so are
// counted as well.
func (s *scan) header() bool {
	rest := bytes.TrimLeft(s.text[s.at+1:], " \t")
	return len(rest) > 0 && rest[0] == '['
}

// tomlString stands on the last quote of the string that begins here. A string of one line ends with its line.
func (s *scan) tomlString(quote byte) {
	triple := bytes.Repeat([]byte{quote}, 3)
	long := bytes.HasPrefix(s.text[s.at:], triple)
	if long {
		s.at += 2
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && quote == '"':
			s.at++
		case c == '\n' && !long:
			s.at-- // the line's end is looked at outside
			return
		case c == quote && !long:
			return
		case c == quote && bytes.HasPrefix(s.text[s.at:], triple):
			s.at += 2
			for n := 0; n < 2 && s.at+1 < len(s.text) && s.text[s.at+1] == quote; n++ {
				s.at++ // a text may end with two quotes of its own
			}
			return
		}
	}
}

// JSON returns an [Error] for a document beyond the limits, as [Limits.TOML] does.
func (l Limits) JSON(text []byte) error {
	s, err := l.open(text)
	if err != nil {
		return err
	}
	for s.at = 0; s.at < len(text); s.at++ {
		switch text[s.at] {
		case '"':
			for s.at++; s.at < len(text) && text[s.at] != '"'; s.at++ {
				if text[s.at] == '\\' {
					s.at++
				}
			}
			continue
		case '[', '{':
			s.depth++
			s.keys++
		case ']', '}':
			s.depth--
		case ',', ':':
			s.keys++
		default:
			continue
		}
		if err := s.exceeded(); err != nil {
			return err
		}
	}
	return nil
}
