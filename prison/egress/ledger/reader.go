package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Damage is a place where a ledger is not what a [Writer] has written.
type Damage struct {
	File   string `json:"file"` // in the ledger's folder
	Line   int    `json:"line"` // counts from 1
	Reason string `json:"reason"`
}

func (d Damage) String() string { return fmt.Sprintf("%s, line %d: %s", d.File, d.Line, d.Reason) }

// maxDamages bounds the damages of a [Report].
const maxDamages = 20

// Report is the result of reading a whole ledger.
type Report struct {
	Records int
	Last    uint64   // number of the last record
	Head    string   // SHA-256 of the last line
	Damages []Damage // at most [maxDamages]
}

// chain checks the lines of a ledger in their order.
type chain struct {
	Report
	began   bool
	rotated bool // older files may be gone
}

// add checks a line, and returns its record if it can be read.
func (c *chain) add(file string, number int, line []byte) (control.Record, bool) {
	r, err := decode(line)
	switch {
	case err != nil:
		c.damage(file, number, "not a record")
		r.Seq = c.Last + 1
	case !c.began:
		if r.Seq == 0 || r.Seq == 1 && r.Prev != "" || r.Seq > 1 && !c.rotated {
			c.damage(file, number, "not the first record of a ledger")
		}
	case r.Prev != c.Head:
		c.damage(file, number, "does not continue the line before it")
	case r.Seq != c.Last+1:
		c.damage(file, number, fmt.Sprintf("record %d follows record %d", r.Seq, c.Last))
	}
	c.began, c.Last, c.Head = true, r.Seq, hash(line)
	if err == nil {
		c.Records++
	}
	return r, err == nil
}

func (c *chain) damage(file string, line int, reason string) {
	if len(c.Damages) < maxDamages {
		c.Damages = append(c.Damages, Damage{file, line, reason})
	}
}

// Read calls each for every record of a ledger, from the oldest, until each returns false. It also checks the chain. It leaves out a line
// that is being written. Without a ledger there are no records.
func Read(dir string, each func(control.Record) bool) (Report, error) {
	files, err := openAll(dir)
	defer closeAll(files)
	if err != nil {
		return Report{}, fmt.Errorf("read ledger: %w", err)
	}
	c := chain{rotated: len(files) == maxFiles}
	for _, f := range files {
		number, goes := 0, true
		err := eachLine(f, func(line []byte, _ int64) bool {
			number++
			r, ok := c.add(filepath.Base(f.Name()), number, line)
			goes = !ok || each(r)
			return goes
		})
		if err != nil {
			return c.Report, fmt.Errorf("read ledger: %w", err)
		}
		if !goes {
			break
		}
	}
	return c.Report, nil
}

// Verify reads a whole ledger and returns what it found.
func Verify(dir string) (Report, error) { return Read(dir, func(control.Record) bool { return true }) }

// openAll opens the files of a ledger, the oldest first. It opens the newest first: after a rotation meanwhile it finds one file twice,
// which it leaves out, but misses none.
func openAll(dir string) (files []*os.File, err error) {
	var infos []fs.FileInfo
	for n := range maxFiles {
		f, err := os.Open(filepath.Join(dir, numbered(n)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		info, err := f.Stat()
		if err != nil || slices.ContainsFunc(infos, func(i fs.FileInfo) bool { return os.SameFile(i, info) }) {
			f.Close()
			continue
		}
		files, infos = append(files, f), append(infos, info)
	}
	slices.Reverse(files)
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// eachLine calls each for the whole lines of a file, without their ends, until each returns false. size is the length of the line with its
// end. If a line is longer than maxLine, each gets its beginning, which is not a record.
func eachLine(from io.Reader, each func(line []byte, size int64) bool) error {
	in := bufio.NewReaderSize(from, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		size := int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			line = bytes.Clone(line)
			for errors.Is(err, bufio.ErrBufferFull) {
				var more []byte
				more, err = in.ReadSlice('\n')
				size += int64(len(more))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !each(bytes.TrimSuffix(line, []byte("\n")), size) {
			return nil
		}
	}
}

// ending describes the end of a ledger.
type ending struct {
	size int64  // of the newest file, up to the end of its last whole line
	torn int64  // bytes after that
	seq  uint64 // of the last record
	hash string // of the last line
}

// readEnd finds the end of a ledger: of its newest file, or of the one before if a crash left the newest file empty. A whole line that
// cannot be read counts as a line: the chain goes on after it, and [Verify] reports it.
func readEnd(dir string) (ending, error) {
	newest, err := endOf(filepath.Join(dir, numbered(0)))
	if err != nil || newest.size > 0 {
		return newest, err
	}
	before, err := endOf(filepath.Join(dir, numbered(1)))
	return ending{torn: newest.torn, seq: before.seq, hash: before.hash}, err
}

// tail is how many bytes of a file's end are read first. They have several lines.
const tail = 4 * maxLine

func endOf(name string) (ending, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return ending{}, nil
	}
	if err != nil {
		return ending{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ending{}, err
	}
	e, known, err := endAfter(f, max(0, info.Size()-tail), info.Size())
	if err == nil && !known {
		e, _, err = endAfter(f, 0, info.Size())
	}
	return e, err
}

// endAfter finds the end of a file, of which it reads the part after from, without a line that began before. known reports that this part
// has a record, or is the whole file.
func endAfter(f *os.File, from, size int64) (e ending, known bool, err error) {
	first := from > 0
	known, e.size = !first, from
	err = eachLine(io.NewSectionReader(f, from, size-from), func(line []byte, size int64) bool {
		e.size += size
		if first {
			first = false
			return true
		}
		e.seq, e.hash = e.seq+1, hash(line)
		if r, err := decode(line); err == nil {
			e.seq, known = r.Seq, true
		}
		return true
	})
	e.torn = size - e.size
	return e, known, err
}

// Tail returns the records at the end of a ledger's newest file. It reads no more than a few hundred kilobytes.
func Tail(dir string) (records []control.Record, err error) {
	f, err := os.Open(filepath.Join(dir, numbered(0)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-tail)
	err = eachLine(io.NewSectionReader(f, from, info.Size()-from), func(line []byte, _ int64) bool {
		if r, err := decode(line); err == nil { // the first may lack its beginning
			records = append(records, r)
		}
		return true
	})
	return records, err
}
