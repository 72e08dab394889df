package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

const (
	// timesName is a file beside the log of the launched command, with two numbers in each line: the bytes of output so far,
	// and the time in milliseconds at which the next ones came. Without a time, the log begins there.
	timesName = logName + ".times"
	// timesLimit bounds the bytes of that file.
	timesLimit = 2 << 20
	// timesPause bounds how often a time is noted.
	timesPause = 20 * time.Millisecond
)

// logTimes notes when output came.
type logTimes struct {
	file  *os.File
	total int64 // bytes of output
	size  int64 // of the file
	last  time.Time
}

func newLogTimes(name string) *logTimes {
	t := &logTimes{}
	if f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
		t.file = f
	}
	return t
}

// add notes n more bytes of output.
func (t *logTimes) add(n int, now time.Time) {
	if now.Sub(t.last) >= timesPause {
		t.last = now
		t.write(fmt.Sprintf("%d %d\n", t.total, now.UnixMilli()))
	}
	t.total += int64(n)
}

// begins notes that the log has only its last bytes from now on.
func (t *logTimes) begins(kept int64) { t.write(fmt.Sprintf("%d\n", t.total-kept)) }

func (t *logTimes) write(line string) {
	if t.file != nil && t.size < timesLimit {
		n, _ := t.file.WriteString(line)
		t.size += int64(n)
	}
}

func (t *logTimes) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// Times implements [prison.Timer].
func (backend) Times(_ context.Context, s prison.Spec) ([]prison.Moment, error) {
	content, err := os.ReadFile(filepath.Join(s.Dir, timesName))
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
