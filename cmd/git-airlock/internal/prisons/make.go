package prisons

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/snapshot"
)

// Making is a prison that is being made.
type Making struct {
	Backend prison.Backend
	Spec    prison.Spec
	Report  environment.Reporter
}

// Starting is a prison whose start has begun.
type Starting struct {
	// Result waits for the end of the start, after which no goroutine of it is running. The caller must call it.
	Result  func() (prison.Isolation, error)
	running <-chan prison.Isolation
}

// Start makes the workspace's folder and starts the prison in the background.
func (b Making) Start(ctx context.Context) (Starting, error) {
	if err := b.Backend.Prepare(ctx, b.Spec); err != nil {
		return Starting{}, err
	}
	running := make(chan prison.Isolation, 1)
	b.Spec.Running = func(i prison.Isolation) { running <- i }
	result := sync.OnceValues(func() (prison.Isolation, error) { return b.Backend.Start(ctx, b.Spec) })
	go result() //nolint:errcheck // a later call returns the same error
	return Starting{result, running}, nil
}

// Runs waits until the prison can be attached to, which may be before its network is ready. It may be called once.
func (s Starting) Runs() (prison.Isolation, error) {
	ended := make(chan struct{})
	go func() {
		s.Result() //nolint:errcheck // it is called again
		close(ended)
	}()
	select {
	case i := <-s.running:
		return i, nil
	case <-ended:
		return s.Result()
	}
}

// FillBeforehand fills the workspace in a separate native prison, if possible. It does so while a container starts, which takes
// longer than the rest. It reports whether it succeeded. Otherwise Fill does all of it inside.
func (b Making) FillBeforehand(ctx context.Context, snap *snapshot.Snapshot, include []inner.UserFile) bool {
	if b.Backend.Traits(b.Spec.Runtime).Overlay {
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
	w := inner.Workspace{Dir: prison.Workspace, Run: func(ctx context.Context, p inner.Process) (int, error) {
		counted := &countedReader{Reader: p.Stdin, step: step}
		return box.Exec(ctx, prison.Process{Argv: p.Argv, Env: p.Env, Stdin: counted, Stdout: p.Stdout, Stderr: p.Stderr, Bare: true})
	}}
	err := snap.Fill(ctx, w)
	if err == nil {
		err = w.Place(ctx, include)
	}
	return errors.Join(err, box.Close())
}

// introduction writes a name and an address to git's configuration in the home, unless there is one. A link that an agent left is not followed.
const introduction = `set -C; [ -e ~/.gitconfig ] || printf '[user]\n\tname = %s\n\temail = %s\n' "$1" "$2" >~/.gitconfig`

// Introduce gives git in the running prison the agent's identity in repositories other than the inner one, such as those that tests make.
// The agent may change it. A prison whose home has no room for it works without.
func (b Making) Introduce(ctx context.Context, ghost identity.Ghost) error {
	box, err := b.Backend.Attach(ctx, b.Spec)
	if err != nil {
		return err
	}
	_, err = box.Exec(ctx, prison.Process{Argv: []string{"sh", "-c", introduction, "sh", ghost.Name, ghost.Mail}, Stdout: io.Discard, Stderr: io.Discard, Bare: true})
	return errors.Join(err, box.Close())
}

// countedReader reports the amount of data that fills the workspace as progress, in MiB.
type countedReader struct {
	io.Reader
	step func(what string, done, all int)
	read int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	c.step("filling the workspace, MiB", int(c.read>>20), 0)
	return n, err
}
