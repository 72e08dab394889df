package cmdline

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/launched"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison"
)

// ConnectTerminal gives a process a terminal inside if standard input and output are a terminal. All keys are passed on, including
// ^C, and the size follows the outer terminal. restore restores the outer terminal, with the modes that the process has changed.
func ConnectTerminal(p *prison.Process) (restore func(), err error) {
	if !ui.IsTerminal(os.Stdin) || !ui.IsTerminal(os.Stdout) {
		return func() {}, nil
	}
	in := int(os.Stdin.Fd())
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	sizes := make(chan prison.Size, 1)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-resized:
			case <-done:
				return
			}
			select {
			case sizes <- SizeOf(os.Stdout):
			case <-done:
				return
			}
		}
	}()
	shown := &ui.Modes{Out: os.Stdout}
	p.Stdout, p.Stderr = shown, nil
	p.Terminal = &prison.Terminal{Size: SizeOf(os.Stdout), Resize: sizes, Term: ui.Variable("TERM")}
	return func() {
		signal.Stop(resized)
		close(done)
		shown.Undo()
		_ = term.Restore(in, before)
	}, nil
}

// Keys passes on what the user types at a terminal, and notes which of the [launched.EndingKeys] were typed.
type Keys struct {
	io.Reader
	// First is called before such a key is passed on for the first time. May be nil.
	First func(name string)
	typed [len(launched.EndingKeys)]atomic.Bool
	last  atomic.Pointer[lastKey]
}

type lastKey struct {
	code byte
	at   time.Time
}

func (k *Keys) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	if n > 0 {
		k.last.Store(&lastKey{p[n-1], ui.Now()})
	}
	for i, key := range launched.EndingKeys {
		if bytes.IndexByte(p[:n], key.Code) >= 0 && !k.typed[i].Swap(true) && k.First != nil {
			k.First(key.Name)
		}
	}
	return n, err
}

// EndedWith is as [EndedWith], and marks the error if a key was typed whose signal the status names. A command that ends by itself
// with that status after the key counts as ended by the key, too: a shell ends so if the key has ended its command.
func (k *Keys) EndedWith(status int) error {
	for i, key := range launched.EndingKeys {
		if key.Status == status && k.typed[i].Load() {
			return typedEnd{EndedWith(status), key.Name, status}
		}
	}
	return EndedWith(status)
}

// interruptedWithin is the longest time from a key to the end of the command that counts as ended by the key.
const interruptedWithin = 10 * time.Second

// RunEndedWith is as [Keys.EndedWith], for a command that works without questions. Some agents end with status 0 after SIGINT, although
// their work is not done. If ^C or ^\ was the last key, the status is that of the key's signal.
func (k *Keys) RunEndedWith(status int) error {
	last := k.last.Load()
	if status != 0 || last == nil || ui.Now().Sub(last.at) > interruptedWithin {
		return k.EndedWith(status)
	}
	for _, key := range launched.EndingKeys {
		if key.Code == last.code {
			return typedEnd{EndedWith(key.Status), key.Name, status}
		}
	}
	return nil
}

// terminalLikeOurs returns the terminal for a launched command, with the type and size of the outer terminal if there is one.
func terminalLikeOurs() *prison.Terminal {
	t := &prison.Terminal{}
	if ui.IsTerminal(os.Stderr) {
		t.Size, t.Term = SizeOf(os.Stderr), ui.Variable("TERM")
	}
	return t
}

// SizeOf returns the size of a terminal.
func SizeOf(terminal *os.File) prison.Size {
	rows, cols := ui.TerminalSize(terminal)
	return prison.Size{Rows: uint16(rows), Cols: uint16(cols)} //nolint:gosec // a terminal's size fits, TIOCGWINSZ(2)
}
