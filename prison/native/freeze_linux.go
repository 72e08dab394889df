package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

const (
	// freezePatience is how long a prison may take to freeze, and to go on. Init gives up earlier.
	freezePatience = 20 * time.Second
	// interruptedPatience is how long init may take to answer a caller that must end. A stopped init does not answer.
	interruptedPatience = time.Second
)

// frozen is the connection on which init has frozen all other processes. Init lets them go on when the connection ends, and so also when
// this process dies, unless Hold was called.
type frozen struct {
	conn wire.Conn
	ctx  context.Context // the caller's
}

// Freeze implements [prison.Freezer].
func (r *running) Freeze(ctx context.Context) (prison.Frozen, error) {
	bounded, cancel := context.WithTimeout(ctx, freezePatience)
	defer cancel()
	c, files, err := r.ask(bounded, wire.Request{Kind: wire.KindFreeze})
	if err != nil {
		return nil, fmt.Errorf("freeze the prison: %w", err)
	}
	wire.CloseAll(files)
	return frozen{c, ctx}, nil
}

// Hold implements [prison.Frozen].
func (f frozen) Hold() error {
	answer, err := f.ask(wire.Hold)
	if err != nil {
		return fmt.Errorf("keep the prison frozen: %w", err)
	}
	if answer == wire.Moved {
		return prison.ErrMoved
	}
	return nil
}

// Thaw implements [prison.Frozen].
func (f frozen) Thaw() error {
	defer f.conn.Close()
	answer, err := f.ask(wire.Thaw) // init closes the connection afterwards
	if answer == wire.Moved {
		return prison.ErrMoved
	}
	if err == nil || errors.Is(err, prison.ErrNotRunning) {
		return nil // nothing is frozen any more
	}
	return fmt.Errorf("thaw the prison: %w", err)
}

// Leave implements [prison.Frozen].
func (f frozen) Leave() error { return f.conn.Close() }

// ask sends a byte to init and reads the answer.
func (f frozen) ask(b byte) (answer byte, err error) {
	if err := f.conn.SetDeadline(time.Now().Add(freezePatience)); err != nil {
		return 0, err
	}
	defer context.AfterFunc(f.ctx, func() { f.conn.SetDeadline(time.Now().Add(interruptedPatience)) })()
	c := []byte{b}
	if _, err = f.conn.Write(c); err == nil {
		c[0] = 0
		_, err = f.conn.Read(c)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = cmp.Or(f.ctx.Err(), err)
	}
	return c[0], lost(err)
}

var _ prison.Freezer = (*running)(nil)
