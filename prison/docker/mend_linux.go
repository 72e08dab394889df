package docker

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

const (
	// endPatience is how long a keeper may take to end before it is killed.
	endPatience = 5 * time.Second
	// firstPause and lastPause bound the time between two attempts to connect a network again.
	firstPause, lastPause = 100 * time.Millisecond, 10 * time.Second
)

// Mend implements [prison.Mender]: it starts another keeper when the network's keeper has ended. No packet leaves meanwhile. The
// interface inside, its addresses and its routes stay.
func (b *Backend) Mend(ctx context.Context, s prison.Spec, mended func()) {
	if s.Network == prison.NetworkNone {
		return
	}
	o := networkOrder{Spec: s}
	another := false // the network may have another keeper than at the last call of mended
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		if o.watch(ctx, func() {
			if another {
				mended()
			}
		}) {
			pause = firstPause
		}
		if _, err := os.Lstat(o.path(networkStateName)); err != nil {
			pause = lastPause // the network has ended, or a start is about to connect it
		} else if box, err := b.Attach(ctx, s); err == nil {
			box.Close() // Attach has connected the network, if that is possible, or another command has
			another = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Supply implements [prison.Mender].
func (b *Backend) Supply(_ context.Context, s prison.Spec) error {
	o := networkOrder{Spec: s}
	c, err := wire.Dial(o.path(networkFolder))
	if err != nil {
		return prison.ErrNotRunning
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(dialect.KillPatience))
	var a networkAnswer
	if err = c.Send(keeperMessage{Secrets: s.Secrets}); err == nil {
		_, err = c.Recv(&a)
	}
	return errors.Join(err, a.err())
}

// watch calls watching when it watches the keeper of a network, and returns when that keeper has ended. It returns false if there is none.
func (o networkOrder) watch(ctx context.Context, watching func()) bool {
	c, err := wire.Dial(o.path(networkFolder))
	if err != nil {
		return false
	}
	defer c.Close()
	if c.Send(keeperMessage{Watch: true}) != nil {
		return true
	}
	watching()
	select {
	case <-c.Gone():
	case <-ctx.Done():
	}
	return true
}
