package inner

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

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ticks"
)

const (
	// stallTick is the interval for checking whether git in a workspace is still active.
	stallTick = 500 * time.Millisecond
	// stallTicks is the number of idle intervals after which git is ended.
	stallTicks = 6
	// stallLook limits the time of such a check.
	stallLook = 3 * time.Second
	// nameLimit limits the length in bytes of a path in a message.
	nameLimit = 4096
)

// runUnlessIdle runs git in the workspace, and ends it if it waits for something that may never come. Git opens a path without checking that it is
// a regular file. If the path is a FIFO, git waits until somebody writes to it.
func (w Workspace) runUnlessIdle(ctx context.Context, p Process) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &watchedWriter{w: p.Stdout}
	if p.Stdout != nil {
		p.Stdout = out
	}
	go w.watchStall(ctx, out, cancel)
	code, err := w.Run(ctx, p)
	if stalled, ok := errors.AsType[*Invalid](context.Cause(ctx)); ok {
		return code, stalled
	}
	return code, err
}

// watchStall cancels when git is idle, with the path for which git waits if that can be found.
func (w Workspace) watchStall(ctx context.Context, out *watchedWriter, cancel context.CancelCauseFunc) {
	before, idle := "", 0
	for range ticks.Each(ctx.Done(), stallTick) {
		now := w.activity(ctx, out)
		if now == "" || now != before {
			before, idle = now, 0
			continue
		}
		if waits := w.Waits(ctx); waits != nil {
			cancel(waits)
			return
		}
		if idle++; idle == stallTicks {
			// The path may have been removed again by now.
			cancel(&Invalid{Stalled: true, Reason: "git in the workspace does nothing any more; it was ended"})
			return
		}
	}
}

// activity describes what git has done so far. It is empty if git is working, if git waits for us, or if the
// activity is unknown.
func (w Workspace) activity(ctx context.Context, out *watchedWriter) string {
	if out.writing.Load() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, stallLook)
	defer cancel()
	var stats bytes.Buffer
	// Only the exporter's own processes are visible there.
	_, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", "cat /proc/[0-9]*/stat 2>/proc/self/fd/1"},
		Stdout: gitops.CapOutput(&stats, lookLimit), Stderr: io.Discard})
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

// Waits looks for a FIFO, a socket or a device in the place of a file that git reads. Git may wait for it. The result is nil if there is none, or if
// the workspace does not answer in time.
func (w Workspace) Waits(ctx context.Context) *Invalid {
	name := w.noFile(ctx)
	if name == "" {
		return nil
	}
	return &Invalid{Stalled: true, For: name, Reason: fmt.Sprintf(
		"git waits in the workspace for %s, which is not a file but a FIFO, a socket or a device; remove it", gitops.Text(name))}
}

// noFile returns a path where git reads files and that is neither a regular file nor a link to one. It is empty if
// there is none, or if that is unknown.
func (w Workspace) noFile(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, stallLook)
	defer cancel()
	var found bytes.Buffer
	argv := []string{"find", w.Dir, "(", "-path", path.Join(w.Dir, ".git") + "*", "-o", "-name", ".git*", ")",
		"(", "-type", "p", "-o", "-type", "s", "-o", "-xtype", "p", "-o", "-xtype", "c", "-o", "-xtype", "b", ")", "-print0", "-quit"}
	_, err := w.Run(ctx, Process{Argv: argv, Stdout: gitops.CapOutput(&found, nameLimit), Stderr: io.Discard})
	name, _, whole := strings.Cut(found.String(), "\x00")
	if err != nil || !whole {
		return ""
	}
	return strings.TrimPrefix(name, w.Dir+"/")
}

// watchedWriter records how much was written, and whether a write is waiting for its reader.
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
