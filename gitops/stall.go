package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// stallTick is how often it is looked whether git in a workspace still does anything.
	stallTick = 500 * time.Millisecond
	// stallTicks is after how many of them in which it did nothing it is given up.
	stallTicks = 6
	// stallLook bounds such a look.
	stallLook = 3 * time.Second
)

// patiently runs git in the workspace, and ends it when it waits for what may never come: git opens what it finds in
// the place of a file without asking whether that is one, and waits at a FIFO for as long as nobody writes to it.
func (w Workspace) patiently(ctx context.Context, p Process) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &watchedWriter{w: p.Stdout}
	if p.Stdout != nil {
		p.Stdout = out
	}
	go w.watchStall(ctx, out, cancel)
	code, err := w.Run(ctx, p)
	var stalled *Invalid
	if errors.As(context.Cause(ctx), &stalled) {
		return code, stalled
	}
	return code, err
}

// watchStall cancels when git has come to a standstill, with what it waits for if that can be found.
func (w Workspace) watchStall(ctx context.Context, out *watchedWriter, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	before, idle := "", 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := w.activity(ctx, out)
		if now == "" || now != before {
			before, idle = now, 0
			continue
		}
		if name := w.noFile(ctx); name != "" {
			cancel(&Invalid{Stalled: true, For: name, Reason: fmt.Sprintf(
				"git waits in the workspace for %s, which is no file but a FIFO, a socket or a device; it has to go", Escape(name))})
			return
		}
		if idle++; idle == stallTicks {
			// What it opened may be gone again by now.
			cancel(&Invalid{Stalled: true, Reason: "git in the workspace does nothing any more; it was ended"})
			return
		}
	}
}

// activity describes what git has done so far; empty if it is at work, or waits for us, or nobody can tell.
func (w Workspace) activity(ctx context.Context, out *watchedWriter) string {
	if out.writing.Load() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, stallLook)
	defer cancel()
	var stats bytes.Buffer
	// Only the exporter's own processes are to be seen there.
	_, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", "cat /proc/[0-9]*/stat 2>/proc/self/fd/1"},
		Stdout: &cappedWriter{w: &stats, left: lookLimit}, Stderr: &Stderr{}})
	if err != nil {
		return ""
	}
	var done strings.Builder
	for line := range strings.Lines(stats.String()) {
		process, rest, isGit := strings.Cut(line, " (git) ")
		if !isGit {
			continue
		}
		f := strings.Fields(rest) // proc_pid_stat(5) from the third field on
		if len(f) < 13 || f[0] != "S" {
			return ""
		}
		fmt.Fprintln(&done, process, f[11], f[12]) // utime, stime
	}
	if done.Len() > 0 {
		fmt.Fprintln(&done, out.written.Load())
	}
	return done.String()
}

// noFile names something that is no file where git reads files, or a link to such a thing; empty if there is nothing
// of that kind, or nobody can tell.
func (w Workspace) noFile(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, stallLook)
	defer cancel()
	var found bytes.Buffer
	argv := []string{"find", w.Dir, "(", "-path", path.Join(w.Dir, ".git") + "*", "-o", "-name", ".git*", ")",
		"(", "-type", "p", "-o", "-type", "s", "-o", "-xtype", "p", "-o", "-xtype", "c", "-o", "-xtype", "b", ")", "-print0", "-quit"}
	_, err := w.Run(ctx, Process{Argv: argv, Stdout: &cappedWriter{w: &found, left: escapeLimit}, Stderr: &Stderr{}})
	name, _, whole := strings.Cut(found.String(), "\x00")
	if err != nil || !whole {
		return ""
	}
	return strings.TrimPrefix(name, w.Dir+"/")
}

// watchedWriter tells how much was written, and whether somebody is being waited for who takes it.
type watchedWriter struct {
	w       io.Writer
	written atomic.Int64
	writing atomic.Bool
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.writing.Store(true)
	defer w.writing.Store(false)
	n, err := w.w.Write(p)
	w.written.Add(int64(n))
	return n, err
}
