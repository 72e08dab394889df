package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

// freezePatience is how long a prison may take to freeze, and to go on. Init gives up earlier.
const freezePatience = 20 * time.Second

// frozen is the connection on which init has frozen all other processes. Init lets them go on when the connection ends, and so also when
// this process dies, unless Hold was called.
type frozen struct{ conn wire.Conn }

// Freeze implements [prison.Freezer].
func (r *running) Freeze(ctx context.Context) (prison.Frozen, error) {
	bounded, cancel := context.WithTimeout(ctx, freezePatience)
	defer cancel()
	c, files, err := r.ask(bounded, wire.Request{Kind: wire.KindFreeze})
	if err != nil {
		return nil, fmt.Errorf("freeze the prison: %w", err)
	}
	wire.CloseAll(files)
	return frozen{c}, nil
}

// Hold implements [prison.Frozen].
func (f frozen) Hold() error {
	if err := f.send(wire.Hold); err != nil {
		return fmt.Errorf("keep the prison frozen: %w", err)
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(f.conn, answer); err != nil {
		return fmt.Errorf("keep the prison frozen: %w", lost(err))
	}
	if answer[0] == wire.Moved {
		return prison.ErrMoved
	}
	return nil
}

// Thaw implements [prison.Frozen].
func (f frozen) Thaw() error {
	defer f.conn.Close()
	answer := make([]byte, 1)
	err := f.send(wire.Thaw)
	if err == nil {
		_, err = f.conn.Read(answer) // init closes the connection afterwards
	}
	if answer[0] == wire.Moved {
		return prison.ErrMoved
	}
	if err = lost(err); err == nil || errors.Is(err, prison.ErrNotRunning) {
		return nil // nothing is frozen any more
	}
	return fmt.Errorf("thaw the prison: %w", err)
}

// Leave implements [prison.Frozen].
func (f frozen) Leave() error { return f.conn.Close() }

func (f frozen) send(b byte) error {
	if err := f.conn.SetDeadline(time.Now().Add(freezePatience)); err != nil {
		return err
	}
	_, err := f.conn.Write([]byte{b})
	return lost(err)
}

var _ prison.Freezer = (*running)(nil)
