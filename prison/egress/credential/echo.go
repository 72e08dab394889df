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

// Echoes are the forms in which a value may come back: as it is, and in base64, wherever it begins there.
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

// Guard searches an answer for the value. It returns [ErrEcho] if a header has it. Otherwise the content ends before the value, if
// it is there, with the same error. Content is held back only while it may be the beginning of the value. found is called when
// the value was found in the content or in what follows it. The bytes of another protocol, after the status 101, are not searched.
func (e Echoes) Guard(answer *http.Response, found func()) error {
	if e.inHeader(answer.Header) {
		return ErrEcho
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		answer.Body = &reader{ReadCloser: answer.Body, answer: answer, echoes: e, matched: make([]int, len(e.all)), found: found}
	}
	return nil
}

// inHeader reports whether headers have the value.
func (e Echoes) inHeader(h http.Header) bool {
	for name, values := range h {
		for _, text := range append([]string{name}, values...) {
			if slices.ContainsFunc(e.all, func(p pattern) bool { return strings.Contains(text, string(p.text)) }) {
				return true
			}
		}
	}
	return false
}

// maxRead is how much is read at a time while something is held back. Otherwise a read goes into the caller's buffer.
const maxRead = 32 << 10

type reader struct {
	io.ReadCloser
	answer  *http.Response
	echoes  Echoes
	matched []int  // of each pattern, at the end of held
	ready   []byte // can be returned
	held    []byte // may be the beginning of the value
	err     error  // after ready
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

// cut ends the content.
func (r *reader) cut() {
	r.err, r.ready, r.held = ErrEcho, nil, nil
	r.found()
}

// search searches what was read.
func (r *reader) search(read []byte) {
	longest := 0
	for i, p := range r.echoes.all {
		n := r.matched[i]
		for at := 0; at < len(read); at++ {
			if n == 0 { // the usual case, and much faster
				skip := bytes.IndexByte(read[at:], p.text[0])
				if skip < 0 {
					break
				}
				at += skip
			}
			if n = p.step(n, read[at]); n == len(p.text) {
				r.cut()
				return
			}
		}
		r.matched[i] = n
		longest = max(longest, n)
	}
	all := read
	if len(r.held) > 0 {
		all = append(r.held, read...)
	}
	r.ready, r.held = all[:len(all)-longest], bytes.Clone(all[len(all)-longest:])
}
