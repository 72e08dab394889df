//go:build linux && amd64

package native_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"golang.org/x/sys/unix"
)

// hiderEnv makes the test binary, inside, execute a program in one of the ways of hidings, and ranEnv makes it that program. Its value is
// what the program does after it has written down that it runs.
const (
	hiderEnv = "HIDER"
	ranEnv   = "HIDDEN"
)

func init() {
	rolesHere[hiderEnv] = beHider
	rolesHere[ranEnv] = beHidden
}

// hidings are the ways in which a process tries to execute ./evil so that the record has another program, or none. A thread changes the path
// ./good to ./evil while the recorder reads it. In some of them, calls of other threads fail meanwhile, and the program kills itself.
var hidings = []string{"race", "killed", "noise", "twice", "addresses", "orphaned", "leaving", "overwritten", "crowd"}

// ran is a program that has run, as it describes itself.
type ran struct {
	PID   int
	Exe   string
	Token string
}

// beHidden writes down which program this is. It uses the addresses of the program before, if they are among its arguments.
func beHidden(then string) int {
	exe, _ := os.Readlink("/proc/self/exe")
	line, _ := json.Marshal(ran{os.Getpid(), exe, os.Args[1]})
	f, err := os.OpenFile("/workspace/ran", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return 1
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return 1
	}
	switch then {
	case "killed", "noise", "crowd":
		unix.Kill(os.Getpid(), unix.SIGKILL)
	case "twice": // the next program has the same size of arguments and environment
		os.Setenv(ranEnv, "race0")
		fmt.Fprintln(os.Stderr, syscall.Exec("./"+filepath.Base(exe), os.Args, os.Environ()))
	case "addresses":
		takeAddresses(os.Args[2])
	case "overwritten":
		overwriteArguments("./good")
	}
	return 0
}

// takeAddresses gives this process the addresses of another program. A prison must refuse that.
func takeAddresses(text string) {
	var m [12]uint64 // struct prctl_mm_map, without its last two fields
	var stack, argFrom, argTo, environFrom, environTo uint64
	fmt.Sscanf(text, "%d,%d,%d,%d,%d", &stack, &argFrom, &argTo, &environFrom, &environTo)
	from := stack &^ 4095
	unix.Syscall6(unix.SYS_MMAP, uintptr(from), uintptr(environTo-from+4096)&^4095, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, 0, 0)
	now := ownAddresses()
	copy(m[:], []uint64{now[26], now[27], now[45], now[46], now[47], now[47], stack, argFrom, argTo, environFrom, environTo, 0})
	full := append(m[:], 0xffffffff<<32)
	unix.Prctl(unix.PR_SET_MM, unix.PR_SET_MM_MAP, uintptr(unsafe.Pointer(&full[0])), uintptr(len(full)*8), 0)
	time.Sleep(50 * time.Millisecond)
}

// ownAddresses returns the fields of /proc/self/stat by their numbers in proc_pid_stat(5).
func ownAddresses() (field [60]uint64) {
	text, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	for i, word := range strings.Fields(rest) {
		field[min(i+3, len(field)-1)], _ = strconv.ParseUint(word, 10, 64)
	}
	return field
}

// overwriteArguments changes the kernel's copy of the path, which lies behind the environment.
func overwriteArguments(path string) {
	f, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err == nil {
		f.WriteAt([]byte(path), int64(ownAddresses()[51])) // the record has the file in any case
	}
}

// beHider executes the program. The value is the way and a token.
func beHider(value string) int {
	way, token, _ := strings.Cut(value, " ")
	runtime.LockOSThread()
	path := []byte("./good\x00")
	first := ownAddresses()
	words := []string{"good", token, fmt.Sprintf("%d,%d,%d,%d,%d", first[28], first[48], first[49], first[50], first[51])}
	argv, _ := syscall.SlicePtrFromStrings(words)
	environ, _ := syscall.SlicePtrFromStrings([]string{ranEnv + "=" + way})
	execute := func(path []byte, argv []*byte) {
		unix.Syscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&environ[0])))
	}
	var begin atomic.Bool
	inThread := func(do func()) {
		go func() {
			runtime.LockOSThread()
			for !begin.Load() {
				runtime.Gosched()
			}
			do()
		}()
	}
	number, _ := strconv.Atoi(token)
	change := func() {
		time.Sleep(time.Duration(number%40) * 4 * time.Microsecond)
		copy(path[2:], "evil")
	}
	inThread(change)
	switch way {
	case "killed", "noise", "crowd":
		for range map[string]int{"killed": 1, "noise": 3, "crowd": 80}[way] {
			inThread(func() {
				argv, _ := syscall.SlicePtrFromStrings([]string{"none"})
				for absent := []byte("./none\x00"); ; {
					execute(absent, argv)
				}
			})
		}
	case "orphaned": // the first thread ends, and another one executes the program
		inThread(func() { execute(path, argv) })
		begin.Store(true)
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	case "leaving": // another thread ends the process meanwhile
		inThread(func() {
			time.Sleep(time.Duration(number%30) * 10 * time.Microsecond)
			unix.Exit(0)
		})
	}
	begin.Store(true)
	execute(path, argv)
	return 3
}

// TestHiddenPrograms compares the record with what programs have written down themselves. Each program that has run must be in the record with
// its file, or as disputed.
func TestHiddenPrograms(t *testing.T) {
	_, s, p := recorded(t)
	bringSelf(t, p)
	shell(t, p, "ln try good; ln try evil; : >ran")
	rounds := 15
	if n, err := strconv.Atoi(os.Getenv(longRuns)); err == nil {
		rounds = n
	}
	var out bytes.Buffer
	for i := range rounds {
		script := ""
		for n, way := range hidings {
			script += fmt.Sprintf("HIDER='%s %03d' ./try & ", way, i*len(hidings)+n)
			if n%3 == 2 {
				script += "wait\n"
			}
		}
		if _, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script + "wait"}, Stdout: &out, Stderr: &out}); err != nil {
			t.Fatal(err)
		}
	}
	if err := execs.Complete(t.Context(), s.Dir); err != nil {
		t.Fatal(err)
	}
	all, err := execs.Read(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	compareHidden(t, p, all)
}

// compareHidden compares the record with the file in which the programs have written.
func compareHidden(t *testing.T, p prison.Prison, all []execs.Record) {
	t.Helper()
	var out bytes.Buffer
	if _, err := p.Exec(t.Context(), prison.Process{Argv: []string{"cat", "ran"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	evil, disputed, missing := map[string]int{}, map[string]int{}, 0
	used := map[uint64]bool{}
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var r ran
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.Atoi(r.Token)
		way := hidings[number%len(hidings)]
		if strings.HasSuffix(r.Exe, "/evil") {
			evil[way]++
		}
		known := false
		for _, e := range all {
			if !known && !used[e.Seq] && e.PID == r.PID && e.Ran() && len(e.Argv) > 1 && e.Argv[1] == r.Token && (e.Disputed || *e.Exe == r.Exe) {
				known, used[e.Seq] = true, true
				if e.Disputed {
					disputed[way]++
				}
			}
		}
		if !known {
			missing++
			for _, e := range all {
				if e.PID == r.PID {
					t.Logf("%s: %s", way, described(e))
				}
			}
			t.Errorf("%s: not in the record: %+v", way, r)
		}
	}
	t.Logf("evil %v, disputed %v, missing %d", evil, disputed, missing)
}
