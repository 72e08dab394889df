package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/record"
)

const (
	castName = "terminal.jsonl" // a [record.CastHeader], then one [record.CastEvent] a line, before masking
	// maxCast bounds the bytes that are kept of a terminal's output.
	maxCast = 4 << 20
)

// timed keeps the output of a terminal with its times.
type timed struct {
	mutex  sync.Mutex
	name   string
	begun  time.Time
	now    func() time.Time
	header record.CastHeader
	file   *os.File
	size   int64
	rest   []byte // the beginning of a character
	failed bool
	left   int64    // bytes that were not kept
	note   *os.File // has left
}

func newTimed(dir string, size prison.Size, now func() time.Time) *timed {
	begun := now()
	return &timed{name: filepath.Join(dir, castName), begun: begun, now: now,
		header: record.CastHeader{Width: max(int(size.Cols), 1), Height: max(int(size.Rows), 1), Timestamp: begun.Unix()}}
}

// Write implements [io.Writer]. It never fails.
func (t *timed) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.failed || t.size >= maxCast {
		t.leave(len(p))
		return len(p), nil
	}
	var events []record.CastEvent
	events, t.rest = castEvents(t.now().Sub(t.begun), append(t.rest, p...))
	content, err := record.EncodeCast(t.header, events)
	if err == nil && t.file == nil {
		t.file, err = os.OpenFile(t.name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	} else if err == nil {
		content = record.WithoutHeader(content)
	}
	if err == nil {
		_, err = t.file.Write(content)
	}
	t.size, t.failed = t.size+int64(len(content)), err != nil
	return len(p), nil
}

// leave counts bytes that are not kept. The count is written each time, since this process may be killed.
func (t *timed) leave(n int) {
	if t.left == 0 {
		t.note, _ = os.OpenFile(t.name+leftSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	}
	t.left += int64(n)
	if t.note != nil {
		_, _ = t.note.WriteAt(fmt.Append(nil, t.left), 0) // the count only grows, and so does its text
	}
}

// maxEvent bounds the bytes of an event, since the lines of a record are bounded.
const maxEvent = 16 << 10

// castEvents splits output into events at the bounds of characters. rest is the beginning of a character.
func castEvents(at time.Duration, output []byte) (events []record.CastEvent, rest []byte) {
	for len(output) > 0 {
		n := record.WholeCharacters(output[:min(len(output), maxEvent)])
		if n == 0 {
			return events, output
		}
		events, output = append(events, record.CastEvent{At: at, Text: string(output[:n])}), output[n:]
	}
	return events, nil
}

// terminal adds the output of the terminal of git airlock run.
func (g *gathering) terminal() error {
	content, err := os.ReadFile(filepath.Join(g.folder(g.slot), castName))
	if errors.Is(err, fs.ErrNotExist) {
		g.absent[record.TerminalName] = "the command had no terminal"
		return nil
	}
	if err != nil {
		return err
	}
	header, events, _ := record.DecodeCast(content) // its writer may have died in a line
	return g.cast(header, events, readLeft(filepath.Join(g.folder(g.slot), castName)))
}

// cast adds the output of a terminal, of which bytes at the end may be left out. A line with a secret is masked in all events that it
// is in.
func (g *gathering) cast(header record.CastHeader, events []record.CastEvent, left int64) error {
	events, lines := maskedEvents(events, g.values)
	content, err := record.EncodeCast(header, events)
	about := record.File{Cut: left}
	if left > 0 {
		about.Note = "the end is left out"
	}
	if lines > 0 {
		about.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d lines are masked", about.Note, lines), "; ")
	}
	g.put(record.TerminalName, content, about)
	return err
}
