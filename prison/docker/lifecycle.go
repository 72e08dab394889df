package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/watch/containers"

	"github.com/docker/docker/api/types/container"
)

var errRunning = errors.New("the prison is running already")

// claim returns the engine of a prison and the prison's state. It creates the state if there is none.
func (b *Backend) claim(ctx context.Context, s prison.Spec) (*engine, *state, error) {
	r, err := readState(s.Dir)
	if err != nil {
		return nil, nil, err
	}
	e, err := b.engine(ctx, r)
	if err != nil || r != nil {
		return e, r, err
	}
	r = newState(e.Host)
	return e, r, r.write(s.Dir)
}

// ready returns what a plan needs: the engine, its abilities, and the state of the prison.
func (b *Backend) ready(ctx context.Context, s prison.Spec) (e *engine, p *dialect.Platform, r *state, err error) {
	if err = check(s); err != nil {
		return nil, nil, nil, err
	}
	if e, r, err = b.claim(ctx, s); err != nil {
		return nil, nil, nil, err
	}
	if p, err = e.Platform(ctx, s.Runtime); err != nil {
		return nil, nil, nil, err
	}
	return e, p, r, layFilter(p, s)
}

// Prepare implements [prison.Backend].
func (b *Backend) Prepare(ctx context.Context, s prison.Spec) (err error) {
	if err := check(s); err != nil {
		return err
	}
	if err := os.Mkdir(s.Workspace, 0o700); err != nil {
		return fmt.Errorf("make workspace: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(s.Workspace))
		}
	}()
	e, r, err := b.claim(ctx, s)
	if err != nil {
		return err
	}
	p, err := e.Platform(ctx, s.Runtime)
	if err != nil {
		return err
	}
	defer func() { err = p.Explained(err) }()
	i, err := e.image(ctx, s.Image)
	if err != nil {
		return err
	}
	if err := errors.Join(e.sweep(ctx), e.sweepOrphaned(ctx)); err != nil {
		return err
	}
	h, err := e.home(ctx, p, r, s)
	if err != nil {
		return err
	}
	if err := e.giveToPhantom(ctx, i.ID, r, s, h); err != nil {
		return fmt.Errorf("own workspace: %w", err)
	}
	return checkOwner(s)
}

// Start implements [prison.Backend].
func (b *Backend) Start(ctx context.Context, s prison.Spec) (i prison.Isolation, err error) {
	e, p, r, err := b.ready(ctx, s)
	if err != nil {
		return i, err
	}
	defer func() { err = p.Explained(err) }()
	old, err := e.find(ctx, r)
	if err != nil {
		return i, err
	}
	if inside.Runs(old) {
		return i, errRunning
	}
	if err := errors.Join(checkOwner(s), checkNetwork(s), checkPrograms(p, s)); err != nil {
		return i, err
	}
	if err := r.endLeft(ctx, s); err != nil {
		return i, err
	}
	i, err = e.raise(ctx, p, r, s, old)
	if err != nil && (e.vanished(ctx, r) || e.emptied(ctx, p, r, s)) {
		i, err = e.raise(ctx, p, r, s, nil)
	}
	if err != nil {
		return i, errors.Join(err, b.Stop(context.WithoutCancel(ctx), s))
	}
	return i, nil
}

// vanished reports whether the container no longer exists. The start of another prison may have removed it at the wrong moment, because
// its workspace was missing.
func (e *engine) vanished(ctx context.Context, r *state) bool {
	c, err := e.find(ctx, r)
	return err == nil && c == nil && r.Container != ""
}

// raise makes the objects that the container needs, replaces a container that no longer matches the plan, and starts it.
func (e *engine) raise(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec, old *container.InspectResponse) (i prison.Isolation, err error) {
	found, err := e.pinned(ctx, r, s)
	if err != nil {
		return i, err
	}
	r.Ref, r.Image, r.Disk, r.Variables, r.Product = s.Image, found.ID, p.DockerRootDir, len(s.Env) > 0, p.Product()
	h, err := e.home(ctx, p, r, s)
	if err != nil {
		return i, err
	}
	if h.incomplete {
		old = nil // a container with this home must be replaced
	}
	if err := errors.Join(endNetwork(ctx, s.Dir), containers.End(ctx, s.Dir)); err != nil {
		return i, err
	}
	if err := e.startHolder(ctx, p, r, s); err != nil {
		return i, err
	}
	planned := planner{Platform: p, Spec: s, image: found, state: r, home: h}
	plan, err := planned.prison()
	if err != nil {
		return i, err
	}
	if h.incomplete {
		if err := e.setUp(ctx, r.Image, r, s, h, false); err != nil {
			return i, fmt.Errorf("fill home: %w", err)
		}
	}
	if err := e.renew(ctx, p, r, s, plan, old); err != nil {
		return i, err
	}
	p.Weaker = plan.weaker
	if s.Record && unrecorded(p, s) == nil {
		if err := containers.Expect(s.Dir); err != nil {
			return i, err
		}
	}
	if err = e.run(ctx, p, r, s); err != nil {
		err = cmp.Or(e.ended(ctx, r, s), err)
	}
	return prison.Isolation{Runtime: p.RuntimeOf(s), Weaker: p.Weaker, Emptied: planned.proxyVariables()}, err
}

// renew makes the container, unless the old one still matches the plan. The home stays; /etc comes from the image.
func (e *engine) renew(ctx context.Context, pf *dialect.Platform, r *state, s prison.Spec, p plan, old *container.InspectResponse) error {
	if old != nil && old.Config != nil && old.Config.Labels[labelPlan] == p.config.Labels[labelPlan] {
		return nil
	}
	if err := e.removeAll(ctx, r.Key, rolePrison); err != nil {
		return err
	}
	if err := e.removeVolume(ctx, r.etcVolume(), r.Key, rolePrison); err != nil {
		return err
	}
	id, err := e.create(ctx, r, p)
	if err != nil {
		return err
	}
	r.Container = id
	if err := r.write(s.Dir); err != nil {
		return err
	}
	if !p.nested || pf.FillsLate() {
		return nil
	}
	if err := e.Put(ctx, id, "/home", homeFolders(s)...); err != nil {
		r.Container = ""
		return errors.Join(err, r.write(s.Dir), e.Remove(context.WithoutCancel(ctx), id))
	}
	return nil
}

// create creates the container. If the name is taken by another container, it adds the prison's key to the name.
func (e *engine) create(ctx context.Context, r *state, p plan) (id string, err error) {
	p.mark()
	for _, name := range []string{p.name, p.name + "-" + r.Key} {
		id, err := e.Create(ctx, &p.config, &p.host, name)
		if err == nil {
			return id, nil
		}
		if dialect.Refused(err) {
			return "", dialect.Unavailable(fmt.Sprintf("the engine refuses the container: %v; the workspace must have the path for it that it has here, "+
				"which it has not where this is a container itself", err), "git airlock start --backend native")
		}
		if !dialect.NotNow(err) {
			return "", e.Failed(ctx, "create container", err)
		}
	}
	return "", fmt.Errorf("create container: the name %q is taken", p.name)
}

// run starts the container and checks that its image has the programs that prisons need.
func (e *engine) run(ctx context.Context, p *dialect.Platform, r *state, s prison.Spec) error {
	heard := func() string { return "" }
	if !p.EndsInput() {
		line, leave, err := inside.Hear(ctx, e.Engine, r.Container)
		if err != nil {
			return err
		}
		defer leave()
		heard = line
	}
	connected := func() error { return nil }
	if r.Holder != "" {
		if err := connectNetwork(ctx, newNetworkOrder(s, r))(); err != nil {
			return err
		}
	}
	if err := e.begin(ctx, r, s); err != nil {
		return err
	}
	if r.Holder == "" {
		connected = sync.OnceValue(connectNetwork(ctx, newNetworkOrder(s, r)))
		defer connected() //nolint:errcheck // run returns an earlier error
	}
	if p.FillsLate() {
		if err := e.fillLate(ctx, r.Container, s); err != nil {
			return err
		}
	} else if err := e.openScratch(ctx, r.Container); err != nil {
		return err
	}
	if err := e.limitInside(ctx, p, r, s); err != nil {
		return err
	}
	if err := inside.GiveVariables(ctx, e.Engine, r.Container, s.Env); err != nil {
		return err
	}
	e.limitSockets(ctx, p, r, s)
	if err := e.recordPrograms(ctx, p, r, s); err != nil {
		return err
	}
	said := heard()
	if said == "" { // the first process has ended, could not be heard, or did not start at first
		var err error
		if said, err = e.ask(ctx, r.Container, userOf(s), sayShell); err != nil && !errors.Is(err, prison.ErrNotRunning) {
			return err
		}
	}
	if said == "" {
		return e.lacksGit(ctx, r.Container, s.Image)
	}
	var err error
	if r.Shell, err = e.heed(ctx, r, s, said); err != nil {
		return err
	}
	if err := connected(); err != nil {
		return err
	}
	return r.write(s.Dir)
}

// begin starts the container, and stores when that was.
func (e *engine) begin(ctx context.Context, r *state, s prison.Spec) error {
	if err := e.start(ctx, r.Container, s.Image); err != nil {
		return err
	}
	c, err := e.Inspect(ctx, r.Container)
	if err != nil || c.State == nil {
		return e.Failed(ctx, "inspect container", err)
	}
	r.Started = c.State.StartedAt
	return nil
}

// heed returns the shell in the output of [sayShell]. If the output names another folder of the host than the workspace, heed removes the
// container, in which none of the agent's commands has run yet.
func (e *engine) heed(ctx context.Context, r *state, s prison.Spec, said string) (shell string, err error) {
	parts := append(strings.SplitN(said, " ", 3), "", "", "")
	if sameFolder(s.Workspace, parts[0], parts[1]) {
		return parts[2], nil
	}
	err = dialect.Unavailable(fmt.Sprintf("the engine has mounted another folder at %s than %q", prison.Workspace, s.Workspace), "git airlock start --backend native")
	id := r.Container
	r.Container = ""
	return "", errors.Join(err, e.Remove(context.WithoutCancel(ctx), id), r.write(s.Dir))
}

// sameFolder compares a folder with one inside, of which nothing is known if the image has no stat(1).
func sameFolder(path, insideFolder, insideOwner string) bool {
	folder, owner := folderOf(path)
	return folder == "" || insideFolder == "-" || insideFolder == folder || insideOwner == owner
}

// Attach implements [prison.Backend].
func (b *Backend) Attach(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	r, err := readState(s.Dir)
	if err != nil {
		return nil, err
	}
	if r == nil || r.Container == "" {
		return nil, prison.ErrNotRunning
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return nil, err
	}
	c, err := e.find(ctx, r)
	if err != nil {
		return nil, err
	}
	if !inside.Runs(c) || !r.stillStarted(c) {
		return nil, prison.ErrNotRunning
	}
	box := &inside.Container{Engine: e.Engine, ID: r.Container, User: userOf(s), HostDir: s.Dir, Variables: r.Variables}
	box.Recorded = containers.Recorded(s.Dir)
	if c.State.Paused {
		thawed, err := box.Thawed(ctx)
		if err != nil {
			return nil, err
		}
		if !thawed { // only the user can let the container go on
			container := strings.TrimPrefix(c.Name, "/")
			return nil, &prison.Unavailable{Backend: dialect.Name, Frozen: true, Reason: fmt.Sprintf("the container %s is paused", container),
				Mend: []string{"docker unpause " + container}}
		}
	}
	if box.Recorded && !containers.Alive(s.Dir) { // the record has ended, or somebody else has restarted the container
		if containers.AliveElsewhere(s.Dir) {
			return nil, prison.ErrElsewhere
		}
		return nil, prison.ErrNotRunning
	}
	reconnectNetwork(ctx, newNetworkOrder(s, r))
	if r.Shell != "" {
		box.Base = []string{"SHELL=" + r.Shell}
	}
	return box, nil
}

// Open implements [prison.Backend].
func (b *Backend) Open(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	return b.startTemporary(ctx, s, func(*plan, *state) {})
}

// startTemporary starts a prison that ends with its caller. change adapts the prison's plan.
func (b *Backend) startTemporary(ctx context.Context, s prison.Spec, change func(*plan, *state)) (box prison.Prison, err error) {
	e, p, r, err := b.ready(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = p.Explained(err) }()
	i, err := e.pinned(ctx, r, s)
	if err != nil {
		return nil, err
	}
	plan, err := planner{Platform: p, Spec: s, image: i, state: r}.temporary()
	if err != nil {
		return nil, err
	}
	change(&plan, r)
	return e.open(ctx, plan)
}

// open starts a container whose standard input is a stream of this process. The first process ends when the stream is closed, and then
// the engine removes the container.
func (e *engine) open(ctx context.Context, p plan) (box *inside.Container, err error) {
	id, err := e.Create(ctx, &p.config, &p.host, "")
	if err != nil {
		return nil, e.Failed(ctx, "create container", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Remove(context.WithoutCancel(ctx), id))
		}
	}()
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	stream, err := e.ContainerAttach(bounded, id, container.AttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return nil, e.Failed(ctx, "attach to container", err)
	}
	if err := e.start(ctx, id, p.config.Image); err != nil {
		stream.Close()
		return nil, err
	}
	end := sync.OnceValue(func() error {
		stream.Close() // this ends the container; an engine that does not answer now removes the container later
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialect.KillPatience)
		defer cancel()
		return e.Remove(bounded, id)
	})
	return &inside.Container{Engine: e.Engine, ID: id, User: p.config.User, End: end}, nil
}

// Stop implements [prison.Backend]. The container stays, with all files that were written in it.
func (b *Backend) Stop(ctx context.Context, s prison.Spec) error {
	r, e, c, err := b.own(ctx, s)
	if err != nil || r == nil {
		return err
	}
	if inside.Runs(c) {
		if err := e.kill(ctx, c); err != nil {
			return err
		}
	}
	// The record ends when no process is left.
	err = errors.Join(inside.AwaitKeeper(ctx, s.Dir), endNetwork(ctx, s.Dir), r.endLeft(ctx, s), containers.End(ctx, s.Dir))
	if r.Holder != "" {
		err = errors.Join(err, e.removeAll(ctx, r.Key, roleHolder))
	}
	return err
}

// endLeft ends processes of the prison's container that a killed engine has left. The container itself does not run.
func (r *state) endLeft(ctx context.Context, s prison.Spec) error {
	if r.Container == "" {
		return nil
	}
	left := containers.EndLeft(ctx, r.Container, s.GID)
	if len(left) == 0 {
		return nil
	}
	pids := strings.Trim(fmt.Sprint(left), "[]")
	return dialect.Unavailable("processes of the agent still run after the end of its container: "+pids, "sudo kill -KILL "+pids)
}

// reapPatience is how long a dead first process may take to disappear after the engine has stopped waiting. If the runtime has a kernel
// of its own, that kernel must first release all of the agent's memory.
const reapPatience = 45 * time.Second

// kill ends a container with all its processes, and returns when none of them runs.
func (e *engine) kill(ctx context.Context, c *container.InspectResponse) error {
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	if c.State.Paused { // a paused process does not die
		if err := e.ContainerUnpause(bounded, c.ID); err != nil && !dialect.NotNow(err) && !dialect.Gone(err) {
			return e.Failed(ctx, "unpause container", err)
		}
	}
	ended, errs := e.ContainerWait(bounded, c.ID, container.WaitConditionNotRunning)
	// On a busy machine the engine may stop waiting although the process is dead and will be reaped soon.
	killErr := e.ContainerKill(bounded, c.ID, "KILL")
	if dialect.NotNow(killErr) || dialect.Gone(killErr) {
		killErr = nil
	}
	if killErr != nil {
		defer time.AfterFunc(reapPatience, cancel).Stop()
	}
	select {
	case <-ended:
		return nil
	case err := <-errs:
		if dialect.Gone(err) {
			return nil
		}
		return e.Failed(ctx, "end container", cmp.Or(killErr, err))
	}
}
