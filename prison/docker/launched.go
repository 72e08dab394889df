package docker

import (
	"bytes"
	"context"
	"io"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
)

// Launched implements [prison.Backend].
func (b *Backend) Launched(ctx context.Context, s prison.Spec) (*prison.Launched, error) {
	l, err := inside.ReadLaunched(s.Dir)
	if err != nil || l == nil {
		return nil, err
	}
	if !l.Exited {
		if l, err = b.currentState(ctx, s, l); err != nil {
			return nil, err
		}
	}
	return &prison.Launched{Argv: l.Argv, Exited: l.Exited, Status: l.Status}, nil
}

// currentState asks the engine about a command that was still running according to its stored state.
func (b *Backend) currentState(ctx context.Context, s prison.Spec, l *inside.Launched) (*inside.Launched, error) {
	_, e, c, err := b.own(ctx, s)
	if err != nil {
		return nil, err
	}
	if c == nil {
		l.Exited, l.Status = true, inside.KilledStatus
		return l, nil
	}
	held := &inside.Container{Engine: e.Engine, ID: c.ID, User: userOf(s), HostDir: s.Dir}
	if inside.Runs(c) {
		return held.State(ctx)
	}
	return held.Written(ctx, l)
}

// Shown implements [prison.Backend].
func (b *Backend) Shown(_ context.Context, s prison.Spec) (io.ReadCloser, error) {
	l, err := inside.ReadLaunched(s.Dir)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, prison.ErrNotLaunched
	}
	content, err := inside.ReadLog(s.Dir)
	return io.NopCloser(bytes.NewReader(content)), err
}

// Times implements [prison.Timer].
func (b *Backend) Times(_ context.Context, s prison.Spec) ([]prison.Moment, error) {
	return inside.Times(s.Dir)
}
