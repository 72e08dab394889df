package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/moments"
	"github.com/git-airlock/git-airlock/prison/native/inside"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"

	"golang.org/x/sys/unix"
)

// killedStatus is the exit status of a command that was killed because the prison ended.
const killedStatus = 128 + int(unix.SIGKILL)

// unseenPatience is how long Stop waits while the lock is held and no living keeper can be found: one may be starting or ending.
const unseenPatience = 10 * time.Second

type backend struct{}

// New returns the backend that makes prisons out of Linux namespaces.
func New() prison.Backend { return backend{} }

func (backend) Name() string { return "native" }

// Traits implements [prison.Backend].
func (backend) Traits(string) prison.Traits { return prison.Traits{Overlay: true, HostKernel: true} }

// Granted implements [prison.Granted].
func (backend) Granted() map[string]string { return walls.Granted() }

// Start implements [prison.Backend].
func (backend) Start(ctx context.Context, s prison.Spec) (i prison.Isolation, err error) {
	if err := check(s); err != nil {
		return i, err
	}
	if err := walls.CheckIDs(s); err != nil {
		return i, err
	}
	if err := checkStopped(s); err != nil {
		return i, err
	}
	if err := ensureFolders(ctx, s); err != nil {
		return i, err
	}
	lacks, err := checkPrograms(&s)
	if err != nil {
		return i, err
	}
	keeper, link, err := startKeeper(s)
	if err != nil {
		return i, fmt.Errorf("start keeper: %w", err)
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { link.SetReadDeadline(time.Now()) })()
	isolation := func(weaker []prison.Weakness) prison.Isolation {
		return prison.Isolation{Weaker: append(weaker, lacks...)}
	}
	weaker, err := wire.AwaitReady(link, wire.Handed{Runs: func(weaker []prison.Weakness) {
		if s.Running != nil {
			s.Running(isolation(weaker))
		}
	}})
	if ctx.Err() != nil {
		keeper.Kill() // before the keeper has the lock, Stop cannot find it
		return i, errors.Join(ctx.Err(), backend{}.Stop(context.WithoutCancel(ctx), s))
	}
	if err != nil {
		return i, errors.Join(walls.CheckKernel(), err)
	}
	return isolation(weaker), nil
}

// checkStopped returns an error if the prison runs. A running prison has a socket that answers and a lock that is
// held. One of these alone does not prove it: Stop holds the lock for a moment, and processes of a killed prison need a
// moment to end.
func checkStopped(s prison.Spec) error {
	for range 10 {
		if !wire.Answers(s.Dir) {
			return nil
		}
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

// startKeeper starts the keeper. Its environment is only PATH, in which programs for prisons are found. Processes that the keeper
// starts do not inherit PATH.
func startKeeper(s prison.Spec) (p *os.Process, link wire.Conn, err error) {
	return wire.Detach(wire.Keeper, keeperConfig{wire.PackSpec(s), s.Secrets}, append([]string{"PATH=" + os.Getenv("PATH")}, wire.RoleEnv...))
}

// baseFolder returns the nearest folder above both the workspace and the host state. The builder starts with it as
// working directory: the builder has capabilities in its namespaces only, so it may be unable to reach the folder
// from / through somebody's closed home.
func baseFolder(s prison.Spec) string {
	base := filepath.Dir(s.Workspace)
	for {
		if rel, err := filepath.Rel(base, s.Dir); err == nil && filepath.IsLocal(rel) || base == "/" {
			return base
		}
		base = filepath.Dir(base)
	}
}

// newPrison starts the first process of a prison from this thread's working directory, which must be the
// [baseFolder]. The caller must then wait for its announcement.
func newPrison(s prison.Spec, shared bool, l *walls.Limits, enter func(pid int) error, files ...*os.File) (*os.Process, wire.Conn, error) {
	uids, weaker := []walls.Mapping{{Inside: s.UID, Outside: s.UID}}, l.Weaker
	initUID := 0
	if outside := walls.InitUID(s.UID); outside != 0 {
		initUID = inside.Nobody
		uids = append(uids, walls.Mapping{Inside: initUID, Outside: outside})
	} else if shared {
		weaker = append(weaker, prison.Weakness{
			Kind: prison.SharedInit, Text: "the agent can starve the first process inside, which has its uid (your range of /etc/subuid has no second id)",
		})
	}
	return walls.Child{
		Role: wire.Builder,
		Config: inside.Config{
			Spec: wire.PackSpec(s), Base: wire.Pack(baseFolder(s)), Shared: shared, InitUID: initUID,
			Rlimits: l.Rlimits, Weaker: weaker,
		},
		Namespaces: walls.Namespaces,
		UIDs:       uids,
		GIDs:       []walls.Mapping{{Inside: s.GID, Outside: s.GID}},
		Files:      files,
		Enter:      enter,
	}.Start()
}

// openPrison starts a prison from a thread with its own working directory, and the thread then ends.
func openPrison(s prison.Spec, limits *walls.Limits) (p *os.Process, link wire.Conn, err error) {
	walls.OnLastThread(func() {
		if err = unix.Unshare(unix.CLONE_FS); err != nil {
			return
		}
		if err = unix.Chdir(baseFolder(s)); err == nil {
			p, link, err = newPrison(s, false, limits, limits.Enter)
		}
	})
	return p, link, err
}

// OpenHome implements [prison.Backend].
func (b backend) OpenHome(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	s.Workspace = filepath.Join(s.Dir, inside.Home) // beside the workspace, the only host folder that the agent can write to
	if info, err := os.Lstat(s.Workspace); err != nil || !info.IsDir() {
		return nil, prison.ErrNoHome
	}
	return b.Open(ctx, s)
}

// HomeDisk implements [prison.Backend].
func (backend) HomeDisk(s prison.Spec) string { return s.Dir }

// Open implements [prison.Backend].
func (backend) Open(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	if s.ReadOnly { // such a prison only runs git for the host, and no program of the agent
		s.Network, s.Root, s.Tools = prison.NetworkNone, "", nil
	}
	if err := check(s); err != nil {
		return nil, err
	}
	if err := walls.CheckIDs(s); err != nil {
		return nil, err
	}
	limits := walls.ReadOnlyLimits(s)
	if err := limits.Make(); err != nil {
		return nil, fmt.Errorf("open prison: %w", err)
	}
	network, err := usernet.Start(s, nil)
	if err != nil {
		return nil, fmt.Errorf("open prison: %w", errors.Join(err, limits.Remove()))
	}
	p, link, err := openPrison(s, limits)
	if err != nil {
		network.End()
		return nil, fmt.Errorf("open prison: %w", errors.Join(walls.CheckKernel(), err, limits.Remove()))
	}
	end := sync.OnceValue(func() error {
		link.Close()
		p.Kill()
		p.Wait()
		network.End()
		return limits.Remove()
	})
	stop := context.AfterFunc(ctx, func() { link.SetReadDeadline(time.Now()) })
	_, err = wire.AwaitReady(link, wire.Handed{Tap: network.Connect})
	if err == nil {
		err = network.Await()
	}
	if !stop() && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		end() //nolint:errcheck // err is the error to report
		return nil, fmt.Errorf("open prison: %w", err)
	}
	return &running{connect: connectOver(link), close: end}, nil
}

// connectOver returns a function that opens another connection to the prison at the other end of a link.
func connectOver(link wire.Conn) func() (wire.Conn, error) {
	var mu sync.Mutex
	return func() (wire.Conn, error) {
		ours, theirs, err := wire.Pair()
		if err != nil {
			return wire.Conn{}, err
		}
		defer theirs.Close()
		mu.Lock()
		defer mu.Unlock()
		if err := link.Send(wire.Announcement{}, theirs); err != nil {
			ours.Close()
			return wire.Conn{}, err
		}
		return ours, nil
	}
}

// Attach implements [prison.Backend].
func (backend) Attach(ctx context.Context, s prison.Spec) (prison.Prison, error) {
	r := &running{
		connect: func() (wire.Conn, error) { return wire.Dial(s.Dir) },
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

// Stop implements [prison.Backend]. While Stop holds the lock, no keeper runs.
func (backend) Stop(ctx context.Context, s prison.Spec) error {
	if _, err := os.Lstat(filepath.Join(s.Dir, lockName)); errors.Is(err, os.ErrNotExist) {
		return nil // the prison was never started
	}
	lock, keeper, err := askToEnd(ctx, s.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := keeper.end(); err != nil { // the keeper releases the lock a moment before it ends
		return fmt.Errorf("end keeper: %w", err)
	}
	return finishRun(s.Dir)
}

// askToEnd waits for the lock. It tells the keeper that holds the lock to end, and kills it after a while.
func askToEnd(ctx context.Context, dir string) (lock *os.File, keeper processID, err error) {
	begun := time.Now()
	for asked := false; ; time.Sleep(2 * time.Millisecond) {
		if lock, err := tryLock(dir); lock != nil || err != nil {
			return lock, keeper, err
		}
		if err := ctx.Err(); err != nil {
			return nil, keeper, err
		}
		if current, err := readState(dir); err == nil { // otherwise the keeper is starting or ending
			keeper = current.Keeper
		}
		switch patience := time.Since(begun); {
		case patience > unseenPatience && !keeper.alive():
			return nil, keeper, prison.ErrElsewhere
		case patience > walls.StopPatience:
			return nil, keeper, errors.New("the prison's keeper does not end")
		case patience > walls.StopPatience/2:
			keeper.signal(unix.SIGKILL)
		case keeper.PID != 0 && !asked:
			keeper.signal(unix.SIGTERM)
			asked = true
		}
	}
}

// finishRun cleans up after a keeper that was killed, as the keeper would have done at its end. The caller must
// hold the lock.
func finishRun(dir string) error {
	if old, err := readState(dir); err == nil {
		if old.elsewhere(dir) {
			return prison.ErrElsewhere
		}
		if err := old.clear(dir); err != nil {
			return fmt.Errorf("clear the prison's rest: %w", err)
		}
	}
	var command wire.Command
	path := filepath.Join(dir, commandName)
	if hostfile.Read(path, &command) == nil && !command.Exited {
		command.Exited, command.Status = true, killedStatus
		// Where nothing can be written, Launched learns the status without this file.
		if err := hostfile.Write(path, command); !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
			return err
		}
	}
	return nil
}

// Launched implements [prison.Backend].
func (backend) Launched(ctx context.Context, s prison.Spec) (*prison.Launched, error) {
	// The connection is tried before the state is read: the command may end in between, but cannot start again.
	answers := wire.Answers(s.Dir)
	command, err := hostfile.Find[wire.Command](filepath.Join(s.Dir, commandName))
	if err != nil || command == nil {
		return nil, err
	}
	if !answers && !command.Exited {
		command.Exited, command.Status = true, killedStatus
	}
	return &prison.Launched{Argv: command.Argv, Exited: command.Exited, Status: command.Status}, nil
}

// Examine implements [prison.Backend].
func (b backend) Examine(ctx context.Context) ([]prison.Finding, error) {
	err := b.Probe(ctx)
	findings := append(walls.Examine(err), usernet.Finding(tryPair))
	if err != nil {
		return findings, err
	}
	return findings, walls.CheckFiles()
}

// Shown implements [prison.Backend].
func (backend) Shown(_ context.Context, s prison.Spec) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(s.Dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, prison.ErrNotLaunched
	}
	return f, err
}

// Times implements [prison.Timer].
func (backend) Times(_ context.Context, s prison.Spec) ([]prison.Moment, error) {
	return moments.Read(filepath.Join(s.Dir, timesName))
}
