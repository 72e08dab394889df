package credential

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// ErrEcho reports that an answer contains the value of a credential.
var ErrEcho = errors.New("the answer contains the value of a credential")

// ErrUnsearchable reports that an answer cannot be searched for the value of a credential.
var ErrUnsearchable = errors.New("the answer is compressed or a part, although the network asked for neither")

// Guard searches an answer for the value. It returns [ErrEcho] if a header has it, and [ErrUnsearchable] if the content has a coding, or is
// only a part, since several parts may each have a part of the value. If the content has the value, reading it ends before the value with
// ErrEcho. found is called when the value was found in the content or in a trailer. The bytes of another protocol, after the status 101, are
// not searched.
//
// A program inside may choose bytes of an answer, and must not learn from the pieces or the time of the others whether it has guessed the
// beginning of the value. So the content alone decides how much of it is held back until more was read: all after the last event, but
// no more than the length of the longest form; see [endsEvent].
func (e Echoes) Guard(answer *http.Response, found func()) error {
	if e.inHeader(answer.Header) || e.inHeader(answer.Trailer) {
		return ErrEcho
	}
	if !searchable(answer) {
		return ErrUnsearchable
	}
	if answer.StatusCode == http.StatusSwitchingProtocols {
		answer.Status = "" // the server's words are not passed on with any status
		return nil
	}
	answer.Body = &reader{ReadCloser: answer.Body, answer: answer, echoes: e, search: e.search(), most: e.heldBack(), found: found}
	return nil
}

// searchable reports whether the content of an answer is whole and has no coding. Of the transfer codings of HTTP/1, net/http accepts only
// chunks, which it decodes. HTTP/2 has none.
func searchable(answer *http.Response) bool {
	switch head := answer.Request != nil && answer.Request.Method == http.MethodHead; {
	case head, answer.StatusCode == http.StatusNotModified:
		return true // without content
	case answer.StatusCode == http.StatusPartialContent, answer.StatusCode == http.StatusIMUsed:
		return false
	}
	codings := slices.Concat(answer.Header.Values("Content-Encoding"), answer.Header.Values("Transfer-Encoding"))
	return !slices.ContainsFunc(codings, func(c string) bool { return c != "" && !strings.EqualFold(c, "identity") })
}

// between separates texts that are searched together. It is in no form.
var between = []byte{1}

// inHeader reports whether headers have the value. It ignores the case of names.
func (e Echoes) inHeader(h http.Header) bool {
	if len(h) == 0 {
		return false
	}
	names, all := readingsOf(&e.name), e.search()
	for name, values := range h {
		if names.add([]byte(name)) || names.add(between) {
			return true
		}
		for _, text := range values {
			if all.add([]byte(text)) || all.add(between) {
				return true
			}
		}
	}
	return false
}

// maxHeld bounds how much content is held back, in bytes. It is more than the base64 of the longest value.
const maxHeld = 64 << 10

// heldBack returns how many bytes of content are held back: enough for the longest form if all of its characters are escapes. It is a number
// of KiB, so that it does not show the exact length of the value.
func (e Echoes) heldBack() int {
	return min((e.longest*maxEscape+1023)&^1023, maxHeld)
}

// reader is the content of an answer that Guard searches.
type reader struct {
	io.ReadCloser
	answer *http.Response
	echoes Echoes
	search *search
	most   int    // bytes to hold back
	held   []byte // bytes that were read and not returned
	ready  int    // how many of them can be returned
	err    error  // to return after them
	found  func()
}

func (r *reader) Read(p []byte) (int, error) {
	for r.ready == 0 && r.err == nil && len(p) > 0 {
		n, err := r.ReadCloser.Read(p)
		if r.search.add(p[:n]) || err != nil && (r.search.end() || r.echoes.inHeader(r.answer.Trailer)) {
			r.held, r.err = nil, ErrEcho
			r.found()
			break
		}
		before := len(r.held)
		r.held = append(r.held, p[:n]...)
		if r.err = err; err == nil {
			r.ready = released(r.held, before, r.most)
		} else {
			r.ready = len(r.held)
		}
	}
	n := copy(p, r.held[:r.ready])
	r.ready -= n
	if n == len(r.held) {
		r.held = nil // a stream that waits for its next event needs no memory
	} else {
		r.held = r.held[:copy(r.held, r.held[n:])]
	}
	if r.ready > 0 {
		return n, nil
	}
	return n, r.err
}

// released returns how many bytes of content may be returned before more was read: all but the last most, and all up to the end of an event.
// The first before bytes were there already.
func released(content []byte, before, most int) int {
	least := max(0, len(content)-most)
	for at := len(content); at > max(before, least); at-- {
		if endsEvent(content[:at]) {
			return at
		}
	}
	return least
}

// endsEvent reports whether content ends where a stream has the end of an event or a message, which is not within the value: at an empty
// line, as in a text/event-stream, or at a line break after a brace or a bracket, as in lines of JSON. A mere line break can be within
// base64. The content begins after such a place.
func endsEvent(content []byte) bool {
	last := len(content) - 1
	switch {
	case content[last] == '\r':
		return last == 0 || content[last-1] == '\r' || content[last-1] == '\n'
	case content[last] != '\n':
		return false
	case last > 0 && content[last-1] == '\r':
		last--
	}
	return last == 0 || strings.IndexByte("\r\n}]", content[last-1]) >= 0
}
