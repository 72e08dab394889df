// Package events keeps the event log of an airlock: a file of JSON lines in the host state, one [record.Event] each.
//
// Several processes append to the log: the daemon, and the commands of the user. A log of [maxFile] bytes is renamed to the
// name with ".1", which replaces an older one, so a log has at most twice that size. Nothing else writes these files.
//
// The log is for people. A failure to write it must not keep commits from landing, so [Append] returns no error. If the disk is full,
// the process keeps the event. It writes it before its next event, or when [Retry] is called.
package events

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// maxFile is the size in bytes from which a log is rotated.
	maxFile = 2 << 20
	// maxText bounds the texts of an event in bytes.
	maxText = 4 << 10
)

// logFile returns the name of the log in an airlock's host state.
func logFile(dir string) string { return filepath.Join(dir, record.EventsName) }

func older(dir string) string { return logFile(dir) + ".1" }

// Append appends an event to the log in the host state dir. An event without a time happened now.
func Append(dir string, e record.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time, e.Text = e.Time.UTC().Truncate(time.Millisecond), words.ClipValid(e.Text, maxText)
	e.Data = maps.Clone(e.Data)
	for key, value := range e.Data {
		e.Data[key] = words.ClipValid(value, maxText)
	}
	write(dir, e)
}

// Note appends an event of an ordinary kind, such as a start.
func Note(dir, session string, kind record.EventKind, text string) {
	Append(dir, record.Event{Level: record.Info, Kind: kind, Session: session, Text: text})
}

// Started notes that the prison of an airlock was started.
func Started(dir, session string) { Note(dir, session, record.EventStart, "the prison was started") }

// Stopped notes that the prison of an airlock was stopped.
func Stopped(dir, session string) { Note(dir, session, record.EventStop, "the prison was stopped") }

// Broken notes that a check of the prison from inside failed.
func Broken(dir, session string) {
	Append(dir, record.Event{Level: record.Failure, Kind: record.EventIsolation, Session: session, Text: "a check of the prison from inside failed: git airlock selftest"})
}

// open opens and locks the log, and rotates it first if it is full. Closing it unlocks it.
func open(dir string) (*os.File, error) {
	for {
		f, err := os.OpenFile(logFile(dir), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			return nil, err
		}
		info, err := f.Stat()
		named, err2 := os.Stat(logFile(dir))
		if err != nil || err2 != nil || !os.SameFile(info, named) { // another process has rotated it
			f.Close()
			if err := errors.Join(err, err2); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		}
		if info.Size() < maxFile {
			return f, nil
		}
		err = os.Rename(logFile(dir), older(dir))
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// lockTime bounds the wait for another process that appends. Such a process takes an instant, unless it was stopped.
const lockTime = 2 * time.Second

// lock locks the log.
func lock(f *os.File) error {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Since(begun) > lockTime {
			return err
		}
	}
}

// torn reports whether the last line has no newline at its end, because its writer died.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Read returns the events of a log, oldest first. Lines that cannot be read are left out. Without a log there
// are no events.
func Read(dir string) (all []record.Event, err error) {
	for _, name := range []string{older(dir), logFile(dir)} {
		content, err := readFile(name, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, decode(content)...)
	}
	return all, nil
}

// readFile returns the content of a file from an offset on. A missing file has no content.
func readFile(name string, from int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, gitops.Unless(err, fs.ErrNotExist)
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, from, 2*maxFile))
}

func decode(content []byte) []record.Event {
	all, _ := record.DecodeLines[record.Event](record.EventsName, content) // a line that a crash cut is not an error
	return all
}

// Follower reads the events that are appended to a log.
type Follower struct {
	dir  string
	file os.FileInfo // the newest file at the last call
	at   int64       // the number of bytes of this file that were read
}

// Follow returns a follower of the log in the host state dir. It reads the events that are appended from now on.
func Follow(dir string) *Follower {
	f := &Follower{dir: dir}
	if info, err := os.Stat(logFile(dir)); err == nil {
		f.file, f.at = info, info.Size()
	}
	return f
}

// Next returns the events since the last call.
func (f *Follower) Next() (all []record.Event, err error) {
	info, err := os.Stat(logFile(f.dir))
	if err != nil {
		return nil, gitops.Unless(err, fs.ErrNotExist)
	}
	if f.file != nil && !os.SameFile(f.file, info) {
		if all, err = f.from(older(f.dir)); err != nil {
			return nil, err
		}
		f.at = 0
	}
	f.file = info
	more, err := f.from(logFile(f.dir))
	return append(all, more...), err
}

// from returns the whole lines of a file that were not read yet.
func (f *Follower) from(name string) ([]record.Event, error) {
	content, err := readFile(name, f.at)
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	f.at += int64(len(content))
	return decode(content), err
}
