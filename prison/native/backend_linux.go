package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"

	"golang.org/x/sys/unix"
)

// killedStatus is the exit status of a command that the prison's end killed.
const killedStatus = 128 + int(unix.SIGKILL)

// stopPatience is how long a prison may take to end. Unmounting an overlay writes all that is dirty in
// the file system below it, the host's, to the disk.
const stopPatience = 2 * time.Minute

// unseenPatience is how long somebody whom one cannot see may hold the lock: a keeper that starts or is about to be gone.
const unseenPatience = 10 * time.Second

type backend struct{}

// New returns the backend that makes prisons out of Linux namespaces.
func New() prison.Backend { return backend{} }

func (backend) Name() string { return "native" }

// Traits implements [prison.Backend].
func (backend) Traits(string) prison.Traits { return prison.Traits{Overlay: true, HostKernel: true} }

// check refuses what this backend cannot make.
func check(s prison.Spec) error {
	switch {
	case s.ID == "", s.User == "", s.Hostname == "":
		return errors.New("native prison: ID, User and Hostname are required")
	case !filepath.IsAbs(s.Dir), !filepath.IsAbs(s.Workspace):
		return errors.New("native prison: Dir and Workspace must be absolute paths")
	case s.UID <= 0, s.GID <= 0:
		return fmt.Errorf("native prison: uid %d, gid %d: want a phantom's", s.UID, s.GID)
	case s.User != filepath.Base(s.User), s.User == ".", s.User == "..":
		return fmt.Errorf("native prison: user name %q", s.User)
	}
	if s.Image != "" || s.Runtime != "" {
		return unavailable("it has neither images nor runtimes; another root file system can be a folder")
	}
	if err := checkGiven(s); err != nil {
		return err
	}
	return checkNetwork(s)
}

func unavailable(reason string, mend ...string) error {
	return &prison.Unavailable{Backend: "native", Reason: reason, Mend: mend}
}

// Start implements [prison.Backend].
func (backend) Start(ctx context.Context, s prison.Spec) (i prison.Isolation, err error) {
	if err := check(s); err != nil {
		return i, err
	}
	if err := checkIDs(s); err != nil {
		return i, err
	}
	if err := checkStopped(s); err != nil {
		return i, err
	}
	if err := ensureFolders(ctx, s); err != nil {
		return i, err
	}
	keeper, link, err := startKeeper(s)
	if err != nil {
		return i, fmt.Errorf("start keeper: %w", err)
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { link.SetReadDeadline(time.Now()) })()
	i.Weaker, err = awaitReady(link, nil)
	if ctx.Err() != nil {
		keeper.Kill() // it may not have the lock yet by which Stop knows it
		return i, errors.Join(ctx.Err(), backend{}.Stop(context.WithoutCancel(ctx), s))
	}
	if err != nil {
		return i, errors.Join(checkKernel(), err)
	}
	return i, nil
}

// checkStopped refuses to start what runs: what has a socket that answers and a lock that is held. Either
// alone does not tell, as Stop holds the lock for a moment, and parts of a killed prison take one to end.
func checkStopped(s prison.Spec) error {
	for range 10 {
		c, err := dial(s.Dir)
		if err != nil {
			return nil
		}
		c.Close()
		lock, err := tryLock(s.Dir)
		if err != nil {
			return err
		}
		if lock != nil {
			return lock.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errRunning
}

var errRunning = errors.New("the prison is running already")

// startKeeper starts the keeper detached: a session of its own, the root folder, and no environment but the PATH in which programs for
// prisons were found. What the keeper starts has none of it.
func startKeeper(s prison.Spec) (p *os.Process, link conn, err error) {
	link, theirs, err := socketPair()
	if err != nil {
		return nil, conn{}, err
	}
	defer theirs.Close()
	defer func() {
		if err != nil {
			link.Close()
		}
	}()
	config, err := newConfig(roleKeeper, packSpec(s), 1)
	if err != nil {
		return nil, conn{}, err
	}
	defer config.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, conn{}, err
	}
	defer null.Close()
	p, err = os.StartProcess("/proc/self/exe", []string{roleKeeper}, &os.ProcAttr{
		Dir: "/", Env: append([]string{"PATH=" + os.Getenv("PATH")}, roleEnv...), Files: []*os.File{null, null, null, config, theirs},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, conn{}, err
	}
	go p.Wait() // should it end before this process, it must not stay as a zombie
	return p, link, nil
}

// namespaces are the walls. The control group's is added later, from the group itself.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// newPrison starts the first process of a prison from this thread's working directory, which must be the
// [baseFolder]; what it announces is still to be awaited.
func newPrison(s prison.Spec, shared bool, l *limits, enter func(pid int) error, files ...*os.File) (*os.Process, conn, error) {
	return child{
		role: roleBuild,
		config: buildConfig{
			Spec: packSpec(s), Base: pack(baseFolder(s)), Shared: shared,
			MemoryRlimit: l.memoryRlimit, PIDsRlimit: l.pidsRlimit, Weaker: l.weaker,
		},
		namespaces: namespaces,
		uids:       []mapping{{s.UID, s.UID}},
		gids:       []mapping{{s.GID, s.GID}},
		files:      files,
		enter:      enter,
	}.start()
}

// openPrison starts a prison from a thread with a working directory of its own, which ends then.
func openPrison(s prison.Spec, limits *limits) (p *os.Process, link conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the runtime ends the thread with the goroutine
		if err = unix.Unshare(unix.CLONE_FS); err != nil {
			return
		}
		if err = unix.Chdir(baseFolder(s)); err == nil {
			p, link, err = newPrison(s, false, limits, limits.enter)
		}
	}()
	<-done
	return p, link, err
}

// OpenHome implements [prison.Backend].
func (b backend) OpenHome(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	s.Workspace = homeDir(s)
	if info, err := os.Lstat(s.Workspace); err != nil || !info.IsDir() {
		return nil, prison.ErrNoHome
	}
	return b.Open(ctx, s)
}

// HomeDisk implements [prison.Backend].
func (backend) HomeDisk(s prison.Spec) string { return s.Dir }

// Open implements [prison.Backend].
func (backend) Open(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	if s.ReadOnly { // git of the host's looks, and nothing of the agent's
		s.Network, s.Root, s.Tools = prison.NetworkNone, "", nil
	}
	if err := check(s); err != nil {
		return nil, err
	}
	if err := checkIDs(s); err != nil {
		return nil, err
	}
	limits := lookLimits(s)
	if err := limits.make(); err != nil {
		return nil, fmt.Errorf("open prison: %w", err)
	}
	p, link, err := openPrison(s, limits)
	if err != nil {
		return nil, fmt.Errorf("open prison: %w", errors.Join(checkKernel(), err, limits.remove()))
	}
	var once sync.Once
	var relay *os.Process
	var wire conn
	end := func() (err error) {
		once.Do(func() {
			link.Close()
			p.Kill()
			p.Wait()
			endRelay(relay, wire)
			err = limits.remove()
		})
		return err
	}
	stop := context.AfterFunc(ctx, func() { link.SetReadDeadline(time.Now()) })
	_, err = awaitReady(link, func(tap *os.File) (err error) {
		relay, wire, err = startRelay(s, tap)
		return err
	})
	if !stop() && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		end() //nolint:errcheck // it gives none
		return nil, fmt.Errorf("open prison: %w", err)
	}
	var mu sync.Mutex
	connect := func() (conn, error) {
		ours, theirs, err := socketPair()
		if err != nil {
			return conn{}, err
		}
		defer theirs.Close()
		mu.Lock()
		defer mu.Unlock()
		if err := link.send(announcement{}, theirs); err != nil {
			ours.Close()
			return conn{}, err
		}
		return ours, nil
	}
	return &running{connect: connect, close: end}, nil
}

// Attach implements [prison.Backend].
func (backend) Attach(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	r := &running{
		connect: func() (conn, error) { return dial(s.Dir) },
		close:   func() error { return nil },
	}
	err := r.ping(ctx)
	if old, stateErr := readState(s.Dir); err != nil && stateErr == nil && old.elsewhere(s.Dir) {
		err = prison.ErrElsewhere
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Stop implements [prison.Backend]. Who holds the lock knows that no keeper works any more.
func (backend) Stop(ctx context.Context, s prison.Spec) error {
	if neverStarted(s.Dir) {
		return nil
	}
	lock, keeper, err := askToEnd(ctx, s.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := keeper.end(stopPatience); err != nil { // it releases the lock a moment before it is gone
		return fmt.Errorf("end keeper: %w", err)
	}
	return finishRun(s.Dir)
}

// neverStarted reports whether there is not even a lock.
func neverStarted(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, lockName))
	return errors.Is(err, os.ErrNotExist)
}

// askToEnd waits for the lock, asks the keeper that holds it to end, and after a while kills it.
func askToEnd(ctx context.Context, dir string) (lock *os.File, keeper processID, err error) {
	begun := time.Now()
	for asked := false; ; time.Sleep(2 * time.Millisecond) {
		if lock, err := tryLock(dir); lock != nil || err != nil {
			return lock, keeper, err
		}
		if err := ctx.Err(); err != nil {
			return nil, keeper, err
		}
		if current, err := readState(dir); err == nil { // else it is about to start, or about to be gone
			keeper = current.Keeper
		}
		switch patience := time.Since(begun); {
		case patience > unseenPatience && !keeper.alive():
			return nil, keeper, prison.ErrElsewhere
		case patience > stopPatience:
			return nil, keeper, errors.New("the prison's keeper does not end")
		case patience > stopPatience/2:
			keeper.signal(unix.SIGKILL)
		case keeper.PID != 0 && !asked:
			keeper.signal(unix.SIGTERM)
			asked = true
		}
	}
}

// finishRun does what a keeper does at its end, for one that was killed. The lock must be held.
func finishRun(dir string) error {
	if old, err := readState(dir); err == nil {
		if old.elsewhere(dir) {
			return prison.ErrElsewhere
		}
		if err := old.clear(dir); err != nil {
			return fmt.Errorf("clear the prison's rest: %w", err)
		}
	}
	var command launchedState
	path := filepath.Join(dir, commandName)
	if hostfile.Read(path, &command) == nil && !command.Exited {
		command.Exited, command.Status = true, killedStatus
		return hostfile.Write(path, command)
	}
	return nil
}

// Launched implements [prison.Backend].
func (backend) Launched(ctx context.Context, s prison.Spec) (*prison.Launched, error) {
	// Whether it runs is asked first: a command may end in between, but not come back.
	c, dialErr := dial(s.Dir)
	if dialErr == nil {
		c.Close()
	}
	var command launchedState
	err := hostfile.Read(filepath.Join(s.Dir, commandName), &command)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if dialErr != nil && !command.Exited {
		command.Exited, command.Status = true, killedStatus
	}
	return &prison.Launched{Argv: command.Argv, Exited: command.Exited, Status: command.Status}, nil
}
