package prisons

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/snapshot"
)

// Making is a prison that is being made.
type Making struct {
	Backend prison.Backend
	Spec    prison.Spec
	Report  environment.Reporter
}

// overlaid reports whether the prison sees the workspace through an overlay.
func (b Making) overlaid() bool { return b.Backend.Traits(b.Spec.Runtime).Overlay }

// misled reports whether the prison's variables (PATH, GIT_DIR) could mislead the programs that fill its workspace. Then the
// workspace is filled before the prison starts, because nothing outside may change it under the overlay of a running prison.
func (b Making) misled() bool { return b.overlaid() && len(b.Spec.Env) > 0 }

// Start makes the workspace's folder and starts the prison in the background. result waits for the prison. After wait no goroutine
// of the start is running.
func (b Making) Start(ctx context.Context) (result func() (prison.Isolation, error), wait func(), err error) {
	if err := b.Backend.Prepare(ctx, b.Spec); err != nil {
		return nil, nil, err
	}
	result = func() (prison.Isolation, error) { return b.Backend.Start(ctx, b.Spec) }
	if b.misled() {
		return result, func() {}, nil
	}
	result = sync.OnceValues(result)
	go result()                             //nolint:errcheck // a later call returns the same error
	return result, func() { result() }, nil //nolint:errcheck // result has returned the error
}

// FillBeforehand fills the workspace in a separate native prison, if possible. It does so while a container starts, which takes
// longer than the rest, or if variables could mislead. It reports whether it succeeded. Otherwise Fill does all of it inside.
func (b Making) FillBeforehand(ctx context.Context, snap *snapshot.Snapshot, include []inner.UserFile) bool {
	if b.overlaid() && !b.misled() {
		return false
	}
	spec := b.Spec
	spec.Image, spec.Runtime, spec.Env, spec.Network = "", "", nil, prison.NetworkNone
	box, err := Plain().Open(ctx, spec)
	if err != nil {
		return false
	}
	return b.fillIn(ctx, box, snap, include) == nil
}

// Fill fills the workspace in the running prison.
func (b Making) Fill(ctx context.Context, snap *snapshot.Snapshot, include []inner.UserFile) error {
	box, err := b.Backend.Attach(ctx, b.Spec)
	if err != nil {
		return err
	}
	return b.fillIn(ctx, box, snap, include)
}

func (b Making) fillIn(ctx context.Context, box prison.Prison, snap *snapshot.Snapshot, include []inner.UserFile) error {
	step, end := b.Report.Begin("filling the workspace")
	defer end()
	w := WorkspaceIn(box)
	run := w.Run
	w.Run = func(ctx context.Context, p inner.Process) (int, error) {
		p.Stdin = &countedReader{Reader: p.Stdin, step: step, what: "filling the workspace, MiB"}
		return run(ctx, p)
	}
	err := snap.Fill(ctx, w)
	if err == nil {
		err = w.Place(ctx, include)
	}
	return errors.Join(err, box.Close())
}

// countedReader reports the amount of read data as progress, in MiB.
type countedReader struct {
	io.Reader
	step func(what string, done, all int)
	what string
	read int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	c.step(c.what, int(c.read>>20), 0)
	return n, err
}
