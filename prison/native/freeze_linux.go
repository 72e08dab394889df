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

// Freeze implements [prison.Freezer]. Init lets the processes go on when the connection ends, and so when this process dies.
func (r *running) Freeze(ctx context.Context) (thaw func() error, err error) {
	bounded, cancel := context.WithTimeout(ctx, freezePatience)
	defer cancel()
	c, files, err := r.ask(bounded, wire.Request{Kind: wire.KindFreeze})
	if err != nil {
		return nil, fmt.Errorf("freeze the prison: %w", err)
	}
	wire.CloseAll(files)
	return func() error {
		defer c.Close()
		c.CloseWrite()
		err := c.SetReadDeadline(time.Now().Add(freezePatience))
		if err == nil {
			if _, err = c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				err = nil
			}
		}
		return err
	}, nil
}

var _ prison.Freezer = (*running)(nil)
