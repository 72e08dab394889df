package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// launched is what the host remembers of a launched command.
type launched struct {
	Argv   []string `json:"argv"`
	Exec   string   `json:"exec"` // the engine's id for it
	Exited bool     `json:"exited"`
	Status int      `json:"status"`
}

// statusFile is where the command's status is written inside. It is the agent's word, like the status itself.
const statusFile = statusFolder + "/status"

// Launch implements [prison.Prison].
func (r *running) Launch(ctx context.Context, p prison.Process) error {
	if r.dir == "" {
		return errors.New("a prison that ends with its caller launches nothing")
	}
	if err := r.lookUp(ctx, p); err != nil {
		return err
	}
	old, err := r.state(ctx)
	if err != nil {
		return err
	}
	if old != nil && !old.Exited {
		return errors.New("a launched command runs already")
	}
	if err := awaitKeeper(ctx, r.dir); err != nil { // what it writes about the last command comes before
		return err
	}
	t := prison.Terminal{Size: prison.Size{Rows: 24, Cols: 80}}
	if p.Terminal != nil {
		t.Term = p.Terminal.Term
		if p.Terminal.Size != (prison.Size{}) {
			t.Size = p.Terminal.Size
		}
	}
	return r.startKeeper(ctx, prison.Process{Argv: p.Argv, Env: p.Env, Dir: p.Dir, Terminal: &t})
}

// lookUpPatience is how long it may take to look a command up, in folders where the agent can leave a pipe.
const lookUpPatience = 20 * time.Second

// lookUp sees that a command could be started.
func (r *running) lookUp(ctx context.Context, p prison.Process) error {
	if len(p.Argv) == 0 {
		return errors.New("empty command")
	}
	p.Stdin, p.Stdout, p.Stderr, p.Terminal = nil, nil, nil, nil
	bounded, cancel := context.WithTimeout(ctx, lookUpPatience)
	defer cancel()
	_, err := r.runScript(bounded, p, modeCheck)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("look %q up: no answer in %v", p.Argv[0], lookUpPatience)
	}
	return err
}

// state tells of the launched command of a running container; nil if there was none.
func (r *running) state(ctx context.Context) (*launched, error) {
	l, err := readLaunched(r.dir)
	if l == nil || err != nil || l.Exited {
		return l, err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	i, err := r.ContainerExecInspect(bounded, l.Exec)
	switch {
	case gone(err): // the engine forgets after a while
		return r.written(ctx, l)
	case err != nil:
		return nil, r.failed(ctx, "ask for the launched command", err)
	case i.Running:
		return l, nil
	}
	l.Exited, l.Status = true, i.ExitCode
	return l, hostfile.Write(filepath.Join(r.dir, commandName), l)
}

// written completes the state of a command that has ended by what it left in its file.
func (r *running) written(ctx context.Context, l *launched) (*launched, error) {
	l.Exited, l.Status = true, killedStatus
	content, err := r.get(ctx, r.id, statusFile)
	if err != nil && !gone(err) && !errors.Is(err, errNotSmall) {
		return nil, r.failed(ctx, "read the launched command's status", err)
	}
	if status, err := strconv.Atoi(strings.TrimSpace(content)); err == nil && status >= 0 && status <= 255 {
		l.Status = status
	}
	return l, hostfile.Write(filepath.Join(r.dir, commandName), l)
}

func readLaunched(dir string) (*launched, error) {
	var l launched
	err := hostfile.Read(filepath.Join(dir, commandName), &l)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// Launched implements [prison.Backend].
func (b *Backend) Launched(ctx context.Context, s prison.Spec) (*prison.Launched, error) {
	l, err := readLaunched(s.Dir)
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

// currentState asks the engine about a command that was running when it was last heard of.
func (b *Backend) currentState(ctx context.Context, s prison.Spec, l *launched) (*launched, error) {
	r, err := readRecord(s.Dir)
	if err != nil {
		return nil, err
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return nil, err
	}
	c, err := e.find(ctx, r)
	if err != nil {
		return nil, err
	}
	switch {
	case c == nil:
		l.Exited, l.Status = true, killedStatus
		return l, nil
	case runs(c):
		return (&running{engine: e, id: c.ID, user: userOf(s), dir: s.Dir}).state(ctx)
	}
	return (&running{engine: e, id: c.ID, user: userOf(s), dir: s.Dir}).written(ctx, l)
}
