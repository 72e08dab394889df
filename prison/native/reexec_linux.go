package native

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// configFD is where a role finds its configuration; what else it inherits follows.
const configFD = 3

// roleSeals on descriptor 3 together with a lone, known argv[0] tell a role from a user's call:
// nothing but [newConfig] makes a sealed memory file there.
const roleSeals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL

// Names of the roles as the process list shows them. The one that is visible inside is plain.
const (
	roleKeeper = "keeper"
	roleBuild  = "builder"
	roleInit   = "init"
	roleHelper = "helper"
	roleRelay  = "relay"
)

var roles = map[string]func(config []byte, inherited int) int{
	roleKeeper: keeperMain,
	roleBuild:  buildMain,
	roleInit:   initMain,
	roleHelper: helperMain,
	roleRelay:  relayMain,
}

// envelope is what the sealed memory file holds.
type envelope struct {
	Role      string
	Inherited int // descriptors beyond configFD
	Config    json.RawMessage
}

// A process that was started as a part of a prison does that part's work and exits, in every program that has this package.
// It does so here and not in main: packages are made ready in the order of their import paths as far as their own imports allow
// (Go spec, "Program initialization"), so that the expressions of an image's name alone, which are compiled in the engine's
// client, took each of them longer than the runtime does. Three start one after the other before a prison runs. For this
// package to be early it imports nothing that is late: not net, net/netip, regexp, nor runtime/debug.
func init() {
	if len(os.Args) != 1 || roles[os.Args[0]] == nil {
		return
	}
	if seals, err := unix.FcntlInt(configFD, unix.F_GET_SEALS, 0); err != nil || seals != roleSeals {
		return
	}
	e, err := readConfig()
	if err != nil || e.Role != os.Args[0] {
		return
	}
	// Pdeathsig and credentials belong to threads.
	runtime.LockOSThread()
	closeInherited(configFD + 1 + e.Inherited)
	os.Exit(roles[e.Role](e.Config, e.Inherited))
}

func readConfig() (e envelope, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(configFD, &st); err != nil {
		return e, err
	}
	body := make([]byte, st.Size)
	if _, err := unix.Pread(configFD, body, 0); err != nil {
		return e, err
	}
	return e, json.Unmarshal(body, &e)
}

// newConfig returns the sealed memory file that gives a role its configuration.
func newConfig(role string, config any, inherited int) (*os.File, error) {
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

// inheritedFile returns the nth descriptor after the configuration.
func inheritedFile(n int) *os.File {
	fd := configFD + 1 + n
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "inherited")
}

// closeInherited closes what the caller's caller left open without close-on-exec, and spares what
// the Go runtime opened for itself.
func closeInherited(from int) {
	unix.CloseOnExec(configFD) // and it stays open, so that nothing else gets its number
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		unix.CloseRange(uint(from), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck // the other way is the one above
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < from {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") {
			continue // gone already (ReadDir's own), or epoll and its wake-up
		}
		unix.Close(fd)
	}
}
