package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison/egress/control"
)

// Egress is a line of [EgressName]: a connection or request of the prison, or a refused one. Its fields are those of the network's own record
// (package prison/egress/ledger).
type Egress = control.Record

// Level is the importance of an event.
type Level string

// The levels, from the least important one.
const (
	Info    Level = "info"    // what usually happens
	Notice  Level = "notice"  // what changes the user's branch, or waits for the user
	Warning Level = "warning" // what was refused or went wrong, and may need the user
	Failure Level = "error"   // what went wrong and needs the user
)

// Levels returns the levels, from the least important one.
func Levels() []Level { return []Level{Info, Notice, Warning, Failure} }

// AtLeast reports whether l is as important as least. Unknown levels are the most important ones.
func (l Level) AtLeast(least Level) bool { return rank(Levels(), l) >= rank(Levels(), least) }

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventStart      EventKind = "start"      // the airlock was started or resumed
	EventStop       EventKind = "stop"       // the airlock was stopped
	EventRun        EventKind = "run"        // a run began
	EventRunEnd     EventKind = "run-end"    // a run ended
	EventDaemon     EventKind = "daemon"     // the daemon began, or began again
	EventNetwork    EventKind = "network"    // the network process began again, or its rules changed
	EventExport     EventKind = "export"     // commits of the agent reached the quarantine
	EventLand       EventKind = "land"       // commits landed
	EventVerdict    EventKind = "verdict"    // a commit was approved or rejected, or the agent must fix it
	EventUndo       EventKind = "undo"       // a landing was undone or reverted
	EventRedo       EventKind = "redo"       // a landing was made again
	EventSync       EventKind = "sync"       // the agent got new commits of the user
	EventHold       EventKind = "hold"       // a hold began, or goes on for another reason
	EventHoldEnd    EventKind = "hold-end"   // a hold ended
	EventDenied     EventKind = "denied"     // a connection, a program or a commit was refused
	EventLimit      EventKind = "limit"      // a limit was reached
	EventCheckpoint EventKind = "checkpoint" // a checkpoint was made or restored
	EventIsolation  EventKind = "isolation"  // a check of the prison from inside failed
)

// Event is a line of [EventsName], and of the event log of an airlock.
type Event struct {
	Time    time.Time `json:"t"`
	Level   Level     `json:"level"`
	Kind    EventKind `json:"kind"`
	Session string    `json:"session"`
	Run     int       `json:"run,omitempty"` // number of the run that the event belongs to, where that is known
	Text    string    `json:"text"`          // one sentence for people; escape it
	// Data has details for programs, such as "commit", "reason", "path" or "count". Escape them.
	Data map[string]string `json:"data,omitempty"`
}

// Exec is a line of [ExecName]: one execve(2) or execveat(2) in the prison.
type Exec struct {
	Time time.Time `json:"t"`
	Seq  uint64    `json:"seq"`
	PID  int       `json:"pid"` // inside the prison
	PPID int       `json:"ppid"`
	Cwd  string    `json:"cwd"`
	Path string    `json:"path"` // the path that was asked for
	Argv []string  `json:"argv"` // at most 32 KiB, secrets are masked
	Exe  string    `json:"exe"`  // the file that ran; empty if none did
	// Exit is the exit status, 128+n after signal n, or null while the program runs or if its end was not seen.
	Exit *int `json:"exit"`
	// Millis is how long the program ran, or null like Exit.
	Millis *int64 `json:"ms"`
	// Top reports that the program is a child of the launched command's shell.
	Top bool `json:"top"`
	// Deny is the rule that refused the program, or null.
	Deny *string `json:"deny"`
	// Disputed reports that the arguments changed after they had been read, and Exe is what ran. Without Exe, the program ended too early to know.
	Disputed bool `json:"disputed"`
	// Cut reports that Argv is not complete.
	Cut bool `json:"cut"`
}

// CommitState is the state of a commit at the end of the run.
type CommitState string

// The states.
const (
	Landed  CommitState = "landed"
	Pending CommitState = "pending" // it is built and waits, on no branch
	Inner   CommitState = "inner"   // it was not exported when the run ended
)

// Commit is a line of [CommitsName]: five fields, separated by tabs. "-" stands for an object that is not known.
type Commit struct {
	State   CommitState
	Inner   gitops.OID  // in the inner repository
	Outer   gitops.OID  // in the outer repository, or empty
	Tree    gitops.OID  // of Outer
	Subject gitops.Text // may be any bytes; the file has it escaped
}

// resourcesHeader is the first line of [ResourcesName].
const resourcesHeader = "ms,cpu_ms,memory,read,written,processes"

// Sample is a line of [ResourcesName]. The values belong to all processes of the prison. -1 means that a value was not
// available.
type Sample struct {
	Millis    int64 // since the start of the run
	CPU       int64 // processor time since the start of the run, in milliseconds
	Memory    int64 // bytes in use
	Read      int64 // bytes read from disks since the start of the run
	Written   int64 // bytes written to disks since the start of the run
	Processes int64 // processes and threads
}

// lineEncoder returns an encoder that writes each value as a line of JSON.
func lineEncoder(to io.Writer) *json.Encoder {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e
}

// EncodeLines returns a file with one line of JSON for each value: an [Event], [Exec] or [Egress].
func EncodeLines[T Event | Exec | Egress](values []T) (content []byte, err error) {
	var b bytes.Buffer
	e := lineEncoder(&b)
	for i := range values {
		if err := e.Encode(&values[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// DecodeLines reads a file that [EncodeLines] wrote. A line that cannot be read is left out, and the error names the first
// one. A last line without an end is ignored, since its writer may have died.
func DecodeLines[T Event | Exec | Egress](name string, content []byte) (values []T, err error) {
	values = make([]T, 0, bytes.Count(content, []byte("\n")))
	err = EachLine(name, content, func(v T, _ []byte) { values = append(values, v) })
	return values, err
}

// EachLine calls use for each line of a file as [DecodeLines] reads it, with the bytes of the line.
func EachLine[T Event | Exec | Egress](name string, content []byte, use func(v T, line []byte)) error {
	return eachLine(name, content, func(line []byte) error {
		v, err := decodeLine[T](line)
		if err == nil {
			use(v, line)
		}
		return err
	})
}

func decodeLine[T Event | Exec | Egress](line []byte) (v T, err error) {
	if e, isExec := any(&v).(*Exec); isExec {
		scanned, ok := scanExec(line)
		if *e = scanned; ok {
			return v, nil
		}
		*e = Exec{}
	}
	err = json.Unmarshal(line, &v)
	return v, err
}

// eachLine calls read for each whole line, and returns the first error with the line's number.
func eachLine(name string, content []byte, read func(line []byte) error) (first error) {
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(content, []byte("\n"))
		if !whole {
			return first
		}
		err := errors.New("the line is too long")
		if len(line) <= maxLine {
			err = read(line)
		}
		if err != nil && first == nil {
			first = fmt.Errorf("read %s, line %d: %w", name, number, err)
		}
		content = rest
	}
}

// EncodeCommits returns the file [CommitsName].
func EncodeCommits(commits []Commit) []byte {
	var b bytes.Buffer
	for _, c := range commits {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", c.State, orDash(c.Inner), orDash(c.Outer), orDash(c.Tree), c.Subject)
	}
	return b.Bytes()
}

// DecodeCommits reads the file [CommitsName].
func DecodeCommits(content []byte) (commits []Commit, err error) {
	err = eachLine(CommitsName, content, func(line []byte) error {
		parts := strings.SplitN(string(line), "\t", 5)
		if len(parts) != 5 {
			return errors.New("a commit has five fields")
		}
		c := Commit{State: CommitState(parts[0]), Subject: gitops.Text(parts[4])}
		for i, to := range []*gitops.OID{&c.Inner, &c.Outer, &c.Tree} {
			if text := parts[i+1]; text != "-" {
				if *to, err = gitops.ParseOID(text); err != nil {
					return err
				}
			}
		}
		commits = append(commits, c)
		return nil
	})
	return commits, err
}

func orDash(id gitops.OID) string {
	if id == "" {
		return "-"
	}
	return string(id)
}

// EncodeSamples returns the file [ResourcesName].
func EncodeSamples(samples []Sample) []byte {
	b := []byte(resourcesHeader + "\n")
	for _, s := range samples {
		for i, v := range []int64{s.Millis, s.CPU, s.Memory, s.Read, s.Written, s.Processes} {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, v, 10)
		}
		b = append(b, '\n')
	}
	return b
}

// decodeSamples reads the file [ResourcesName].
func decodeSamples(content []byte) (samples []Sample, err error) {
	first := true
	err = eachLine(ResourcesName, content, func(line []byte) error {
		if first {
			if first = false; string(line) != resourcesHeader {
				return fmt.Errorf("the columns are not %s", resourcesHeader)
			}
			return nil
		}
		var s Sample
		fields := strings.Split(string(line), ",")
		to := []*int64{&s.Millis, &s.CPU, &s.Memory, &s.Read, &s.Written, &s.Processes}
		if len(fields) != len(to) {
			return fmt.Errorf("a sample has %d values", len(to))
		}
		for i, field := range fields {
			if *to[i], err = strconv.ParseInt(field, 10, 64); err != nil {
				return err
			}
		}
		samples = append(samples, s)
		return nil
	})
	return samples, err
}
