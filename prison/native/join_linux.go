package native

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// Join implements [prison.Prison].
func (r *running) Join(ctx context.Context, p prison.Process) error {
	c, ends, err := r.ask(ctx, request{Kind: kindJoin})
	if err != nil {
		return err
	}
	defer c.Close()
	defer closeAll(ends)
	if len(ends) != 2 {
		return errors.New("the prison gave too few descriptors")
	}
	shown, master := ends[0], ends[1]
	done := make(chan struct{})
	defer close(done)
	defer context.AfterFunc(ctx, func() { shown.SetReadDeadline(time.Now()) })()
	if p.Stdin != nil {
		go io.Copy(master, p.Stdin) //nolint:errcheck // the command may end before its input
	}
	if p.Terminal != nil {
		follow(master, *p.Terminal, done)
	}
	out := p.Stdout
	if out == nil {
		out = io.Discard
	}
	_, err = io.Copy(out, shown)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// follow gives a terminal the size of the caller's. It is changed in any case, since that is what makes programs draw
// everything again.
func follow(master *os.File, t prison.Terminal, done <-chan struct{}) {
	if t.Size.Rows > 1 {
		setSize(master, prison.Size{Rows: t.Size.Rows - 1, Cols: t.Size.Cols})
	}
	setSize(master, t.Size)
	go func() {
		for {
			select {
			case size, ok := <-t.Resize:
				if !ok {
					return
				}
				setSize(master, size)
			case <-done:
				return
			}
		}
	}()
}

// Shown implements [prison.Backend].
func (backend) Shown(_ context.Context, s prison.Spec) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(s.Dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, prison.ErrNotLaunched
	}
	return f, err
}
