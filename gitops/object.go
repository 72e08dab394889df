package gitops

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's object name, not a protection
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// OID is the name of an object in hexadecimal. Empty means no object.
type OID string

// ParseOID accepts only a full SHA-1 or SHA-256 object name.
func ParseOID(text string) (OID, error) {
	if (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == "" {
		return OID(text), nil
	}
	return "", fmt.Errorf("%q is not an object name", Text(text))
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts what [ParseOID] does, and an empty text: a file can be from anybody, and
// object names are printed, pasted and passed to git as they are.
func (o *OID) UnmarshalText(text []byte) (err error) {
	if *o = OID(text); *o != "" {
		*o, err = ParseOID(string(text))
	}
	return err
}

// Zero returns the name of "no object" in the same object format as o.
func (o OID) Zero() OID { return OID(strings.Repeat("0", len(o))) }

// Names returns object names as arguments of a command.
func Names(ids []OID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// Lines returns object names as lines of a command's input.
func Lines(ids []OID) string { return strings.Join(append(Names(ids), ""), "\n") }

// Set is a set of object names, paths or other values. Each member maps to true.
type Set[T comparable] map[T]bool

// SetOf returns the set of some values.
func SetOf[T comparable](values ...T) Set[T] {
	s := make(Set[T], len(values))
	s.Add(values...)
	return s
}

// Add adds values to the set.
func (s Set[T]) Add(values ...T) {
	for _, v := range values {
		s[v] = true
	}
}

// HashObject returns git's name of an object: the hash of "<type> <size>\0<content>".
func HashObject(format, kind string, content []byte) OID {
	h := sha1.New() //nolint:gosec
	if format == "sha256" {
		h = sha256.New()
	}
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return OID(hex.EncodeToString(h.Sum(nil)))
}

// Commit is a commit object, with its bytes unchanged.
type Commit struct {
	Tree      OID
	Parents   []OID
	Author    string // value of the author line: name, mail, seconds, zone
	Committer string
	Encoding  string // of the message; empty without such a header
	Message   []byte
}

// ParseCommit reads a commit object. It reads tree, parent, author, committer and encoding, and drops every other header (signatures, mergetags,
// unknown ones). As in git, which checks no header after the committer, the first header of a name counts, and a parent counts only before the
// author. Otherwise a second tree could be one that nobody has checked. Unlike git, it refuses object names with capital letters, which no git
// writes: the same commit would have two names.
func ParseCommit(raw []byte) (Commit, error) {
	var c Commit
	header, message, found := bytes.Cut(raw, []byte("\n\n"))
	if !found {
		// A commit may end after its headers. Its message is empty then.
		header = bytes.TrimSuffix(raw, []byte("\n"))
	}
	c.Message = message
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		name, rest, _ := bytes.Cut(line, []byte(" "))
		if len(name) > len("committer") {
			continue
		}
		var err error
		key, value := string(name), rest
		switch {
		case key == "tree" && c.Tree == "":
			c.Tree, err = ParseOID(string(value)) // a copy: a stored name must not keep headers of a megabyte in memory
		case key == "parent" && c.Author == "":
			var parent OID
			parent, err = ParseOID(string(value))
			c.Parents = append(c.Parents, parent)
		case key == "author" && c.Author == "":
			c.Author = string(value)
		case key == "committer" && c.Committer == "":
			c.Committer = string(value)
		case key == "encoding" && c.Encoding == "":
			c.Encoding = string(value)
		}
		if err != nil {
			return c, fmt.Errorf("its %s has no plain object name", key)
		}
	}
	if c.Tree == "" || c.Author == "" || c.Committer == "" {
		return c, fmt.Errorf("a commit object lacks its tree, author or committer")
	}
	return c, nil
}

// Bytes returns the content of the commit object.
func (c Commit) Bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", c.Author, c.Committer)
	if c.Encoding != "" {
		fmt.Fprintf(&b, "encoding %s\n", c.Encoding)
	}
	b.WriteByte('\n')
	b.Write(c.Message)
	return b.Bytes()
}

// SplitIdent splits the value of an author line into "Name <mail>" and "seconds zone".
func SplitIdent(ident string) (who, when string) {
	if i := strings.LastIndex(ident, "> "); i >= 0 {
		return ident[:i+1], ident[i+2:]
	}
	return ident, ""
}

// UnshownDate returns the date of the author or committer that git cannot show, or empty. Git ends with an error at a date that is before 1970
// or after the end of its seconds in the zone of the date (gm_time_t in date.c), and git fsck does not report such a date.
func (c Commit) UnshownDate() string {
	for _, ident := range []string{c.Author, c.Committer} {
		_, when := SplitIdent(ident)
		text, zone, _ := strings.Cut(when, " ")
		seconds, err := strconv.ParseUint(text, 10, 64)
		if err != nil || seconds > math.MaxInt64 {
			continue // git shows these as 1970
		}
		hhmm, err := strconv.ParseInt(zone, 10, 32)
		if err != nil {
			continue
		}
		if local := int64(seconds) + (hhmm/100*60+hhmm%100)*60; local < 0 { // an overflow is below 0 as well
			return when
		}
	}
	return ""
}

// Subject returns the first line of the message, escaped for display.
func (c Commit) Subject() string {
	line, _, _ := bytes.Cut(bytes.TrimLeft(c.Message, "\n"), []byte("\n"))
	return Text(string(line)).String()
}
