// Package moments notes when the output of a launched command came, in a file beside the log of that output.
//
// Each line of the file has two numbers: the bytes of output so far, and the time in milliseconds at which the next ones came. Without a
// time, the log begins there. The times are the host's, and only the amount of output is the agent's.
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
	// limit bounds the bytes of the file.
	limit = 2 << 20
	// pause bounds how often a time is noted.
	pause = 20 * time.Millisecond
)

// Log notes when output came. It notes nothing more once it cannot write its file.
type Log struct {
	file  *os.File
	total int64 // bytes of output
	size  int64 // of the file
	last  time.Time
}

// New makes a new file.
func New(name string) *Log {
	l := &Log{}
	if f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
		l.file = f
	}
	return l
}

// Add notes n more bytes of output.
func (l *Log) Add(n int, now time.Time) {
	if now.Sub(l.last) >= pause {
		l.last = now
		l.write(fmt.Sprintf("%d %d\n", l.total, now.UnixMilli()))
	}
	l.total += int64(n)
}

// Begins notes that the log has only its last bytes from now on.
func (l *Log) Begins(kept int64) { l.write(fmt.Sprintf("%d\n", l.total-kept)) }

func (l *Log) write(line string) {
	if l.file != nil && l.size < limit {
		n, _ := l.file.WriteString(line)
		l.size += int64(n)
	}
}

// Close closes the file.
func (l *Log) Close() {
	if l.file != nil {
		l.file.Close()
	}
}

// Read reads the file for [prison.Timer].
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
