package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// detachKey is ^], as for telnet(1).
const detachKey = 0x1d

// join connects our terminal to that of the launched command until it ends, whose status is returned, or until
// somebody types ^].
func (a *app) join(ctx context.Context, r airlock.Record) error {
	box, err := a.attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if a.dry {
		ui.Say(a.message, "would join the terminal of the launched command of %s", r.ID)
		return nil
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		ui.Say(a.message, "^] detaches")
	}
	p := prison.Process{Stdin: os.Stdin, Stdout: os.Stdout}
	restore, err := connectTerminal(&p)
	if err != nil {
		return err
	}
	joined, detach := context.WithCancel(ctx)
	defer detach()
	keys := &detaching{Reader: os.Stdin, detach: detach}
	if p.Terminal != nil {
		p.Stdin = keys
	}
	err = box.Join(joined, p)
	restore()
	switch {
	case keys.detached.Load():
		ui.Say(a.message, "detached; the command goes on")
		return nil
	case err != nil && !errors.Is(err, prison.ErrNotLaunched):
		return err
	}
	return a.afterwards(ctx, r)
}

// afterwards says how the command fares that was joined.
func (a *app) afterwards(ctx context.Context, r airlock.Record) error {
	state, err := a.launched(ctx, r)
	switch {
	case err != nil:
		return err
	case state == nil:
		return notLaunched()
	case state.Exit == nil:
		return &hinted{errors.New("this terminal is too far behind the command's"), []string{"git airlock visit --attach"}}
	case *state.Exit != 0:
		return childStatus(*state.Exit)
	}
	return nil
}

func notLaunched() error {
	return &hinted{errors.New("no command was launched here"), []string{"git airlock start -- <command>"}}
}

// detaching reads what is typed up to the key that detaches.
type detaching struct {
	io.Reader
	detach   func()
	detached atomic.Bool
}

func (d *detaching) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	i := bytes.IndexByte(p[:n], detachKey)
	if i < 0 {
		return n, err
	}
	d.detached.Store(true)
	d.detach()
	return i, io.EOF
}

// showLog prints what the launched command showed last, as plain text: on a terminal it could be anything.
func (a *app) showLog(ctx context.Context, r airlock.Record) error {
	spec, err := a.spec(r)
	if err != nil {
		return err
	}
	shown, err := a.backend(r).Shown(ctx, spec)
	if errors.Is(err, prison.ErrNotLaunched) {
		return notLaunched()
	}
	if err != nil {
		return err
	}
	defer shown.Close()
	const atMost = 4 << 20
	content, err := io.ReadAll(io.LimitReader(shown, atMost))
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.out, ui.PlainText(string(content)))
	return err
}
