package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// Announcement is a message over the link between parent and child. An empty one from the parent means "go on", and one from the child
// "ready".
type Announcement struct {
	Error  string            `json:",omitempty"` // the failure of the child
	Lack   unix.Errno        `json:",omitempty"` // its cause, if the machine lacked something, see [Failed]
	Weaker []prison.Weakness `json:",omitempty"`
	Runs   bool              `json:",omitempty"` // the keeper's prison runs, with the weaknesses in Weaker, and its network is not ready yet
	Tap    bool              `json:",omitempty"` // the other end of the interface comes with this message
	// Listener means that this message passes the descriptor to which the kernel sends the system calls of a recorded prison.
	Listener bool `json:",omitempty"`
	// Output and State are those of a launched command, from init to the keeper.
	Output []byte   `json:",omitempty"`
	State  *Command `json:",omitempty"`
	Noted  bool     `json:",omitempty"` // the keeper has written State to its file
}

// lacks are the causes that an announcement passes on. The user can do something about them.
var lacks = []unix.Errno{unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE}

// Failed returns the announcement of a failure.
func Failed(err error) Announcement {
	a := Announcement{Error: err.Error()}
	for _, errno := range lacks {
		if errors.Is(err, errno) {
			a.Lack = errno
		}
	}
	return a
}

// failure is a failure that the other side has announced.
type failure struct {
	text string
	lack unix.Errno
}

func (f *failure) Error() string { return f.text }

// Unwrap returns the cause, nil if it is not one of lacks.
func (f *failure) Unwrap() error {
	if slices.Contains(lacks, f.lack) {
		return f.lack
	}
	return nil
}

// Command is the state of a launched command, in the form that the keeper writes to a file.
type Command struct {
	Argv   []string `json:"argv"`
	Exited bool     `json:"exited"`
	Status int      `json:"status"` // exit status, if Exited
}

// Handed are functions for what a child sends before it is ready. A descriptor without a function for it is an error.
type Handed struct {
	Tap      func(*os.File) error // the other end of a network interface
	Listener func(*os.File) error
	Runs     func(weaker []prison.Weakness) // called when the prison runs although the child is not ready yet; may be nil
}

// step returns the function for the descriptor of an announcement, and the name of that step.
func (h Handed) step(a Announcement) (what string, do func(*os.File) error) {
	if a.Tap {
		return "connect the network", h.Tap
	}
	return "record programs", h.Listener
}

// AwaitReady waits until the child announces that it is ready, and returns the weaknesses of its prison, or the
// error that the child reports.
func AwaitReady(link Conn, handed Handed) (weaker []prison.Weakness, err error) {
	for {
		var a Announcement
		files, err := link.Recv(&a)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
			return nil, errors.New("the first process ended before it was ready")
		case err != nil:
			return nil, fmt.Errorf("wait for the first process: %w", err)
		case a.Error != "":
			return nil, &failure{a.Error, a.Lack}
		case a.Runs:
			if handed.Runs != nil {
				handed.Runs(a.Weaker)
			}
			continue
		case !a.Tap && !a.Listener:
			return a.Weaker, nil
		}
		what, step := handed.step(a)
		if step == nil || len(files) != 1 {
			CloseAll(files)
			return nil, errors.New("the first process sent an unexpected descriptor")
		}
		if err := step(files[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
}

const (
	// KillPatience is how long one side waits until the other has reported the death of a killed process, or acknowledged a state.
	KillPatience = 5 * time.Second
	// Silence is how long the output of an exited process must be silent before reading ends. A child of the
	// process may still hold the pipe, and as long as it writes, it may be part of a pipeline.
	Silence = 200 * time.Millisecond
)
