package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/record"
)

// partKept bounds the bytes that are kept of a run's output: so many of the beginning, and between one and two times as many of the end.
const partKept = 1 << 20

// spool keeps the beginning and the end of an output in files: name, name.1 and name.2.
type spool struct {
	mutex sync.Mutex
	name  string
	file  *os.File // the present one
	size  int64    // of file
	head  bool     // file is the beginning
	left  int64    // bytes that were left out
	old   int64    // size of name.1
	fail  error
}

// Write implements [io.Writer]. It never fails: a full disk must not end the command.
func (s *spool) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for rest := p; len(rest) > 0 && s.fail == nil; {
		if s.file == nil {
			s.head = true
			s.next(s.name)
		}
		if s.size >= partKept {
			s.turn()
			continue
		}
		n := min(int64(len(rest)), partKept-s.size)
		if _, err := s.file.Write(rest[:n]); err != nil {
			s.fail = err
		}
		s.size, rest = s.size+n, rest[n:]
	}
	return len(p), nil
}

// turn goes on in another file. A full tail becomes the older one.
func (s *spool) turn() {
	if !s.head {
		s.left += s.old
		s.old = s.size
		_ = os.Rename(s.name+".2", s.name+".1")
	}
	s.head = false
	s.next(s.name + ".2")
	_ = os.WriteFile(s.name+leftSuffix, fmt.Append(nil, s.left), 0o600)
}

func (s *spool) next(name string) {
	if s.file != nil {
		s.file.Close()
	}
	s.size = 0
	s.file, s.fail = os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

// readSpool returns what was kept of an output, and the number of bytes that were left out.
func readSpool(name string) (content []byte, left int64, err error) {
	if content, err = os.ReadFile(name); err != nil {
		return nil, 0, err
	}
	if left = readLeft(name); left > 0 {
		content = append(content, fmt.Sprintf("\n[%d bytes are left out]\n", left)...)
	}
	for _, part := range []string{".1", ".2"} {
		if more, err := os.ReadFile(name + part); err == nil {
			content = append(content, more...)
		}
	}
	return content, left, nil
}

// leftSuffix is the end of the name of a file with the number of bytes that were left out.
const leftSuffix = ".left"

func readLeft(name string) (left int64) {
	if text, err := os.ReadFile(name + leftSuffix); err == nil {
		_, _ = fmt.Sscan(string(text), &left)
	}
	return left
}

// Keep also stores the output of a process for the record. If a is nil, it does nothing.
func (a *Active) Keep(p *prison.Process) {
	if a == nil {
		return
	}
	dir := a.keeper.folder(a.slot)
	if p.Terminal != nil {
		p.Stdout = io.MultiWriter(p.Stdout, newTimed(dir, p.Terminal.Size, a.keeper.Now))
		return
	}
	p.Stdout = io.MultiWriter(p.Stdout, &spool{name: filepath.Join(dir, record.StdoutName)})
	p.Stderr = io.MultiWriter(p.Stderr, &spool{name: filepath.Join(dir, record.StderrName)})
}

// output adds the output of the command.
func (g *gathering) output(ctx context.Context) error {
	for name, read := range g.spooled {
		switch o := read(); {
		case errors.Is(o.err, fs.ErrNotExist):
			g.absent[name] = "the command wrote nothing there"
		case o.err != nil:
			return o.err
		default:
			g.keep(name, o)
		}
	}
	if g.Manifest.Kind == record.Launched && g.result.Failure == "" { // the terminal is that of the last command that was started
		return g.shown(ctx)
	}
	return g.terminal()
}

// spooled is an output of a command, with secrets masked.
type spooled struct {
	content []byte
	lines   int   // that are masked
	left    int64 // bytes that were left out
	err     error
}

// readOutputs begins to read the outputs of the command. Masking their secrets takes as long as the programs of a run, and needs nothing of them.
func (g *gathering) readOutputs() {
	g.spooled = map[string]func() spooled{}
	for _, name := range []string{record.StdoutName, record.StderrName} {
		read := sync.OnceValue(func() spooled {
			content, left, err := readSpool(filepath.Join(g.folder(g.slot), name))
			content, lines := maskedText(content, g.values)
			return spooled{content, lines, left, err}
		})
		go read()
		g.spooled[name] = read
	}
}

func (g *gathering) keep(name string, o spooled) {
	about := record.File{Cut: o.left}
	if o.lines > 0 {
		about.Note = fmt.Sprintf("%d lines are masked", o.lines)
	}
	g.put(name, o.content, about)
}

// shown adds the output of the launched command's terminal.
func (g *gathering) shown(ctx context.Context) error {
	for _, name := range []string{record.StdoutName, record.StderrName} {
		g.absent[name] = "the command had a terminal"
	}
	g.absent[record.TerminalName] = "the terminal was not recorded"
	log, err := g.Prisons.Shown(ctx, g.Record)
	if errors.Is(err, prison.ErrNotLaunched) {
		return nil
	}
	if err != nil {
		g.absent[record.TerminalName] = "it cannot be read: " + gitops.Text(err.Error()).String()
		return nil //nolint:nilerr // the container may be gone
	}
	defer log.Close()
	content, err := io.ReadAll(io.LimitReader(log, record.MaxFile))
	if err != nil {
		return err
	}
	left, _ := io.Copy(io.Discard, io.LimitReader(log, maxShown)) // a lower bound if it fails
	if moments := g.moments(ctx); len(moments) > 0 {
		return g.cast(record.CastHeader{Width: defaultCols, Height: defaultRows, Timestamp: g.Manifest.Started.Unix()}, timedOutput(content, moments, g.Manifest.Started), left)
	}
	g.absent[record.TerminalName] = "the times of the output are not known; " + record.StdoutName + " has it"
	content, lines := maskedText(content, g.values)
	g.keep(record.StdoutName, spooled{content: content, lines: lines, left: left})
	return nil
}

// maxShown bounds the bytes of a terminal's output that are read only to count them.
const maxShown = 1 << 30

// The size of a launched command's terminal, as far as the record knows it: "visit --attach" changes it.
const defaultCols, defaultRows = 80, 24

// moments returns when the output of the launched command came, or nothing if that is not known.
func (g *gathering) moments(ctx context.Context) []prison.Moment {
	timer, ok := g.Prisons.Backend(g.Record).(prison.Timer)
	if !ok {
		return nil
	}
	moments, err := timer.Times(ctx, g.Prisons.Spec(g.Record))
	if err != nil {
		return nil
	}
	return moments
}

func timedOutput(content []byte, moments []prison.Moment, begun time.Time) (events []record.CastEvent) {
	var rest []byte
	for i, m := range moments {
		from, to := min(m.Offset, int64(len(content))), int64(len(content))
		if i+1 < len(moments) {
			to = min(max(moments[i+1].Offset, from), to)
		}
		if from == to {
			continue
		}
		var more []record.CastEvent
		more, rest = castEvents(max(m.At.Sub(begun), 0), append(rest, content[from:to]...))
		events = append(events, more...)
	}
	return events
}
