package record

import (
	"bytes"
	"strconv"
	"time"
)

// scanExec reads a line of [ExecName] in the form in which the watcher of a prison writes nearly all of them: the fields in their
// order, no spaces, no negative numbers, and nothing that JSON escapes. It returns false for any other line. Package json takes ten times as long.
func scanExec(line []byte) (e Exec, ok bool) {
	s := scanner{line, true}
	e.Time = s.moment(`{"t":`)
	e.Seq = uint64(s.number(`,"seq":`, 18)) //nolint:gosec // it has no sign
	e.PID, e.PPID = s.small(`,"pid":`), s.small(`,"ppid":`)
	e.Cwd, e.Path = s.text(`,"cwd":`), s.text(`,"path":`)
	e.Argv = s.texts(`,"argv":`)
	if !s.next(`,"exe":null`) {
		e.Exe = s.text(`,"exe":`)
	}
	if !s.next(`,"exit":null`) {
		exit := s.small(`,"exit":`)
		e.Exit = &exit
	}
	if !s.next(`,"ms":null`) {
		millis := s.number(`,"ms":`, 18)
		e.Millis = &millis
	}
	e.Top = s.truth(`,"top":`)
	if !s.next(`,"deny":null`) {
		deny := s.text(`,"deny":`)
		e.Deny = &deny
	}
	e.Disputed, e.Cut = s.truth(`,"disputed":`), s.truth(`,"cut":`)
	return e, s.next("}") && len(s.rest) == 0 && s.ok
}

// scanner reads a line from left to right. ok becomes false when the line continues with something else than the caller asked for.
type scanner struct {
	rest []byte
	ok   bool
}

// next skips a text if the line continues with it, and reports whether it did.
func (s *scanner) next(text string) bool {
	rest, found := bytes.CutPrefix(s.rest, []byte(text))
	s.rest = rest
	return found
}

// must skips a text, with which the line must continue.
func (s *scanner) must(text string) { s.ok = s.next(text) && s.ok }

// small reads a number of at most nine digits.
func (s *scanner) small(field string) int { return int(s.number(field, 9)) }

// number reads a number with at most that many digits, as JSON writes it.
func (s *scanner) number(field string, most int) int64 {
	s.must(field)
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	value, err := strconv.ParseInt(string(s.rest[:n]), 10, 64)
	s.ok = s.ok && err == nil && n <= most && (n == 1 || s.rest[0] != '0')
	s.rest = s.rest[n:]
	return value
}

// plain reads a string without characters that JSON escapes.
func (s *scanner) plain() (text []byte) {
	s.must(`"`)
	for i, c := range s.rest {
		switch {
		case c == '"':
			text, s.rest = s.rest[:i], s.rest[i+1:]
			return text
		case c < ' ' || c > '~' || c == '\\':
			s.ok = false
			return nil
		}
	}
	s.ok = false
	return nil
}

func (s *scanner) text(field string) string {
	s.must(field)
	return string(s.plain())
}

func (s *scanner) texts(field string) []string {
	s.must(field)
	if s.next("null") {
		return nil
	}
	s.must("[")
	list := make([]string, 0, 8)
	for s.ok && !s.next("]") {
		if len(list) > 0 {
			s.must(",")
		}
		list = append(list, string(s.plain()))
	}
	return list
}

func (s *scanner) truth(field string) bool {
	s.must(field)
	if s.next("true") {
		return true
	}
	s.must("false")
	return false
}

func (s *scanner) moment(field string) (t time.Time) {
	s.must(field)
	text := s.plain()
	s.ok = s.ok && t.UnmarshalText(text) == nil
	return t
}
