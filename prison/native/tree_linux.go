package native

import (
	"context"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

// touchedPatience is how long init may take to answer which folders have changed.
const touchedPatience = 5 * time.Second

// watchedTree is the connection on which init reports changed folders of the workspace.
type watchedTree struct{ wire.Conn }

// WatchTree implements [prison.TreeWatcher].
func (r *running) WatchTree(ctx context.Context) (prison.Tree, error) {
	c, files, err := r.ask(ctx, wire.Request{Kind: wire.KindTree})
	if err != nil {
		return nil, fmt.Errorf("watch the folders of the workspace: %w", err)
	}
	wire.CloseAll(files)
	return watchedTree{c}, nil
}

// Touched implements [prison.Tree].
func (t watchedTree) Touched() ([]string, error) {
	if err := t.SetDeadline(time.Now().Add(touchedPatience)); err != nil {
		return nil, err
	}
	if _, err := t.Write([]byte{0}); err != nil {
		return nil, lost(err)
	}
	var a wire.Reply
	files, err := t.Recv(&a)
	wire.CloseAll(files)
	if err != nil {
		return nil, lost(err)
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	return wire.UnpackAll(a.Paths), nil
}
