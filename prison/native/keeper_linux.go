package native

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/egress/credential/secret"
	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/moments"
	"github.com/git-airlock/git-airlock/prison/native/usernet"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/watch/recorders"

	"golang.org/x/sys/unix"
)

const (
	// lockPatience is how long a new keeper waits for the lock: a Stop may still be cleaning up.
	lockPatience = 3 * time.Second
	// logKept is how many bytes of a launched command's output are kept at least, see [prison.Prison.Launch].
	logKept = 1 << 20
)

// keeper is the process on the host on which a started prison depends.
type keeper struct {
	spec     prison.Spec
	state    state
	noting   sync.Mutex // guards state when a successor of a process in it starts
	limits   *walls.Limits
	init     *os.Process
	link     wire.Conn
	network  *usernet.Network     // set for an open network
	programs *recorders.Recorders // set for a prison whose programs are recorded
	command  *wire.Command        // the launched command, or nil
	log      *os.File
	logged   int64        // bytes in log
	times    *moments.Log // when the bytes in log came
}

// keeperConfig is the configuration of a keeper. Spec is stored without its secrets, so they are in Secrets.
type keeperConfig struct {
	Spec    prison.Spec
	Secrets []secret.Secret
}

func keeperMain(caller wire.Conn, c keeperConfig) int {
	unix.Umask(0o077)
	var k keeper
	k.spec = wire.UnpackSpec(c.Spec)
	k.spec.Secrets = c.Secrets
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	signal.Ignore(unix.SIGHUP, unix.SIGINT)
	lock, err := k.lock()
	if err != nil {
		caller.Send(wire.Failed(err))
		return 1
	}
	defer runtime.KeepAlive(lock) // the lock is released when the process ends, and not before
	weaker, err := k.start(lock, func(weaker []prison.Weakness) {
		caller.Send(wire.Announcement{Runs: true, Weaker: weaker})
	})
	if err != nil {
		k.cleanUp()
		caller.Send(wire.Failed(err))
		return 1
	}
	caller.Send(wire.Announcement{Weaker: weaker})
	caller.Close()
	time.AfterFunc(wire.RestAfter, wire.Rest) // later, since the caller and the daemon need the processors now
	go func() {
		awaitEnd(stop, lock)
		k.init.Kill()
	}()
	ended := make(chan struct{})
	go k.boundNetlink(ended)
	k.listen()
	close(ended)
	k.cleanUp()
	return 0
}

// removedPoll is how often a keeper checks whether its folder has been removed.
const removedPoll = 2 * time.Second

// awaitEnd waits for the signal to end, or until the lock is removed together with its folder. Without the folder
// no command could find the prison to end it.
func awaitEnd(stop <-chan os.Signal, lock *os.File) {
	poll := time.NewTicker(removedPoll)
	defer poll.Stop()
	for {
		select {
		case <-stop:
			return
		case <-poll.C:
			var st unix.Stat_t
			if err := unix.Fstat(int(lock.Fd()), &st); err == nil && st.Nlink == 0 {
				return
			}
		}
	}
}

func (k *keeper) path(name string) string { return filepath.Join(k.spec.Dir, name) }

func (k *keeper) lock() (*os.File, error) {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(5 * time.Millisecond) {
		if lock, err := tryLock(k.spec.Dir); lock != nil || err != nil {
			return lock, err
		}
		if time.Now().After(deadline) {
			return nil, errRunning
		}
	}
}

// start removes the files that a killed keeper left, and starts init. Until the state file names init's process, init holds the lock as
// well. So a process that gets the lock can find every process that may still run. start calls runs when the prison runs, before its
// network is ready.
func (k *keeper) start(lock *os.File, runs func([]prison.Weakness)) (weaker []prison.Weakness, err error) {
	if old, err := readState(k.spec.Dir); err == nil {
		if old.elsewhere(k.spec.Dir) {
			return nil, prison.ErrElsewhere
		}
		if err := old.clear(k.spec.Dir); err != nil {
			return nil, fmt.Errorf("clear the last run: %w", err)
		}
	}
	k.state.Keeper, k.state.Lock = identify(os.Getpid()), identityOf(k.path(lockName))
	k.limits = walls.PlanLimits(k.spec)
	k.state.Cgroups = k.limits.Directories()
	if err := hostfile.WriteRunning(k.path(stateName), k.state); err != nil {
		return nil, err
	}
	if k.network, err = usernet.New(k.spec, k.noter(&k.state.Relay)); err != nil {
		return nil, err
	}
	if err := k.limits.Make(); err != nil {
		return nil, err
	}
	socket, err := wire.Listen(k.spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer socket.Close() // init has a duplicate, so that connecting fails once init has ended
	if err := os.Chdir(baseFolder(k.spec)); err != nil {
		return nil, err
	}
	defer os.Chdir("/") //nolint:errcheck // the root folder exists
	enter := func(pid int) error {
		k.state.Init = identify(pid)
		return errors.Join(hostfile.WriteRunning(k.path(stateName), k.state), k.limits.Enter(pid))
	}
	if k.programs, err = startPrograms(k.spec, k.noter(&k.state.Recorder)); err != nil {
		return nil, err
	}
	k.init, k.link, err = newPrison(k.spec, true, k.limits, enter, socket, lock)
	if err != nil {
		return nil, err
	}
	weaker, err = wire.AwaitReady(k.link, wire.Handed{Tap: k.network.Connect, Listener: k.programs.Connect})
	if err == nil && k.network != nil {
		// The process of the network starts only now: until the prison runs, the caller waits for the prison and for the snapshot, which
		// keep two processors busy.
		runs(weaker)
		err = k.network.Await()
	}
	return weaker, err
}

// noter returns a function that writes a new process into a field of the state, and into the state file.
func (k *keeper) noter(field *processID) func(pid int) error {
	return func(pid int) error {
		k.noting.Lock()
		defer k.noting.Unlock()
		*field = identify(pid)
		return hostfile.WriteRunning(k.path(stateName), k.state)
	}
}

// listen reads messages from init until init ends, and waits for it.
func (k *keeper) listen() {
	for {
		var a wire.Announcement
		if _, err := k.link.Recv(&a); err != nil {
			break
		}
		if a.State != nil {
			k.command = a.State
			k.note()
			k.link.Send(wire.Announcement{Noted: true})
		}
		if len(a.Output) > 0 {
			k.writeLog(a.Output)
		}
	}
	k.init.Kill() // kill it, since init would end by itself only later
	k.init.Wait()
	if k.command != nil && !k.command.Exited {
		k.command.Exited, k.command.Status = true, killedStatus
		k.note()
	}
}

// note writes the state of the launched command to its file. A new command gets a new log before it can write any
// output.
func (k *keeper) note() {
	if !k.command.Exited {
		k.log.Close() // there may be none
		k.newLog()
	}
	// on failure, status does not show the command
	hostfile.Write(k.path(commandName), k.command) //nolint:errcheck
}

// newLog starts a new log. If that fails, the output is lost, and the command continues.
func (k *keeper) newLog() {
	k.logged = 0
	if k.times != nil {
		k.times.Close()
	}
	k.times = moments.New(k.path(timesName))
	k.log, _ = os.OpenFile(k.path(logName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// writeLog appends to the log, and keeps between one and two times logKept. The bytes are the agent's, so the
// keeper never interprets them.
func (k *keeper) writeLog(output []byte) {
	if k.log == nil {
		k.newLog()
	}
	n, _ := k.log.WriteAt(output, k.logged)
	k.times.Add(n, time.Now())
	if k.logged += int64(n); k.logged < 2*logKept {
		return
	}
	tail := make([]byte, logKept)
	if _, err := k.log.ReadAt(tail, k.logged-logKept); err != nil {
		return
	}
	if k.keepOnly(tail) == nil {
		k.logged = logKept
		k.times.Begins(logKept)
	}
}

// keepOnly shortens the log to its end. A full disk has no room for a new file. The end is then written into the same file, where a reader
// may see both states at once.
func (k *keeper) keepOnly(tail []byte) error {
	if hostfile.Replace(k.path(logName), tail) != nil {
		_, err := k.log.WriteAt(tail, 0)
		return errors.Join(err, k.log.Truncate(int64(len(tail))))
	}
	f, err := os.OpenFile(k.path(logName), os.O_RDWR, 0o600)
	if err == nil {
		k.log.Close()
		k.log = f
	}
	return err
}

func (k *keeper) cleanUp() {
	if k.state.Keeper.PID == 0 {
		return // the start was refused: the files belong to the last run, or to another prison
	}
	if k.init != nil {
		k.link.Close()
		k.init.Kill()
		k.init.Wait()
	}
	k.network.End()
	k.programs.End()
	k.state.clear(k.spec.Dir) //nolint:errcheck // the next command cleans up the rest
}

// clear ends the remaining processes of a run whose keeper has ended, and removes the run's files on the host.
func (s state) clear(dir string) error {
	if err := errors.Join(s.Init.end(), s.Relay.end()); err != nil {
		return err // its control groups cannot be removed either
	}
	s.Recorder.await(walls.StopPatience) // the recorder ends after its keeper and the prison, when it has written everything
	if err := s.Recorder.end(); err != nil {
		return err
	}
	var errs []error
	for _, g := range s.Cgroups {
		errs = append(errs, walls.ClearGroup(g))
	}
	if err := errors.Join(errs...); err != nil {
		return err // the state file stays for the next attempt
	}
	for _, name := range []string{wire.SocketName, stateName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EROFS) {
			return err
		}
	}
	return nil // on a read-only file system the files stay: they name processes that have ended
}
