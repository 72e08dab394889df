// Package passed finds the values of variables that were passed into a prison in texts that come out of it.
//
// A record of a run may be made when no process has the values any more: after a crash, or by another command. No file may contain the
// values. So [Values] has a salted hash and the length of each of a value's [Forms]. It compares the hash with the hash of every part of
// a text that has the length. A process that can read the hashes can test guesses of a value. Only the user can read them.
//
// The program in the prison can write a value in another form, which is not found. Values are hidden from accidents, not from an
// attacker. Begin reading at [Values.Learn] and [Values.Find].
package passed

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Mask stands for a value.
const Mask = "***"

// shortest is the length in bytes of the shortest value that is hidden. Many words contain shorter values.
const shortest = 8

// topFolders are the first folders of paths that are not secret.
var topFolders = strings.Fields("app bin boot build code data dev etc home lib lib64 media mnt nix opt proc repo root run sbin src srv sys tmp usr var work workspace")

// Hidden reports whether a value must be hidden: it is not short, and neither a path nor a list of paths. A secret may begin with a
// slash, too, so a path must begin with a folder that systems have.
func Hidden(value string) bool {
	rest, rooted := strings.CutPrefix(value, "/")
	first, _, _ := strings.Cut(rest, "/")
	first, _, _ = strings.Cut(first, ":")
	return len(value) >= shortest && (!rooted || !slices.Contains(topFolders, first))
}

// Values recognises values in texts. The zero value recognises none. It can be stored as JSON.
type Values struct {
	Salt  []byte `json:"salt"`
	Forms []form `json:"forms"`
}

// form recognises one form of a value. Line ends are removed from the form before.
type form struct {
	Length int `json:"length"` // in bytes
	// Filter is a part of the form's rolling hash, which can be computed quickly for each part of a text.
	Filter uint16 `json:"filter"`
	Sum    []byte `json:"sum"` // SHA-256 of the salt and the form
}

// maxForms is how many forms are kept, about those of a hundred values. The oldest ones are dropped.
const maxForms = 2000

// Learn adds those values that must be hidden, and reports whether one of them is new.
func (v *Values) Learn(values []string) (learned bool) {
	if v.Salt == nil {
		v.Salt = make([]byte, sha256.Size)
		_, _ = rand.Read(v.Salt) // this never fails
	}
	for _, value := range values {
		if !Hidden(value) {
			continue
		}
		for _, text := range Forms(value) {
			joined := withoutLineEnds([]byte(text))
			if len(joined) < shortest {
				continue
			}
			f := form{Length: len(joined), Filter: v.filter(joined), Sum: v.sum(joined)}
			if !slices.ContainsFunc(v.Forms, func(known form) bool { return bytes.Equal(known.Sum, f.Sum) }) {
				v.Forms, learned = append(v.Forms, f), true
			}
		}
	}
	v.Forms = v.Forms[max(0, len(v.Forms)-maxForms):]
	return learned
}

func (v *Values) sum(text []byte) []byte {
	h := sha256.New()
	h.Write(v.Salt)
	h.Write(text)
	return h.Sum(nil)
}

// base is the number whose powers are the factors of the rolling hash.
func (v *Values) base() uint64 { return binary.LittleEndian.Uint64(v.Salt) | 1 }

// filter returns the Filter of a text.
func (v *Values) filter(text []byte) uint16 {
	base, hash := v.base(), uint64(0)
	for _, c := range text {
		hash = hash*base + uint64(c) + 1
	}
	return uint16(hash >> 48)
}

// search returns the parts of a text that are forms. All forms must have the same length.
func (v *Values) search(text []byte, forms []form) (found []Span) {
	length, base := forms[0].Length, v.base()
	if len(text) < length {
		return nil
	}
	power, hash := uint64(1), uint64(0)
	for _, c := range text[:length] {
		hash, power = hash*base+uint64(c)+1, power*base
	}
	for end := length; ; end++ {
		for _, f := range forms {
			if f.Filter == uint16(hash>>48) && bytes.Equal(f.Sum, v.sum(text[end-length:end])) {
				found = append(found, Span{end - length, end})
			}
		}
		if end == len(text) {
			return found
		}
		hash = hash*base + uint64(text[end]) + 1 - (uint64(text[end-length])+1)*power
	}
}

// Span is a part of a text: the bytes from From up to To.
type Span struct{ From, To int }

// Find returns the parts of a text that are values, in order. It ignores line ends: programs break lines of base64, and terminals change
// line ends.
func (v *Values) Find(text []byte) []Span {
	if len(v.Forms) == 0 || len(text) < shortest {
		return nil
	}
	lengths := map[int][]form{}
	for _, f := range v.Forms {
		lengths[f.Length] = append(lengths[f.Length], f)
	}
	var found []Span
	joined := withoutLineEnds(text)
	for _, forms := range lengths {
		found = append(found, v.search(joined, forms)...)
	}
	return within(text, merged(found))
}

// merged sorts spans and joins those that overlap.
func merged(spans []Span) (out []Span) {
	slices.SortFunc(spans, func(a, b Span) int { return a.From - b.From })
	for _, s := range spans {
		if n := len(out); n > 0 && s.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// within converts spans of the text without line ends into spans of the text.
func within(text []byte, spans []Span) []Span {
	at, n, begun := 0, 0, false // position in the text without line ends, index in spans, and whether the span's From is converted
	for i, c := range text {
		if n == len(spans) {
			break
		}
		if isLineEnd(c) {
			continue
		}
		if at == spans[n].From && !begun {
			spans[n].From, begun = i, true
		}
		if at++; at == spans[n].To {
			spans[n].To, begun, n = i+1, false, n+1
		}
	}
	return spans
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }

func withoutLineEnds(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	out := make([]byte, 0, len(text))
	for _, c := range text {
		if !isLineEnd(c) {
			out = append(out, c)
		}
	}
	return out
}

// Cover appends part, which begins at the offset at of a text, to out. It replaces spans of the text by the mask, but keeps line ends.
func Cover(out, part []byte, at int, spans []Span) []byte {
	n, _ := slices.BinarySearchFunc(spans, at, func(s Span, at int) int { return s.To - 1 - at })
	done := 0
	for _, s := range spans[n:] {
		from, to := max(s.From-at, 0), min(s.To-at, len(part))
		if from >= to {
			break
		}
		out = append(out, part[done:from]...)
		done = to
		for hidden := false; from < to; from++ {
			if c := part[from]; isLineEnd(c) {
				out, hidden = append(out, c), false
			} else if !hidden {
				out, hidden = append(out, Mask...), true
			}
		}
	}
	return append(out, part[done:]...)
}

// Text replaces the values in a text by the mask.
func (v *Values) Text(text string) string {
	spans := v.Find([]byte(text))
	if len(spans) == 0 {
		return text
	}
	return string(Cover(nil, []byte(text), 0, spans))
}

// Words replaces the values in words by the mask.
func (v *Values) Words(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		out[i] = v.Text(w)
	}
	return out
}
