package containers

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
	"github.com/git-airlock/git-airlock/prison/watch/recorders"

	"golang.org/x/sys/unix"
)

// keeperRole is the name of the keeper in the host's process list.
const keeperRole = "programs"

// A process that was started as a keeper runs keep here and exits, in every program that imports this package.
func init() { wire.Begin(map[string]wire.Role{keeperRole: wire.Serve(keep)}) }

// keeper holds the listeners of a container.
type keeper struct {
	Order
	first     *os.File // a pidfd of the container's first process
	recorders *recorders.Recorders
	socket    wire.Conn
}

// keep is the role of the keeper.
func keep(caller wire.Conn, o Order) int {
	unix.Umask(0o077)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	k := &keeper{Order: o.unpacked()}
	err := k.begin()
	a := reply{Elsewhere: errors.Is(err, ErrElsewhere)}
	if err != nil {
		a.Error = err.Error()
	}
	if sent := caller.Send(a); sent == nil && err == nil {
		caller.Close()
		wire.Rest()
		wire.AwaitEnd(int(k.first.Fd()))
	}
	k.end()
	return 0
}

// begin prepares everything for the first command.
func (k *keeper) begin() error {
	fd, err := unix.PidfdOpen(k.First, 0)
	if err != nil || !owns(k.Container, k.First) {
		return ErrElsewhere
	}
	k.first = os.NewFile(uintptr(fd), "first")
	err = k.writeEntrance()
	if err != nil && wire.HasEnded(fd) { // the image may lack what the process needs, which the caller finds out
		return ErrElsewhere
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", entrancePath, err)
	}
	k.recorders, err = recorders.Start(recorders.Config{Dir: k.Dir, Deny: k.Deny, Env: k.Env, Note: k.note, First: k.first})
	if err != nil {
		return err
	}
	if err := k.recorders.Begin(); err != nil {
		return err
	}
	return k.listen()
}

// owns reports whether a process belongs to a container.
func owns(container string, pid int) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && container != "" && strings.Contains(string(groups), container)
}

// writeEntrance puts the entrance into the container. No process of the agent runs yet.
func (k *keeper) writeEntrance() error {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", k.First), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	folder, err := unix.Openat2(root, filepath.Dir(entranceName), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	name := filepath.Base(entranceName)
	if err := unix.Unlinkat(folder, name, 0); err != nil && err != unix.ENOENT {
		return err
	}
	fd, err := unix.Openat(folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), entrancePath)
	filter, flags := walls.ProgramFilter()
	_, err = f.Write(entrance(runtime.GOARCH, filter, flags))
	return errors.Join(err, f.Chmod(0o111), f.Close()) // not readable, see the package's documentation
}

// note stores the process id of the recorder.
func (k *keeper) note(pid int) error {
	return hostfile.Write(filepath.Join(k.Dir, stateName), state{Container: k.Container, First: k.First, Recorder: pid})
}

// listen makes the socket, and answers its connections.
func (k *keeper) listen() (err error) {
	if k.socket, err = wire.ListenIn(filepath.Join(k.Dir, folderName)); err == nil {
		go k.socket.Serve(k.hear)
	}
	return err
}

// wordPatience bounds the time for a message, which comes at once, except on a busy machine. Only the owner of the folder can
// connect.
const wordPatience = 20 * time.Second

// hear receives a word over a connection, and obeys it.
func (k *keeper) hear(c wire.Conn) {
	defer c.Close()
	var w word
	c.SetReadDeadline(time.Now().Add(wordPatience)) // it fails only if the connection is closed
	if _, err := c.Recv(&w); err != nil {
		return
	}
	if w.Watch {
		c.SetReadDeadline(time.Time{}) // as above
		<-c.Gone()
		return
	}
	a := reply{}
	if err := k.passListener(w); err != nil {
		a.Error = err.Error()
	}
	c.Send(a) //nolint:errcheck // the caller has ended
}

// passListener takes the listener of a process, and gives it to the recorder. A process without one is killed: it would wait for ever.
func (k *keeper) passListener(w word) error {
	fd, err := unix.PidfdOpen(w.PID, 0)
	if err != nil {
		return nil // the process has ended, which the engine reports
	}
	defer unix.Close(fd)
	if !owns(k.Container, w.PID) {
		if wire.HasEnded(fd) {
			return nil
		}
		return ErrElsewhere
	}
	listener, err := take(fd, w.PID)
	if err == nil && listener != nil {
		err = k.recorders.Add(listener, execs.Given{Enters: true, Hidden: w.Hidden})
	}
	if err != nil {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	return err
}

// takePatience is how long a process may take to ask for its listener.
const takePatience = 20 * time.Second

// take returns the listener of a process as soon as the process has one, or nil if it ends before.
func take(pidfd, pid int) (*os.File, error) {
	const pause = 300 * time.Microsecond
	for deadline := time.Now().Add(takePatience); time.Now().Before(deadline); time.Sleep(pause) {
		if number, ok := findListener(pid); ok {
			fd, err := unix.PidfdGetfd(pidfd, number, 0)
			switch {
			case err == unix.ESRCH:
				return nil, nil // the process has ended since then
			case err != nil:
				return nil, fmt.Errorf("take the listener: %w", err)
			}
			return os.NewFile(uintptr(fd), "listener"), nil
		}
		if wire.HasEnded(pidfd) {
			return nil, nil
		}
	}
	return nil, errors.New("the command does not ask for a listener")
}

// findListener returns the number of a process's descriptor that is a listener.
func findListener(pid int) (number int, ok bool) {
	folder := fmt.Sprintf("/proc/%d/fd/", pid)
	numbers, _ := walls.Numbers(folder) // none for a process that has ended
	for _, number := range numbers {
		if target, err := os.Readlink(folder + strconv.Itoa(number)); err == nil && target == "anon_inode:seccomp notify" {
			return number, true
		}
	}
	return 0, false
}

// end ends the record, and the container with it.
func (k *keeper) end() {
	if k.first != nil {
		unix.PidfdSendSignal(int(k.first.Fd()), unix.SIGKILL, nil, 0)
	}
	k.recorders.End()
	if k.socket.File != nil {
		os.Remove(filepath.Join(k.Dir, folderName, wire.SocketName)) // the keeper listens no more
	}
}
