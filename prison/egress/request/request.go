// Package request compares HTTP requests with the methods and paths of rules.
//
// A rule is only safe if this program and the server read a path in the same way. [Path] therefore refuses each spelling that servers read
// differently: dot segments, empty segments, encoded slashes, backslashes, characters that are encoded twice, and bytes that are not UTF-8.
// What remains can differ within a segment: servers ignore the case, parameters (";..."), and dots and blanks at the end. A rule that
// allows must match the path as it was sent ([Pattern.Matches]). A rule that denies matches the path as any such server may read it
// ([Pattern.Denies]).
package request

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxPath is the maximum length of a path in bytes.
	maxPath = 8 << 10
	// maxPattern is the maximum length of a pattern in bytes.
	maxPattern = 1 << 10
)

// Path returns the decoded form of a request's path, which is compared with patterns. raw is the path of the request
// line, without the query. The error says why the path has more than one meaning.
func Path(raw string) (string, error) {
	if !strings.HasPrefix(raw, "/") {
		return "", errors.New("the path does not begin with a slash")
	}
	if len(raw) > maxPath {
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	decoded, err := decode(raw)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(decoded) {
		return "", errors.New("the path is not UTF-8")
	}
	segments := strings.Split(decoded[1:], "/")
	for i, s := range segments {
		name, _, _ := strings.Cut(s, ";") // some servers remove parameters first
		switch {
		case name != "" && trim(name) == "": // Windows takes ".. " for ".."
			return "", errors.New("the path has a dot segment")
		case name == "" && i < len(segments)-1:
			return "", errors.New("the path has an empty segment")
		}
	}
	return decoded, nil
}

// Sent returns the percent-encoded path, without the query, of what follows the host in an address that a person types. Clients do not send
// what follows a "#". The rest is read as net/http reads it. If that is an error, Sent returns the text as it is, which [Path] refuses.
func Sent(typed string) string {
	typed, _, _ = strings.Cut(typed, "#")
	u, err := url.ParseRequestURI(typed)
	if err != nil || !strings.HasPrefix(typed, "/") {
		return typed
	}
	return u.EscapedPath()
}

// Target returns the path of a header Destination (RFC 4918, section 10.3), as [Path] does.
func Target(destination string) (string, error) {
	if _, rest, ok := strings.Cut(destination, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		destination = rest[len(host):]
	}
	return Path(destination)
}

// decode replaces percent encodings once (RFC 3986, section 2.1).
func decode(raw string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		c, encoded := raw[i], raw[i] == '%'
		if encoded {
			digits := raw[i+1 : min(i+3, len(raw))]
			n, err := strconv.ParseUint(digits, 16, 8)
			if err != nil || len(digits) < 2 {
				return "", errors.New("the path has an incomplete percent encoding")
			}
			c, i = byte(n), i+2
		}
		switch {
		case encoded && strings.IndexByte("/%?#;", c) >= 0:
			return "", fmt.Errorf("the path has an encoded %q", c)
		case c == '\\', c < ' ', c == 0x7f:
			return "", fmt.Errorf("the path has the character %q", c)
		case !encoded && (c == ' ' || c == '?' || c == '#' || c > 0x7f):
			r, _ := utf8.DecodeRuneInString(raw[i:])
			return "", fmt.Errorf("the path has the character %q, which is not encoded", r)
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// Pattern describes requests by their methods and paths. The zero value describes all requests.
type Pattern struct {
	methods  []string // in upper case; empty: all
	segments []string // of the path, decoded, with [anything] and [anyParts] for "*" and "**"; nil: all paths
}

// No path contains these texts, because [Path] refuses NUL. So a pattern can also have a "*" that stands for itself.
const (
	anything = "\x00"     // any characters of a segment
	anyParts = "\x00\x00" // as a segment: any number of segments
)

// Methods of requests that are refused, whatever the rules say.
var (
	errCase   = errors.New("the method is not in upper case")
	errMethod = errors.New("the method has characters other than A to Z and -")
)

// CheckMethod returns an error unless a request's method is in upper case. Some servers take "delete" for DELETE, others do not.
func CheckMethod(method string) error {
	const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-"
	switch {
	case method == "" || strings.Trim(method, upper+"abcdefghijklmnopqrstuvwxyz") != "":
		return errMethod
	case strings.Trim(method, upper) != "":
		return errCase
	}
	return nil
}

// Every reports whether a pattern describes all requests.
func (p Pattern) Every() bool { return p.methods == nil && p.segments == nil }

// IsMethods reports whether a text is a list of methods in upper case, such as "GET,HEAD". Each begins with a letter: a command would take
// another text for an option.
func IsMethods(text string) bool {
	for m := range strings.SplitSeq(text, ",") {
		if CheckMethod(m) != nil || m[0] == '-' {
			return false
		}
	}
	return true
}

// Parse reads a list of methods, and a path that begins with a slash. Either can be empty and then means all. In a path,
// "*" stands for any characters of a segment, and a segment "**" for any number of segments. A last "/**" stands for
// everything inside. An encoded "*" ("%2A") stands for itself.
func Parse(methods, path string) (p Pattern, err error) {
	if methods != "" {
		if !IsMethods(methods) || len(methods) > maxPattern {
			return p, errors.New("want methods in upper case, such as GET,HEAD")
		}
		p.methods = strings.Split(methods, ",")
		if slices.Contains(p.methods, "CONNECT") || slices.Contains(p.methods, "TRACE") {
			return Pattern{}, errors.New("CONNECT and TRACE are always refused")
		}
	}
	if path == "" {
		return p, nil
	}
	if len(path) > maxPattern {
		return Pattern{}, fmt.Errorf("a path of more than %d bytes", maxPattern)
	}
	if _, err := Path(path); err != nil {
		return Pattern{}, err
	}
	for s := range strings.SplitSeq(path[1:], "/") { // no slash is encoded
		if s != "**" && strings.Contains(s, "**") {
			return Pattern{}, errors.New(`"**" must be a whole segment of a path`)
		}
		parts := strings.Split(s, "*")
		for i, part := range parts {
			if parts[i], err = decode(part); err != nil {
				return Pattern{}, err
			}
		}
		p.segments = append(p.segments, strings.Join(parts, anything))
	}
	return p, nil
}

// Narrowest returns the methods and the path of the pattern that describes a request and as few others as possible, as [Parse] reads them. No
// methods means all. path is percent-encoded. If it ends in "...", it may have been cut, and the pattern describes everything in its
// folder. ok is false if no pattern describes the request.
func Narrowest(method, path string) (methods, pattern string, ok bool) {
	if IsMethods(method) {
		methods = method
	}
	pattern = strings.NewReplacer("*", "%2A", "'", "%27").Replace(path)
	if cut, isCut := strings.CutSuffix(pattern, "..."); isCut || len(pattern) > maxPattern {
		cut = cut[:min(len(cut), maxPattern-len("**"))]
		pattern = cut[:strings.LastIndexByte(cut, '/')+1] + "**"
	}
	p, err := Parse(methods, pattern)
	return methods, pattern, err == nil && p.segments != nil && CheckMethod(method) == nil && method != "CONNECT" && method != "TRACE"
}

// Matches reports whether a pattern describes a request. path is the result of [Path].
func (p Pattern) Matches(method, path string) bool {
	if p.methods != nil && !slices.Contains(p.methods, method) {
		return false
	}
	return p.segments == nil || matchSegments(p.segments, strings.Split(strings.TrimPrefix(path, "/"), "/"), matchSegment)
}

// matchSegments compares all segments. After a mismatch it returns to the last [anyParts] only, so the time is bounded by the
// product of both lengths.
func matchSegments[S any](pattern []string, path []S, match func(pattern string, segment S) bool) bool {
	at, back, from := 0, -1, 0
	for i := 0; i < len(path); {
		switch {
		case at < len(pattern) && pattern[at] == anyParts:
			if at == len(pattern)-1 {
				return true
			}
			back, from = at, i
			at++
		case at < len(pattern) && match(pattern[at], path[i]):
			at++
			i++
		case back >= 0:
			from++
			at, i = back+1, from
		default:
			return false
		}
	}
	return at == len(pattern)
}

// matchSegment compares one segment, in which [anything] stands for any characters.
func matchSegment(pattern, segment string) bool {
	at, back, from := 0, -1, 0
	for i := 0; i < len(segment); {
		switch {
		case at < len(pattern) && pattern[at] == anything[0]:
			back, from = at, i
			at++
		case at < len(pattern) && pattern[at] == segment[i]:
			at++
			i++
		case back >= 0:
			from++
			at, i = back+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[at:], anything) == ""
}
