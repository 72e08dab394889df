package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
)

const (
	// maxFile is the size in bytes after which a file is rotated, and maxFiles how many there are at most.
	maxFile  = 10 << 20
	maxFiles = 5
	// room is how many bytes [Writer.Reserve] keeps for a record: more than a record with ordinary names and paths needs.
	room = 4 << 10
	// ahead is how many more bytes Reserve keeps each time, so that few records wait for the file system.
	ahead = 512 << 10
)

// Writer appends records to the ledger of a folder. It may be used by several goroutines, but a folder has one Writer at a time.
type Writer struct {
	dir, session string
	maxFile      int64

	mu     sync.Mutex
	file   *os.File
	size   int64
	kept   int64  // end of the room that Reserve has kept, as a position in file
	seq    uint64 // of the last record
	prev   string // hash of the last line
	broken error  // if not nil, nothing can be written any more
}

// Open opens the ledger of a folder for writing and creates it if there is none. It removes a line that was not written completely before a
// crash, and adds a record about that. session is the session of records that name none.
func Open(dir, session string) (*Writer, error) {
	w := &Writer{dir: dir, session: session, maxFile: maxFile}
	if err := w.open(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Writer) open() error {
	end, err := readEnd(w.dir)
	if err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(w.dir, control.LedgerFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Truncate(end.size)); err != nil {
		f.Close()
		return fmt.Errorf("open ledger: %w", err)
	}
	w.file, w.size, w.seq, w.prev = f, end.size, end.seq, end.hash
	if end.torn > 0 {
		reason := fmt.Sprintf("removed %d bytes of a line that was not written completely", end.torn)
		return w.Append(control.Record{Kind: control.KindAlarm, Verdict: control.VerdictLost, Reason: reason})
	}
	return nil
}

// numbered returns the name of the nth file, 0 being the newest.
func numbered(n int) string {
	if n == 0 {
		return control.LedgerFile
	}
	return control.LedgerFile + "." + strconv.Itoa(n)
}

// Append writes records. It sets V, Seq and Prev, and Time and Session if they are empty. After an error the caller must allow no
// connection until an Append succeeds, for example because a full disk has room again.
func (w *Writer) Append(records ...control.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range records {
		if err := w.write(r); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) write(r control.Record) error {
	if w.broken != nil {
		return w.broken
	}
	if r.Session == "" {
		r.Session = w.session
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Seq, r.Prev = w.seq+1, w.prev
	line, err := encode(r)
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if w.size+int64(len(line)) > w.maxFile && w.size > 0 {
		if err := w.rotate(); err != nil {
			return fmt.Errorf("rotate ledger: %w", err)
		}
	}
	if _, err := w.file.WriteAt(line, w.size); err != nil {
		w.kept = 0
		if torn := w.file.Truncate(w.size); torn != nil {
			w.broken = fmt.Errorf("write ledger: %w", torn)
		}
		return fmt.Errorf("write ledger: %w", err)
	}
	w.size, w.seq, w.prev = w.size+int64(len(line)), r.Seq, hash(line[:len(line)-1])
	if r.Denied() {
		w.keepDenied(line)
	}
	return nil
}

// nextFile is the name of a file until the rotation that creates it is complete.
const nextFile = control.LedgerFile + ".new"

// rotate gives each file the next number and begins a new one. It replaces the oldest. It creates the new file before it renames another,
// so that an error loses nothing, and the next record tries again.
func (w *Writer) rotate() error {
	w.kept = 0
	if err := errors.Join(w.file.Truncate(w.size), w.file.Sync()); err != nil {
		return err
	}
	next := filepath.Join(w.dir, nextFile)
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for n := maxFiles - 1; n > 0; n-- {
		if err := os.Rename(filepath.Join(w.dir, numbered(n-1)), filepath.Join(w.dir, numbered(n))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, f.Close())
		}
	}
	if err := os.Rename(next, filepath.Join(w.dir, control.LedgerFile)); err != nil {
		return errors.Join(err, f.Close())
	}
	w.file.Close() // its content is on the disk
	w.file, w.size = f, 0
	return nil
}

// Reserve keeps room on the disk for as many more records, if the file system can do that.
func (w *Writer) Reserve(records int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	if w.size+int64(records)*room <= w.kept {
		return nil
	}
	size := int64(records)*room + ahead
	if err := reserve(w.file, w.size, size); err != nil {
		return fmt.Errorf("reserve room for the ledger: %w", err)
	}
	w.kept = w.size + size
	return nil
}

// Close ends the writing. Nothing can be appended afterwards.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.broken, fs.ErrClosed) {
		return nil
	}
	w.broken = errors.Join(w.broken, fs.ErrClosed)
	return errors.Join(w.file.Truncate(w.size), w.file.Sync(), w.file.Close())
}
