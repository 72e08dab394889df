// Package wire starts the roles of a native prison and carries the messages between them.
//
// A role is this program, run again as a part of a prison. The name of the role is argv[0]. Its configuration is a sealed memory file on
// descriptor 3. The next descriptor is the link to the process that started the role. Messages go over such links, and over the socket
// through which requests reach init. A message is its length and a value in JSON, with descriptors as ancillary data. Begin reading at
// [Begin] and [Conn.Send].
package wire

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ConfigFD is the descriptor of a role's configuration. Other inherited descriptors follow it.
const ConfigFD = 3

// roleSeals on descriptor 3, together with a single known argument, distinguish a role from a user's call: only
// [NewConfig] puts a sealed memory file there.
const roleSeals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL

// Names of the roles in the process list. The name that is visible inside says nothing about this program.
const (
	Keeper  = "keeper"
	Builder = "builder"
	Init    = "init"
	Helper  = "helper"
	Relay   = "relay"
	Egress  = "egress" // of package egress
	// Recorder is the role of package execs.
	Recorder = "recorder"
)

// envelope is the content of the sealed memory file.
type envelope struct {
	Role      string // name of the role
	Inherited int    // number of descriptors after ConfigFD
	Config    json.RawMessage
}

// Role is the work of a process that was started as a part of a prison. It returns the exit status.
type Role func(config []byte, inherited int) int

// Serve returns the role that does the work of a function. The function gets the connection to the process that started the role, and the
// configuration.
func Serve[Config any](serve func(starter Conn, c Config) int) Role {
	return func(config []byte, _ int) int {
		starter, err := FileConn(InheritedFile(0))
		var c Config
		if err != nil || json.Unmarshal(config, &c) != nil {
			return 1
		}
		return serve(starter, c)
	}
}

// Begin does the work of the role that this process was started for, and exits. In a process that a user started,
// Begin returns.
func Begin(roles map[string]Role) {
	if len(os.Args) != 1 || roles[os.Args[0]] == nil {
		return
	}
	if seals, err := unix.FcntlInt(ConfigFD, unix.F_GET_SEALS, 0); err != nil || seals != roleSeals {
		return
	}
	e, err := readConfig()
	if err != nil || e.Role != os.Args[0] {
		return
	}
	// A thread has its own credentials and parent-death signal.
	runtime.LockOSThread()
	closeInherited(ConfigFD + 1 + e.Inherited)
	os.Exit(roles[e.Role](e.Config, e.Inherited))
}

func readConfig() (e envelope, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(ConfigFD, &st); err != nil {
		return e, err
	}
	body := make([]byte, st.Size)
	if _, err := unix.Pread(ConfigFD, body, 0); err != nil {
		return e, err
	}
	return e, json.Unmarshal(body, &e)
}

// NewConfig returns the sealed memory file that passes a role its configuration.
func NewConfig(role string, config any, inherited int) (*os.File, error) {
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	body, err = json.Marshal(envelope{Role: role, Inherited: inherited, Config: body})
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "config")
	if _, err := f.Write(body); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, roleSeals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal memory file: %w", err)
	}
	return f, nil
}

// PassOn puts a configuration of [NewConfig] on descriptor 3 for the program that this process executes next. That program gets the
// configuration, the inherited descriptors that follow it, and the standard streams, and no other descriptor.
func PassOn(config *os.File, inherited int) error {
	if err := unix.Dup3(int(config.Fd()), ConfigFD, 0); err != nil {
		return fmt.Errorf("hand configuration on: %w", err)
	}
	if err := unix.CloseRange(uint(ConfigFD+1+inherited), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	return nil
}

// InheritedFile returns the nth descriptor after the configuration.
func InheritedFile(n int) *os.File {
	fd := ConfigFD + 1 + n
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "inherited")
}

// closeInherited closes the descriptors that an ancestor left open on exec, from a number on, except those that the Go runtime opened.
func closeInherited(from int) {
	unix.CloseOnExec(ConfigFD) // the configuration stays open, so that nothing else gets its number
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		// if this fails, nothing else can be done
		unix.CloseRange(uint(from), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < from {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") {
			continue // closed already (ReadDir's own), or epoll and its wake-up descriptor
		}
		unix.Close(fd)
	}
}
