package checking

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// tailSize is how many bytes of the end of the output are kept.
	tailSize = 64 << 10
	// shownSize is how many bytes of output wait for each other, so that a check with short lines does not wait for a write of each line.
	shownSize = 32 << 10
	// shownTime is how long output waits for more.
	shownTime = 50 * time.Millisecond
	// logName is the file in the host state with the last output of the newest check.
	logName = "check.log"
)

// output escapes the text of a check line by line, passes it on, and keeps the last part of it. A reader of the output that has gone does not
// change the result of the check.
type output struct {
	words.LineWriter
	to   io.Writer // may be nil
	tail []byte

	mutex   sync.Mutex // the timer passes lines on, too
	waiting []byte     // lines that to does not have yet
	timer   *time.Timer
}

func newOutput(to io.Writer) *output {
	o := &output{to: to}
	o.Each = o.show
	return o
}

func (o *output) show(line string) {
	begin := len(o.tail)
	for cell := range strings.SplitSeq(line, "\t") {
		o.tail = append(append(o.tail, gitops.Text(cell).String()...), '\t')
	}
	o.tail[len(o.tail)-1] = '\n'
	if o.to != nil {
		o.pass(o.tail[begin:])
	}
	if len(o.tail) > 2*tailSize { // at twice the size, so that the tail is not copied for each line
		o.tail = append([]byte(nil), o.tail[len(o.tail)-tailSize:]...)
	}
}

// pass passes a line on, together with those that follow soon.
func (o *output) pass(line []byte) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.waiting = append(o.waiting, line...); len(o.waiting) >= shownSize {
		o.write()
	} else if o.timer == nil {
		o.timer = time.AfterFunc(shownTime, func() {
			o.mutex.Lock()
			defer o.mutex.Unlock()
			o.write()
		})
	}
}

// write writes the lines that wait. The caller holds the mutex.
func (o *output) write() {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	if len(o.waiting) > 0 {
		o.to.Write(o.waiting) //nolint:errcheck // see output
		o.waiting = o.waiting[:0]
	}
}

// Flush passes on all lines, and a last line without an end.
func (o *output) Flush() {
	o.LineWriter.Flush()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.write()
}

// logged is the first line of the log. It identifies the check whose output the other lines are.
type logged struct {
	Tree    gitops.OID `json:"tree"`
	Command string     `json:"command_sha256"`
	System  string     `json:"system"`
	At      time.Time  `json:"at"`
}

// logFile returns the file with the last output of the newest check of an airlock.
func logFile(store airlock.Store, id string) string { return filepath.Join(store.Dir(id), logName) }

// writeLog writes the last output into the log of the airlock. A check without an airlock has no log.
func (j job) writeLog(done checks.Result, tail []byte) error {
	if j.record.ID == airlock.NoID {
		return nil
	}
	head, err := json.Marshal(logged{j.tree, done.Command, done.System, done.At.UTC()})
	if err != nil {
		return err
	}
	if cut := len(tail) - tailSize; cut > 0 {
		tail = tail[cut:]
	}
	return durable.WriteFile(logFile(j.Prisons.Store, j.record.ID), append(append(head, '\n'), tail...), 0o600)
}

// Log returns the last output of a check of an airlock, escaped. It is empty if the log has the output of another check.
func Log(store airlock.Store, id string, of checks.Result) (text string, err error) {
	content, err := os.ReadFile(logFile(store, id))
	if err != nil {
		return "", gitops.Unless(err, fs.ErrNotExist)
	}
	head, rest, _ := bytes.Cut(content, []byte("\n"))
	var l logged
	if err := json.Unmarshal(head, &l); err != nil {
		return "", errors.Join(errors.New("read "+logName), err)
	}
	if l.Tree != of.Tree || l.Command != of.Command || l.System != of.System || l.At.Unix() != of.At.Unix() {
		return "", nil
	}
	return string(rest), nil
}
