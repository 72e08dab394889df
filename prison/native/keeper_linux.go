package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"

	"golang.org/x/sys/unix"
)

const (
	// lockPatience is how long a new keeper waits for the lock: a Stop may be cleaning up.
	lockPatience = 3 * time.Second
	// What a launched command showed last, see [prison.Prison.Launch].
	logKept = 1 << 20
)

// keeper is the process outside that a started prison depends on.
type keeper struct {
	spec    prison.Spec
	state   state
	limits  *limits
	init    *os.Process
	link    conn
	relay   *os.Process // of an open network
	wire    conn        // to it
	command *launchedState
	log     *os.File
	logged  int64
}

func keeperMain(config []byte, _ int) int {
	unix.Umask(0o077)
	caller, err := fileConn(inheritedFile(0))
	if err != nil {
		return 1
	}
	var k keeper
	if err := json.Unmarshal(config, &k.spec); err != nil {
		return 1
	}
	k.spec = unpackSpec(k.spec)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	signal.Ignore(unix.SIGHUP, unix.SIGINT)
	lock, err := k.lock()
	if err != nil {
		caller.send(announcement{Error: err.Error()})
		return 1
	}
	defer runtime.KeepAlive(lock) // the end of the process releases it, and nothing before
	weaker, err := k.start(lock)
	if err != nil {
		k.cleanUp()
		caller.send(announcement{Error: err.Error()})
		return 1
	}
	caller.send(announcement{Weaker: weaker})
	caller.Close()
	rest()
	go func() {
		awaitEnd(stop, lock)
		k.init.Kill()
	}()
	k.listen()
	k.cleanUp()
	return 0
}

// removedPoll is how often a keeper looks whether its folder has been removed.
const removedPoll = 2 * time.Second

// awaitEnd waits for the signal to end, or until the lock is removed with all that is around it: then nobody could find
// the prison any more to end it.
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

// start clears what a killed keeper left, and starts init. Until it is written down which process that is, init
// holds the lock as well: whoever gets it knows all that could still run.
func (k *keeper) start(lock *os.File) (weaker []prison.Weakness, err error) {
	if old, err := readState(k.spec.Dir); err == nil {
		if old.elsewhere(k.spec.Dir) {
			return nil, prison.ErrElsewhere
		}
		if err := old.clear(k.spec.Dir); err != nil {
			return nil, fmt.Errorf("clear the last run: %w", err)
		}
	}
	k.state.Keeper, k.state.Lock = identify(os.Getpid()), identityOf(k.path(lockName))
	k.limits = planLimits(k.spec, asked)
	k.state.Cgroups = k.limits.directories()
	if err := hostfile.Write(k.path(stateName), k.state); err != nil {
		return nil, err
	}
	if err := k.limits.make(); err != nil {
		return nil, err
	}
	socket, err := listen(k.spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer socket.Close() // init has it; with init, connecting fails
	if err := os.Chdir(baseFolder(k.spec)); err != nil {
		return nil, err
	}
	defer os.Chdir("/") //nolint:errcheck // it is there
	enter := func(pid int) error {
		k.state.Init = identify(pid)
		return errors.Join(hostfile.Write(k.path(stateName), k.state), k.limits.enter(pid))
	}
	k.init, k.link, err = newPrison(k.spec, true, k.limits, enter, socket, lock)
	if err != nil {
		return nil, err
	}
	return awaitReady(k.link, k.connect)
}

// connect starts the relay of an open network.
func (k *keeper) connect(tap *os.File) (err error) {
	if k.relay, k.wire, err = startRelay(k.spec, tap); err != nil {
		return err
	}
	k.state.Relay = identify(k.relay.Pid)
	return hostfile.Write(k.path(stateName), k.state)
}

// listen serves init until it ends, and waits for it.
func (k *keeper) listen() {
	for {
		var a announcement
		if _, err := k.link.recv(&a); err != nil {
			break
		}
		if a.State != nil {
			k.command = a.State
			k.note()
			k.link.send(announcement{Noted: true})
		}
		if len(a.Output) > 0 {
			k.writeLog(a.Output)
		}
	}
	k.init.Kill() // it ends on its own, but then at once
	k.init.Wait()
	if k.command != nil && !k.command.Exited {
		k.command.Exited, k.command.Status = true, killedStatus
		k.note()
	}
}

// note writes the launched command's state; a new command gets a new log, which is there before it shows anything.
func (k *keeper) note() {
	if !k.command.Exited {
		if k.log != nil {
			k.log.Close()
		}
		k.newLog()
	}
	hostfile.Write(k.path(commandName), k.command) //nolint:errcheck // status then does not know of it
}

// newLog begins the log anew. Without one, what is shown is lost, and the command goes on.
func (k *keeper) newLog() {
	k.log, k.logged = nil, 0
	if f, err := os.OpenFile(k.path(logName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
		k.log = f
	}
}

// writeLog keeps between one and two times logKept. The bytes are the agent's: they are never looked at.
func (k *keeper) writeLog(output []byte) {
	if k.log == nil {
		k.newLog()
	}
	n, _ := k.log.Write(output)
	if k.logged += int64(n); k.logged < 2*logKept {
		return
	}
	tail := make([]byte, logKept)
	if _, err := k.log.ReadAt(tail, k.logged-logKept); err != nil {
		return
	}
	k.log.Close()
	k.log = nil
	if hostfile.Replace(k.path(logName), tail) != nil {
		return
	}
	if f, err := os.OpenFile(k.path(logName), os.O_RDWR|os.O_APPEND, 0o600); err == nil {
		k.log, k.logged = f, logKept
	}
}

func (k *keeper) cleanUp() {
	if k.state.Keeper.PID == 0 {
		return // it was refused: what is there is still the last run's, or another prison's
	}
	if k.init != nil {
		k.link.Close()
		k.init.Kill()
		k.init.Wait()
	}
	endRelay(k.relay, k.wire)
	k.state.clear(k.spec.Dir) //nolint:errcheck // what is left is the next command's
}

// clear ends what is left of a run whose keeper does not run any more, and removes its traces on the host.
func (s state) clear(dir string) error {
	if err := errors.Join(s.Init.end(stopPatience), s.Relay.end(stopPatience)); err != nil {
		return err // nor would its control groups
	}
	var errs []error
	for _, g := range s.Cgroups {
		errs = append(errs, removeCgroup(g))
		sweepLooks(g + "-")
	}
	if err := errors.Join(errs...); err != nil {
		return err // the state stays, for the next attempt
	}
	for _, name := range []string{socketName, stateName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
