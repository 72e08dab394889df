package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hosttree"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

var errRunning = errors.New("the prison is running already")

// claim returns the engine that a prison is on and its record; the first time it makes one.
func (b *Backend) claim(ctx context.Context, s prison.Spec) (*engine, *record, error) {
	r, err := readRecord(s.Dir)
	if err != nil {
		return nil, nil, err
	}
	e, err := b.engine(ctx, r)
	if err != nil || r != nil {
		return e, r, err
	}
	r, err = newRecord(e.host)
	if err != nil {
		return nil, nil, err
	}
	return e, r, r.write(s.Dir)
}

// ready returns what a container is planned on: the engine, what it can do, and the prison's record.
func (b *Backend) ready(ctx context.Context, s prison.Spec) (e *engine, p *platform, r *record, err error) {
	if err = check(s); err != nil {
		return nil, nil, nil, err
	}
	if e, r, err = b.claim(ctx, s); err != nil {
		return nil, nil, nil, err
	}
	if p, err = e.platform(ctx, s.Runtime); err != nil {
		return nil, nil, nil, err
	}
	return e, p, r, p.layFilter(s)
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
	p, err := e.platform(ctx, s.Runtime)
	if err != nil {
		return err
	}
	i, err := e.image(ctx, s.Image)
	if err != nil {
		return err
	}
	if err := errors.Join(e.sweep(ctx), e.sweepDeserted(ctx)); err != nil {
		return err
	}
	h, err := e.home(ctx, p, r, s)
	if err != nil {
		return err
	}
	if err := e.own(ctx, i.ID, r, s, h); err != nil {
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
	old, err := e.find(ctx, r)
	if err != nil {
		return i, err
	}
	if runs(old) {
		return i, errRunning
	}
	if err := checkOwner(s); err != nil {
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

// vanished reports whether there is no container any more: another prison's start may have seen it without its workspace just before,
// and have swept it up.
func (e *engine) vanished(ctx context.Context, r *record) bool {
	c, err := e.find(ctx, r)
	return err == nil && c == nil && r.Container != ""
}

// raise makes what the container lacks, the container itself if the old one will not do, and starts it.
func (e *engine) raise(ctx context.Context, p *platform, r *record, s prison.Spec, old *container.InspectResponse) (i prison.Isolation, err error) {
	found, err := e.pinned(ctx, r, s)
	if err != nil {
		return i, err
	}
	r.Ref, r.Image, r.Disk = s.Image, found.ID, p.DockerRootDir
	h, err := e.home(ctx, p, r, s)
	if err != nil {
		return i, err
	}
	if h.bare {
		old = nil // a container there may be is to have another one
	}
	plan, err := planner{platform: p, Spec: s, image: found, record: r, home: h}.prison()
	if err != nil {
		return i, err
	}
	if h.bare {
		if err := e.give(ctx, r.Image, r, s, h, false); err != nil {
			return i, fmt.Errorf("furnish home: %w", err)
		}
	}
	if err := e.renew(ctx, p, r, s, plan, old); err != nil {
		return i, err
	}
	p.weaker = plan.weaker
	err = e.run(ctx, p, r, s)
	return prison.Isolation{Runtime: p.runtime(s), Weaker: p.weaker}, err
}

// renew makes the container unless the old one is still as planned. The home stays; /etc is the image's.
func (e *engine) renew(ctx context.Context, pf *platform, r *record, s prison.Spec, p plan, old *container.InspectResponse) error {
	if err := e.makeNetwork(ctx, r, s); err != nil {
		return err
	}
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
	if !p.nested || pf.podman {
		return nil
	}
	if err := e.put(ctx, id, "/home", homeFolders(s)...); err != nil {
		r.Container = ""
		return errors.Join(err, r.write(s.Dir), e.remove(context.WithoutCancel(ctx), id))
	}
	return nil
}

// create creates the container; where its name is somebody else's, under one that is certainly free.
func (e *engine) create(ctx context.Context, r *record, p plan) (id string, err error) {
	p.mark()
	for _, name := range []string{p.name, p.name + "-" + r.Key} {
		bounded, cancel := call(ctx)
		c, err := e.ContainerCreate(bounded, &p.config, &p.host, nil, nil, name)
		cancel()
		if err == nil {
			return c.ID, nil
		}
		if errdefs.IsInvalidArgument(err) {
			return "", unavailable(fmt.Sprintf("the engine refuses the container: %v; the workspace must have the path for it that it has here, "+
				"which it has not where this is a container itself", err), "git airlock start --backend native")
		}
		if !notNow(err) {
			return "", e.failed(ctx, "create container", err)
		}
	}
	return "", fmt.Errorf("create container: the name %q is taken", p.name)
}

// run starts the container and sees that its image has what prisons need.
func (e *engine) run(ctx context.Context, p *platform, r *record, s prison.Spec) error {
	heard := func() string { return "" }
	if !p.podman { // where whoever lets go of a first process ends its input
		line, leave, err := e.hear(ctx, r.Container)
		if err != nil {
			return err
		}
		defer leave()
		heard = line
	}
	start := e.start
	if s.Network == prison.NetworkOpen {
		start = e.startOpen
	}
	if err := start(ctx, r.Container, s.Image); err != nil {
		return err
	}
	if p.podman {
		if err := e.furnishLate(ctx, r.Container, s); err != nil {
			return err
		}
	}
	if err := e.limitInside(ctx, p, r, s); err != nil {
		return err
	}
	e.limitSockets(ctx, p, r, s)
	if err := e.fence(ctx, p, r, s); err != nil {
		return err
	}
	if r.Shell = heard(); r.Shell == "" { // it has ended, or did not start at the first try
		var err error
		if r.Shell, err = e.ask(ctx, r.Container, userOf(s), sayShell); err != nil && !errors.Is(err, prison.ErrNotRunning) {
			return err
		}
	}
	if r.Shell == "" {
		return lacksGit(s.Image)
	}
	return r.write(s.Dir)
}

// Attach implements [prison.Backend].
func (b *Backend) Attach(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	r, err := readRecord(s.Dir)
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
	if !runs(c) {
		return nil, prison.ErrNotRunning
	}
	if c.State.Paused { // by somebody who wants to go on with it
		container := strings.TrimPrefix(c.Name, "/")
		return nil, &prison.Unavailable{Backend: name, Frozen: true, Reason: fmt.Sprintf("the container %s is paused", container),
			Mend: []string{"docker unpause " + container}}
	}
	box := &running{engine: e, id: r.Container, user: userOf(s), dir: s.Dir}
	if r.Shell != "" {
		box.env = []string{"SHELL=" + r.Shell}
	}
	return box, nil
}

// Open implements [prison.Backend].
func (b *Backend) Open(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	return b.look(ctx, s, func(*plan, *record) {})
}

// look starts a prison that ends with its caller, as planned and changed.
func (b *Backend) look(ctx context.Context, s prison.Spec, change func(*plan, *record)) (prison.Prison, error) {
	e, p, r, err := b.ready(ctx, s)
	if err != nil {
		return nil, err
	}
	i, err := e.pinned(ctx, r, s)
	if err != nil {
		return nil, err
	}
	plan, err := planner{platform: p, Spec: s, image: i, record: r}.look()
	if err != nil {
		return nil, err
	}
	change(&plan, r)
	return e.open(ctx, plan)
}

// open starts a container whose input is ours: the first process ends with it, and the engine removes
// what is left.
func (e *engine) open(ctx context.Context, p plan) (box *running, err error) {
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := e.ContainerCreate(bounded, &p.config, &p.host, nil, nil, "")
	if err != nil {
		return nil, e.failed(ctx, "create container", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.remove(context.WithoutCancel(ctx), c.ID))
		}
	}()
	stream, err := e.ContainerAttach(bounded, c.ID, container.AttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return nil, e.failed(ctx, "attach to container", err)
	}
	if err := e.start(ctx, c.ID, p.config.Image); err != nil {
		stream.Close()
		return nil, err
	}
	end := func() error {
		stream.Close() // with which it ends; an engine that does not answer now removes it later
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
		defer cancel()
		return e.remove(bounded, c.ID)
	}
	return &running{engine: e, id: c.ID, user: p.config.User, end: end}, nil
}

// Stop implements [prison.Backend]. The container stays, with all that was written in it.
func (b *Backend) Stop(ctx context.Context, s prison.Spec) error {
	r, err := readRecord(s.Dir)
	if err != nil || r == nil {
		return err
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return err
	}
	c, err := e.find(ctx, r)
	if err != nil {
		return err
	}
	if runs(c) {
		if err := e.kill(ctx, c); err != nil {
			return err
		}
	}
	return errors.Join(awaitKeeper(ctx, s.Dir), e.leaveSink(ctx, c))
}

// reapPatience is how long a first process that is dead may take to be gone, after the engine has given up waiting. With a kernel that
// is a program, its threads have all of the agent's memory to let go of.
const reapPatience = 45 * time.Second

// kill ends a container with everything in it, and returns when nothing runs.
func (e *engine) kill(ctx context.Context, c *container.InspectResponse) error {
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if c.State.Paused { // a frozen process does not die
		if err := e.ContainerUnpause(bounded, c.ID); err != nil && !notNow(err) && !gone(err) {
			return e.failed(ctx, "unpause container", err)
		}
	}
	ended, errs := e.ContainerWait(bounded, c.ID, container.WaitConditionNotRunning)
	// On a busy machine the engine may give up although the process is dead and only waits to be reaped.
	killErr := e.ContainerKill(bounded, c.ID, "KILL")
	if notNow(killErr) || gone(killErr) {
		killErr = nil
	}
	if killErr != nil {
		defer time.AfterFunc(reapPatience, cancel).Stop()
	}
	select {
	case <-ended:
		return nil
	case err := <-errs:
		if gone(err) {
			return nil
		}
		return e.failed(ctx, "end container", cmp.Or(killErr, err))
	}
}

// Wipe implements [prison.Backend].
func (b *Backend) Wipe(ctx context.Context, s prison.Spec) error {
	r, err := readRecord(s.Dir)
	if err != nil {
		return err
	}
	if r == nil {
		return b.wipeWorkspace(ctx, s, nil)
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return err
	}
	c, err := e.find(ctx, r)
	if err != nil {
		return err
	}
	if runs(c) {
		return errRunning
	}
	// The containers go last: as long as there is one, its image is there, which is what empties the workspace.
	if err := b.wipeWorkspace(ctx, s, r); err != nil {
		return err
	}
	if err := e.removeEverything(ctx, r); err != nil {
		return err
	}
	return forget(s.Dir)
}

// removeEverything removes all that a prison has on the engine.
func (e *engine) removeEverything(ctx context.Context, r *record) error {
	if err := e.removeAll(ctx, r.Key, ""); err != nil {
		return err
	}
	for _, v := range []string{r.homeVolume(), r.etcVolume()} {
		if err := e.removeVolume(ctx, v, r.Key, ""); err != nil {
			return err
		}
	}
	return e.removeNetworks(ctx, r)
}

// wipeWorkspace removes the workspace. To whoever is not root the phantom's folders are closed, and are emptied inside first.
func (b *Backend) wipeWorkspace(ctx context.Context, s prison.Spec, r *record) error {
	if os.Geteuid() == 0 || os.Remove(s.Workspace) == nil {
		return hosttree.Remove(s.Workspace)
	}
	if _, err := os.Lstat(s.Workspace); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	e, err := b.engine(ctx, r)
	if err != nil {
		return err
	}
	if r == nil { // the helper is to be known as ours all the same
		if r, err = newRecord(e.host); err != nil {
			return err
		}
	}
	if err := e.empty(ctx, cmp.Or(r.Image, s.Image), r.Key, s); err != nil {
		return err
	}
	if err := os.Remove(s.Workspace); err != nil {
		return fmt.Errorf("remove workspace: %w", err)
	}
	return nil
}

// removeAll removes the containers with a key, of one role or of all.
func (e *engine) removeAll(ctx context.Context, key, role string) error {
	f := filters.NewArgs(filters.Arg("label", labelKey+"="+key))
	if role != "" {
		f.Add("label", labelRole+"="+role)
	}
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ContainerList(bounded, container.ListOptions{All: true, Filters: f})
	if err != nil {
		return e.failed(ctx, "list containers", err)
	}
	for _, c := range list {
		if err := e.remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// removeVolume removes a volume of a prison's, waiting a moment for a container that is just going, or coming: the engine
// goes on making one for a start that was killed. Those of a role are removed, as by [engine.removeAll].
func (e *engine) removeVolume(ctx context.Context, name, key, role string) error {
	bounded, cancel := call(ctx)
	defer cancel()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := e.VolumeRemove(bounded, name, false)
		if err == nil || gone(err) {
			return nil
		}
		if !notNow(err) || time.Now().After(deadline) {
			return e.failed(ctx, "remove volume", err)
		}
		if err := e.removeAll(ctx, key, role); err != nil {
			return err
		}
	}
}
