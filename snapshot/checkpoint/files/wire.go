package files

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what the host accepts from the process inside, which reads hostile files.
const (
	longestName   = 1 << 10 // bytes; NAME_MAX of Linux is 255
	longestTarget = 1 << 13 // bytes of a link's target, or of an error
	longestPath   = 1 << 20
	// MaxDepth is the deepest folder that is read, counted from the workspace.
	MaxDepth = 1000
)

// The first byte of a request. A request is answered completely before the next one is read.
const (
	askWalk  = 'w' // a byte follows: whether closed files may be opened to their owner
	askList  = 'l' // a byte and paths of folders follow: whether everything below is listed, too
	askRead  = 'r' // paths follow, each after isPath
	askApply = 'a' // operations follow, each after isPath

	isPath  = 'p' // from the host: a path or an operation follows
	isEntry = 'e' // to the host: an entry of a walk or folder follows
	isError = 'x' // to the host: a text follows, in the place of an answer
	isData  = 'o' // to the host: the content of a file, or the entries of a folder, follow
	isSame  = 'k' // to the host: the end of a file that did not change while it was read, or of a folder
	isOther = 'c' // to the host: the end of a file that changed while it was read
	isEnd   = 'z' // from both: the end of all paths, or of all answers
)

// ErrTooDeep is the reason why a folder below [MaxDepth] cannot be read.
var ErrTooDeep = fmt.Errorf("more than %d folders deep", MaxDepth)

var errForm = errors.New("unexpected answer from the prison")

type writer struct{ *bufio.Writer }

func newWriter(w io.Writer) writer { return writer{bufio.NewWriterSize(w, 1<<16)} }

// The functions below ignore errors: a bufio.Writer keeps its first error, and Flush returns it.

func (w writer) number(n uint64) { w.Write(binary.AppendUvarint(w.AvailableBuffer(), n)) } //nolint:errcheck // see Flush

func (w writer) signed(n int64) { w.Write(binary.AppendVarint(w.AvailableBuffer(), n)) } //nolint:errcheck // see Flush

func (w writer) text(s string) {
	w.number(uint64(len(s)))
	w.WriteString(s) //nolint:errcheck // see Flush
}

func (w writer) kind(b byte) { w.WriteByte(b) } //nolint:errcheck // see Flush

func (w writer) flag(set bool) {
	if set {
		w.kind(1)
	} else {
		w.kind(0)
	}
}

// paths writes all paths of a request.
func (w writer) paths(paths []string) {
	for _, path := range paths {
		w.kind(isPath)
		w.text(path)
	}
	w.kind(isEnd)
}

type reader struct {
	*bufio.Reader
	err error
}

func newReader(r io.Reader) *reader { return &reader{Reader: bufio.NewReaderSize(r, 1<<16)} }

func (r *reader) fail(err error) {
	if r.err == nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		r.err = err
	}
}

// decode reads a value. It does nothing after an error.
func decode[T any](r *reader, read func(io.ByteReader) (T, error)) (value T) {
	if r.err != nil {
		return value
	}
	value, err := read(r)
	if err != nil {
		r.fail(err)
	}
	return value
}

func (r *reader) number() uint64 {
	if r.err == nil && r.Buffered() >= binary.MaxVarintLen64 { // usually the buffer has all bytes of a number, and no call for each byte is needed
		b, err := r.Peek(binary.MaxVarintLen64)
		if v, n := binary.Uvarint(b); err == nil && n > 0 {
			r.Discard(n) //nolint:errcheck // the buffer has these bytes
			return v
		}
	}
	return decode(r, binary.ReadUvarint)
}

func (r *reader) signed() int64 {
	v := r.number()
	n := int64(v >> 1)
	if v&1 != 0 {
		n = ^n
	}
	return n
}

func (r *reader) kind() byte { return decode(r, io.ByteReader.ReadByte) }

func (r *reader) text(longest uint64) string {
	n := r.number()
	if r.err == nil && n > longest {
		r.fail(errForm)
	}
	if r.err != nil {
		return ""
	}
	if n <= uint64(r.Buffered()) {
		b, _ := r.Peek(int(n))
		text := string(b)
		r.Discard(int(n)) //nolint:errcheck // the buffer has these bytes
		return text
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		r.fail(err)
	}
	return string(b)
}

// Kind is the type of a file.
type Kind byte

// The kinds of files. Special files are sockets, pipes and devices, whose content cannot be stored.
const (
	Folder  Kind = 'd'
	Regular Kind = 'f'
	Link    Kind = 'l'
	Special Kind = 's'
)

// String returns the kind as a word for messages.
func (k Kind) String() string {
	return map[Kind]string{Folder: "folder", Regular: "file", Link: "link", Special: "special"}[k]
}

// Stat are the properties of a file that reveal a change of its content, see inode(7).
type Stat struct {
	Device, Inode uint64
	Size          int64 // bytes
	Mtime, Ctime  Time
}

// Time is a time of a file. A number of nanoseconds since 1970 in an int64 would only reach from 1677 to 2262.
type Time struct {
	Sec  int64 // since 1970, can be negative
	Nsec int64 // 0 to 999,999,999, after Sec
}

// Entry is a file as a walk finds it.
type Entry struct {
	Stat
	Kind   Kind
	Mode   uint32 // the permission bits and the set-id and sticky bits: 07777
	Links  uint64 // the number of names of a regular file
	Name   string // its name in its folder; empty for the workspace itself
	Depth  int    // the number of names on the way from the workspace to it; 0 for the workspace
	Target string // the target of a symbolic link
	Opened bool   // the walk gave the owner access to the file, and Mode is the mode from before
	Error  string // why its content, target or entries cannot be read
}

func (w writer) entry(e Entry) {
	w.kind(byte(e.Kind))
	w.number(uint64(e.Depth))
	w.text(e.Name)
	w.number(uint64(e.Mode))
	w.stat(e.Stat)
	w.number(e.Links)
	w.text(e.Target)
	w.flag(e.Opened)
	w.text(e.Error)
}

func (w writer) stat(s Stat) {
	w.number(s.Device)
	w.number(s.Inode)
	w.signed(s.Size)
	w.time(s.Mtime)
	w.time(s.Ctime)
}

func (w writer) time(t Time) {
	w.signed(t.Sec)
	w.number(uint64(t.Nsec))
}

func (r *reader) time() Time {
	t := Time{Sec: r.signed(), Nsec: int64(r.number())}
	if t.Nsec < 0 || t.Nsec >= 1e9 {
		r.fail(errForm)
	}
	return t
}

func (r *reader) stat() Stat {
	return Stat{Device: r.number(), Inode: r.number(), Size: r.signed(), Mtime: r.time(), Ctime: r.time()}
}

func (r *reader) entry() Entry {
	e := Entry{Kind: Kind(r.kind()), Depth: int(r.number()), Name: r.text(longestName), Mode: uint32(r.number()), Stat: r.stat(),
		Links: r.number(), Target: r.text(longestTarget), Opened: r.number() == 1, Error: r.text(longestTarget)}
	if r.err == nil {
		if err := e.check(); err != nil {
			r.fail(err)
		}
	}
	return e
}

// check returns an error for an entry that [Serve] would never send.
func (e Entry) check() error {
	switch {
	case e.Kind != Folder && e.Kind != Regular && e.Kind != Link && e.Kind != Special,
		e.Mode&^0o7777 != 0, e.Size < 0, e.Depth < 0, e.Depth > MaxDepth+1,
		strings.ContainsRune(e.Target, 0), e.Kind == Link && e.Target == "" && e.Error == "":
		return fmt.Errorf("%w: entry %q", errForm, e.Name)
	case e.Depth == 0:
		if e.Name != "" || e.Kind != Folder {
			return fmt.Errorf("%w: workspace %q", errForm, e.Name)
		}
		return nil
	}
	return CheckName(e.Name)
}

// CheckName returns an error for a text that cannot be the name of a file in a folder.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > longestName || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: name %q", errForm, name)
	}
	return nil
}

// Action is what an operation does.
type Action byte

// The actions. Removing a file that does not exist succeeds.
const (
	Remove       Action = 'r' // removes a file that is not a folder
	RemoveFolder Action = 'R' // removes an empty folder
	MakeFolder   Action = 'd'
	Write        Action = 'f' // writes a regular file, which replaces any file that is not a folder
	MakeLink     Action = 'l' // makes a symbolic link, which replaces any file that is not a folder
	Set          Action = 'm' // sets mode and time
)

// Operation changes one file of the workspace.
type Operation struct {
	Action Action
	Kind   Kind   // for Set: the kind that the file must have
	Path   string // the path from the workspace; empty for the workspace itself
	Mode   uint32
	Mtime  Time
	Target string // the target of a link, for MakeLink
	Size   int64  // the bytes of content, for Write
}

func (w writer) operation(o Operation) {
	w.kind(byte(o.Action))
	w.kind(byte(o.Kind))
	w.text(o.Path)
	w.number(uint64(o.Mode))
	w.time(o.Mtime)
	w.text(o.Target)
	w.signed(o.Size)
}

func (r *reader) operation() Operation {
	return Operation{Action: Action(r.kind()), Kind: Kind(r.kind()), Path: r.text(longestPath), Mode: uint32(r.number()),
		Mtime: r.time(), Target: r.text(longestTarget), Size: r.signed()}
}
