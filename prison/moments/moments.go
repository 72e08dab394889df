// Package moments records when the output of a launched command came, in a file beside the log of that output.
//
// A line of the file is "OFFSET TIME": at TIME, in milliseconds since 1970, the output from OFFSET on came. A line "OFFSET" means that
// the log now begins with the output at OFFSET. The times are the host's. Only the size of the output depends on the agent.
package moments

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

const (
	// limit is the largest size of the file in bytes.
	limit = 2 << 20
	// pause is the shortest time between two lines with a time.
	pause = 20 * time.Millisecond
)

// Log writes such a file. If the file cannot be created, it writes nothing.
type Log struct {
	file  *os.File  // nil if it could not be created
	total int64     // bytes of output so far
	size  int64     // bytes of whole lines in the file
	last  time.Time // the time of the last line
}

// New creates a file, or empties it.
func New(name string) *Log {
	f, _ := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	return &Log{file: f}
}

// Add records that n more bytes of output came at the time now.
func (l *Log) Add(n int, now time.Time) {
	if now.Sub(l.last) >= pause {
		l.last = now
		l.write(fmt.Sprintf("%d %d\n", l.total, now.UnixMilli()))
	}
	l.total += int64(n)
}

// Begins records that from now on, the log has only the last kept bytes of the output.
func (l *Log) Begins(kept int64) { l.write(fmt.Sprintf("%d\n", l.total-kept)) }

func (l *Log) write(line string) {
	if l.file == nil || l.size >= limit {
		return
	}
	if _, err := l.file.WriteAt([]byte(line), l.size); err != nil {
		l.file.Truncate(l.size) //nolint:errcheck // a part of the line would be read as a line; the next one overwrites it
		return
	}
	l.size += int64(len(line))
}

// Close closes the file.
func (l *Log) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

// Read reads a file for [prison.Timer]. The offsets of the result are those in the log.
func Read(name string) ([]prison.Moment, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, prison.ErrNotLaunched
	}
	var moments []prison.Moment
	var begins int64
	for line := range strings.Lines(string(content)) {
		var at, ms int64
		switch n, _ := fmt.Sscan(line, &at, &ms); n {
		case 1:
			begins = at
		case 2:
			moments = append(moments, prison.Moment{Offset: at, At: time.UnixMilli(ms).UTC()})
		}
	}
	for i := range moments {
		moments[i].Offset = max(moments[i].Offset-begins, 0)
	}
	return moments, err
}
