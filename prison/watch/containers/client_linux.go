package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/native/walls"
	"github.com/git-airlock/git-airlock/prison/native/wire"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"golang.org/x/sys/unix"
)

// Names in the host folder of a prison: the folder of the keeper's socket, and the file with a [state].
const (
	folderName = "programs"
	stateName  = "programs.json"
)

// Files are the files that a record leaves in the host folder of a prison, beside the record.
var Files = append([]string{folderName + "/" + wire.SocketName, folderName, stateName}, execs.Files[:2]...)

// state is what the host stores about a record.
type state struct {
	Container string `json:"container"`
	First     int    `json:"first"`    // process id of the container's first process
	Recorder  int    `json:"recorder"` // process id
}

// Order describes a record to begin.
type Order struct {
	Dir       string   // the host folder of the prison
	Container string   // the engine's id of the container
	First     int      // process id of its first process
	Deny      []string // see [execs.ParseRules]
	Env       []string // the variables of the prison, whose values are masked
}

// packed returns the order in the form of a message.
func (o Order) packed() Order {
	o.Dir, o.Deny, o.Env = wire.Pack(o.Dir), wire.PackAll(o.Deny), wire.PackAll(o.Env)
	return o
}

func (o Order) unpacked() Order {
	o.Dir, o.Deny, o.Env = wire.Unpack(o.Dir), wire.UnpackAll(o.Deny), wire.UnpackAll(o.Env)
	return o
}

// word is a message to the keeper.
type word struct {
	PID    int      // of a process that is waiting for its listener
	Hidden []string // see [execs.Given]
	Watch  bool     // the keeper keeps the connection open as long as it runs
}

// reply is the keeper's answer.
type reply struct {
	Error     string
	Elsewhere bool // see [ErrElsewhere]
}

func (r reply) err() error {
	switch {
	case r.Elsewhere:
		return ErrElsewhere
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// Check returns an error if programs in containers cannot be recorded here.
func Check() error {
	switch {
	case os.Geteuid() != 0:
		return errors.New("only root can read the arguments of programs in a container")
	case !hasEntrance():
		return errors.New("not on this processor")
	}
	return walls.CheckPrograms()
}

// Expect makes Recorded return true, so that no command is executed before [Start].
func Expect(dir string) error { return hostfile.Write(filepath.Join(dir, stateName), state{}) }

// Start starts the keeper of a container's record.
func Start(ctx context.Context, o Order) error {
	p, link, err := wire.Detach(keeperRole, o.packed(), wire.RoleEnv)
	if err != nil {
		return fmt.Errorf("start the keeper of the programs' record: %w", err)
	}
	defer link.Close()
	stop := context.AfterFunc(ctx, func() { p.Kill() }) // the keeper may have ended already
	var r reply
	_, err = link.Recv(&r)
	switch {
	case !stop():
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("the keeper of the programs' record ended: %w", err)
	}
	return r.err()
}

// Recorded reports whether the programs of the prison with a host folder are recorded.
func Recorded(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, stateName))
	return !errors.Is(err, fs.ErrNotExist)
}

// Alive reports whether the keeper of a record runs.
func Alive(dir string) bool { return wire.Answers(filepath.Join(dir, folderName)) }

// AliveElsewhere reports whether the recorder and the container of a record run. If no keeper answers here, dir is then a copy of their
// folder. The recorder of a keeper that was killed is not enough: it ends the container, and runs for a moment longer.
func AliveElsewhere(dir string) bool {
	s := readState(dir)
	if s.Recorder == 0 || !Runs(s.Container, s.First) {
		return false
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Recorder))
	return err == nil && bytes.HasPrefix(words, []byte(wire.Recorder))
}

// Follow begins to record the programs of a process that an engine has started with the command line of [Enter]. The process, whose id is
// pid, waits for that. hidden are the paths of programs that are not recorded. The error is [ErrEnded] if the container's first process has
// ended, even if the engine does not know that yet.
func Follow(dir string, pid int, hidden []string) error {
	err := send(dir, word{PID: pid, Hidden: hidden})
	if err == nil {
		return nil
	}
	// The keeper ends with the container, before the engine knows that it has ended.
	if s := readState(dir); !Runs(s.Container, s.First) {
		return ErrEnded
	}
	return err
}

// send sends a word to the keeper and returns the error of its answer. The error does not wrap its cause, because callers would
// take an error of the keeper's socket for an error of the engine.
func send(dir string, w word) error {
	c, err := wire.Dial(filepath.Join(dir, folderName))
	if err != nil {
		return fmt.Errorf("find the keeper of the programs' record: %v", err) //nolint:errorlint // see above
	}
	defer c.Close()
	var r reply
	if err = c.Send(w); err == nil {
		_, err = c.Recv(&r)
	}
	if err != nil {
		return fmt.Errorf("the keeper of the programs' record ended: %v", err) //nolint:errorlint // see above
	}
	return r.err()
}

// First returns the process id of the first process of a container whose programs are recorded, or 0 without a record.
func First(dir string) int { return readState(dir).First }

// readState returns the state of a record. It is zero without a record.
func readState(dir string) (s state) {
	hostfile.Read(filepath.Join(dir, stateName), &s) //nolint:errcheck // no record
	return s
}

// Runs reports whether the first process of a container runs on this kernel. It returns false for a container on another kernel.
// An engine may report the end of a container seconds later.
func Runs(container string, first int) bool {
	if first <= 0 {
		return false
	}
	fd, err := unix.PidfdOpen(first, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return owns(container, first) && !wire.HasEnded(fd)
}

// End waits until the keeper of a container that has ended has ended, too, which makes the record complete. It kills a keeper that does not
// end in time.
func End(ctx context.Context, dir string) error {
	folder := filepath.Join(dir, folderName)
	if c, err := wire.Dial(folder); err == nil {
		defer c.Close()
		c.Send(word{Watch: true}) //nolint:errcheck // it has ended
		select {
		case <-c.Gone():
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(walls.StopPatience):
			wire.KillListener(folder) //nolint:errcheck // it has ended
		}
	}
	err := os.Remove(filepath.Join(dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
