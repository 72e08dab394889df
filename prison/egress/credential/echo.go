package credential

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/passed"
)

// ErrEcho reports that an answer contains the value of a credential.
var ErrEcho = errors.New("the answer contains the value of a credential")

// ErrUnsearchable reports that an answer cannot be searched for the value of a credential.
var ErrUnsearchable = errors.New("the answer is compressed or a part, although the network asked for neither")

// Echoes are the forms of a value that answers are searched for: the value itself, and its base64, at any offset in an encoded text. They
// find a value that comes back by accident, for example in a page that shows the request. Each form is also found if some of its characters
// are written as percent encodings, as escapes of JSON or JavaScript, or as entities of HTML. Forms within forms, such as base64 of base64,
// are not found. A server that wants to give the value away can always write it in yet another form.
type Echoes struct{ all []pattern }

// pattern is a text to search for, and for each of its prefixes the length of the longest proper prefix that also ends it
// (Knuth, Morris, Pratt).
type pattern struct {
	text []byte
	next []int
}

// echoesOf returns the forms of a value, which must not be empty.
func echoesOf(value string) Echoes {
	var e Echoes
	e.add(value)
	for _, text := range passed.Base64(value) {
		e.add(text)
	}
	return e
}

func (e *Echoes) add(text string) {
	for _, p := range e.all {
		if string(p.text) == text {
			return
		}
	}
	p := pattern{text: []byte(text), next: make([]int, len(text)+1)}
	for i, n := 1, 0; i < len(text); i++ {
		n = p.step(n, text[i])
		p.next[i+1] = n
	}
	e.all = append(e.all, p)
}

// step returns how much of a pattern matches after one more byte, where n bytes matched before it.
func (p pattern) step(n int, c byte) int {
	for n > 0 && (n == len(p.text) || p.text[n] != c) {
		n = p.next[n]
	}
	if p.text[n] == c {
		n++
	}
	return n
}

// search continues after n bytes that matched, and returns how many match at the end of read.
func (p pattern) search(n int, read []byte) (matched int, found bool) {
	for at := 0; at < len(read); at++ {
		if n == 0 { // the usual case, and much faster
			skip := bytes.IndexByte(read[at:], p.text[0])
			if skip < 0 {
				break
			}
			at += skip
		}
		if n = p.step(n, read[at]); n == len(p.text) {
			return n, true
		}
	}
	return n, false
}

// Guard searches an answer for the value. It returns [ErrEcho] if a header has it, and [ErrUnsearchable] if the content has a coding, or is
// only a part, since several parts may each have a part of the value. If the content has the value, reading it ends before the value with
// ErrEcho. Content is held back only while it may be the beginning of the value. found is called when the value was found in the content or
// in a trailer. The bytes of another protocol, after the status 101, are not searched.
func (e Echoes) Guard(answer *http.Response, found func()) error {
	if e.inHeader(answer.Header) || e.inHeader(answer.Trailer) {
		return ErrEcho
	}
	if !searchable(answer) {
		return ErrUnsearchable
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		answer.Body = &reader{ReadCloser: answer.Body, answer: answer, echoes: e, matched: make([]int, len(e.all)), found: found}
	}
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

// inHeader reports whether headers have the value. It ignores the case of names.
func (e Echoes) inHeader(h http.Header) bool {
	for name, values := range h {
		name = strings.ToLower(name)
		if slices.ContainsFunc(e.all, func(p pattern) bool { return strings.Contains(name, strings.ToLower(string(p.text))) }) {
			return true
		}
		for _, text := range values {
			if e.in([]byte(text)) {
				return true
			}
		}
	}
	return false
}

// in reports whether a whole text has the value.
func (e Echoes) in(text []byte) bool {
	for _, p := range e.all {
		if bytes.Contains(text, p.text) {
			return true
		}
	}
	_, found := e.escaped(text)
	return found
}

// escaped reports whether the value is in a text with escapes. Otherwise it returns how many bytes at the end of the text may be the
// value's beginning, if there are escapes.
func (e Echoes) escaped(text []byte) (held int, found bool) {
	if !bytes.ContainsAny(text, escapes) {
		return 0, false
	}
	plain, before := unescape(text)
	longest := 0
	for _, p := range e.all {
		n, found := p.search(0, plain)
		if found {
			return 0, true
		}
		longest = max(longest, n)
	}
	return len(text) - before(len(plain)-longest), false
}

// maxRead is how many bytes are read at a time while content is held back. Otherwise a read uses the caller's buffer.
const maxRead = 32 << 10

// reader is the content of an answer that Guard searches.
type reader struct {
	io.ReadCloser
	answer  *http.Response
	echoes  Echoes
	matched []int  // of each pattern, at the end of held
	ready   []byte // bytes to return
	held    []byte // bytes that may be the beginning of the value
	err     error  // to return after ready
	found   func()
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 && r.err == nil {
		buffer := p
		if len(p) == 0 || len(r.held) > 0 {
			buffer = make([]byte, min(max(len(p), 1), maxRead))
		}
		n, err := r.ReadCloser.Read(buffer)
		r.search(buffer[:n])
		if err != nil && r.err == nil {
			r.err = err
			r.ready, r.held = append(r.ready, r.held...), nil
			if r.echoes.inHeader(r.answer.Trailer) {
				r.cut()
			}
		}
	}
	n := copy(p, r.ready)
	if r.ready = r.ready[n:]; len(r.ready) > 0 {
		return n, nil
	}
	return n, r.err
}

// cut ends the content with [ErrEcho].
func (r *reader) cut() {
	r.err, r.ready, r.held = ErrEcho, nil, nil
	r.found()
}

// search looks for the value in bytes that were read, and moves them to ready and held.
func (r *reader) search(read []byte) {
	longest := 0
	for i, p := range r.echoes.all {
		n, found := p.search(r.matched[i], read)
		if found {
			r.cut()
			return
		}
		r.matched[i] = n
		longest = max(longest, n)
	}
	all := read
	if len(r.held) > 0 {
		all = append(r.held, read...)
	}
	held, found := r.echoes.escaped(all)
	if found {
		r.cut()
		return
	}
	longest = max(longest, held)
	r.ready, r.held = all[:len(all)-longest], bytes.Clone(all[len(all)-longest:])
}
