package inside

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/hostfile"
)

// Launched is the stored state of a launched command.
type Launched struct {
	Argv   []string `json:"argv"`
	Exec   string   `json:"exec"` // the engine's id of the command
	Exited bool     `json:"exited"`
	Status int      `json:"status"`
}

// StatusFolder is the folder in which a launched command leaves its exit status. The phantom can write to it.
const StatusFolder = "/home/.run"

// statusFile is the path inside of the file with the exit status. The agent can forge it.
const statusFile = StatusFolder + "/status"

// Launch implements [prison.Prison].
func (r *Container) Launch(ctx context.Context, p prison.Process) error {
	if r.HostDir == "" {
		return errors.New("a prison that ends with its caller launches nothing")
	}
	if err := r.lookUp(ctx, p); err != nil {
		return err
	}
	old, err := r.State(ctx)
	if err != nil {
		return err
	}
	if old != nil && !old.Exited {
		return errors.New("a launched command runs already")
	}
	if err := AwaitKeeper(ctx, r.HostDir); err != nil { // the old keeper must first write the state of the last command
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

// lookUpPatience is the time limit for looking up a command, since the agent can leave a pipe in the folders of
// PATH.
const lookUpPatience = 20 * time.Second

// lookUp returns an error if a command cannot be started.
func (r *Container) lookUp(ctx context.Context, p prison.Process) error {
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

// State returns the state of the launched command of a running container, or nil if there was none.
func (r *Container) State(ctx context.Context) (*Launched, error) {
	l, err := ReadLaunched(r.HostDir)
	if l == nil || err != nil || l.Exited {
		return l, err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	i, err := r.ContainerExecInspect(bounded, l.Exec)
	switch {
	case dialect.Gone(err): // the engine forgets commands after a while
		return r.Written(ctx, l)
	case err != nil:
		return nil, r.Failed(ctx, "ask for the launched command", err)
	case i.Running, i.Pid == 0 && i.ExitCode == 0 && r.kept(ctx):
		return l, nil
	case i.ExitCode == lostStatus && !r.alive(ctx):
		return r.Written(ctx, l)
	}
	l.Exited, l.Status = true, i.ExitCode
	return l, hostfile.Write(filepath.Join(r.HostDir, commandName), l)
}

// kept reports whether the keeper of the launched command runs. It will write how the command ends. The engine's answer is not enough:
// a command that it is still starting has no process and does not run, and with Podman the same is true of an ended one.
func (r *Container) kept(ctx context.Context) bool {
	conn, err := dialIn(ctx, r.HostDir)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// Written completes the state of an ended command: it reads the exit status from the command's file.
func (r *Container) Written(ctx context.Context, l *Launched) (*Launched, error) {
	l.Exited, l.Status = true, KilledStatus
	content, err := r.Get(ctx, r.ID, statusFile)
	if err != nil && !dialect.Gone(err) && !errors.Is(err, dialect.ErrNotSmall) {
		return nil, r.Failed(ctx, "read the launched command's status", err)
	}
	if status, err := strconv.Atoi(strings.TrimSpace(content)); err == nil && status >= 0 && status <= 255 {
		l.Status = status
	}
	return l, hostfile.Write(filepath.Join(r.HostDir, commandName), l)
}

// ReadLaunched returns what the host has stored about the last launched command, or nil if there was none.
func ReadLaunched(dir string) (*Launched, error) {
	return hostfile.Find[Launched](filepath.Join(dir, commandName))
}
