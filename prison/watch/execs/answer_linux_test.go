package execs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestAnsweredCallIsForgotten checks that a recorder which waits for a call does not seem to work on the previous one. Its keeper would
// replace it, and the successor would record that call again.
func TestAnsweredCallIsForgotten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.Close() // a listener without processes
	s := slot{now: notification{id: 7, number: unix.SYS_GETPID}}
	a := answerer{recorder: &recorder{}, listener: listener(r.Fd()), slot: &s, within: -1}
	a.answer()
	if s.now.id != 0 {
		t.Errorf("call %d seems to wait for an answer", s.now.id)
	}
}

// TestArguments reads arguments of every form, with and without the first, short read.
func TestArguments(t *testing.T) {
	long := strings.Repeat("x", 3*firstWord)
	many := slices.Repeat([]string{"word"}, 100)
	for _, words := range [][]string{{}, {""}, {"a"}, {"a", "", "b c"}, {long, "b"}, {"a", long}, many, slices.Repeat([]string{long}, 60), slices.Repeat([]string{long}, 100)} {
		pointers := make([]uintptr, 0, len(words)+1)
		for _, w := range words {
			b, _ := unix.BytePtrFromString(w)
			pointers = append(pointers, uintptr(unsafe.Pointer(b)))
			kept = append(kept, b)
		}
		pointers = append(pointers, 0)
		path, _ := unix.BytePtrFromString("/" + long)
		kept = append(kept, path)
		at := uint64(uintptr(unsafe.Pointer(&pointers[0])))
		m := memory{os.Getpid()}
		buffer := make([]byte, len(procfs{}.buffer))
		name, whole, got, all := m.arguments(buffer, uint64(uintptr(unsafe.Pointer(path))), at)
		want, wantAll := m.list(at, maxArguments)
		if !slices.Equal(got, want) || all != wantAll || name != "/"+long || !whole {
			t.Errorf("%d words: %d %v, want %d %v", len(words), len(got), all, len(want), wantAll)
		}
		if all && !slices.Equal(got, words) && len(words) > 0 {
			t.Errorf("%q became %q", words, got)
		}
	}
	if _, _, got, all := (memory{os.Getpid()}).arguments(make([]byte, len(procfs{}.buffer)), 0, 8); len(got) > 0 || all {
		t.Errorf("unreadable arguments: %q, %v", got, all)
	}
}

var kept []*byte

// TestForked checks that the kernel's flag distinguishes a process that has executed nothing from others.
func TestForked(t *testing.T) {
	var p procfs
	if m := p.image(os.Getpid()); m.failed || m.forked {
		t.Errorf("this program: %+v", m)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", "exec 3<&0; (read -r line <&3; exit 0) & wait")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer in.Close()
	child := 0
	for range 1000 {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/task/" + strconv.Itoa(c.Process.Pid) + "/children")
		if child = int(parse(strings.TrimSpace(string(text)))); child != 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	shell, forked := p.image(c.Process.Pid), p.image(child)
	if shell.forked || !forked.forked || !forked.same(image{forked: true}) || shell.same(image{forked: true}) {
		t.Errorf("shell %+v, its child %d %+v", shell, child, forked)
	}
	fd := openProcess(child)
	defer unix.Close(fd)
	if parent, ok := parentOf(fd); ok && parent != c.Process.Pid {
		t.Errorf("parent %d, want %d", parent, c.Process.Pid)
	}
}

// TestRandomAddresses checks that the kernel's flag distinguishes programs with random addresses from others. Another program with the same
// addresses as the one before proves nothing then.
func TestRandomAddresses(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const fixed = 0x40000 // ADDR_NO_RANDOMIZE
	before, _, _ := unix.RawSyscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
	defer unix.RawSyscall(unix.SYS_PERSONALITY, before, 0, 0)
	global, _ := os.ReadFile("/proc/sys/kernel/randomize_va_space")
	for _, want := range []bool{true, false} {
		_, _, e := unix.RawSyscall(unix.SYS_PERSONALITY, map[bool]uintptr{true: 0, false: fixed}[want], 0, 0)
		if e != 0 || want && strings.TrimSpace(string(global)) == "0" {
			continue // a container may not have the call
		}
		var images []image
		for range 2 {
			c := exec.CommandContext(t.Context(), "sleep", "60")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			var p procfs
			m := p.image(c.Process.Pid)
			for ; !m.complete() || m.heap == 0; m = p.image(c.Process.Pid) { // the kernel still loads it
				time.Sleep(time.Millisecond)
			}
			images = append(images, m)
			c.Process.Kill()
			c.Wait()
		}
		if a, b := images[0], images[1]; a.random != want || a.sure(b) != want || a.same(b) == want {
			t.Errorf("random %v: %+v, %+v", want, a, b)
		}
	}
}

// TestDoubtfulCalls checks that each call is disputed that can have been carried out. If the program was killed before it could be checked,
// that is each call of its process, and without random addresses each one that seems to have failed.
func TestDoubtfulCalls(t *testing.T) {
	records := func(do func(r *recorder, p *process)) (disputed int, all []Record) {
		r := &recorder{rules: &Rules{}, processes: map[int]*process{}, gone: map[int]origin{}}
		p := &process{calls: []*entry{{call: call{path: "/evil"}}, {call: call{path: "/absent"}, thread: 1}}}
		do(r, p)
		for _, e := range r.queue {
			if e.Disputed {
				disputed++
			}
		}
		return disputed, r.queue
	}
	all := func(*entry) bool { return true }
	for name, c := range map[string]struct {
		do   func(r *recorder, p *process)
		want int
	}{
		"killed": {func(r *recorder, p *process) { r.end(p, nil) }, 2},
		"another program": {func(r *recorder, p *process) {
			r.ran(p, found{exe: "/x", given: given{path: "/x"}, ok: true})
			r.end(p, nil)
		}, 2},
		"the program": {func(r *recorder, p *process) {
			r.ran(p, found{exe: "/evil", given: given{path: "/evil", argv: []string{""}}, ok: true})
			r.end(p, nil)
		}, 0},
		"same, random":     {func(r *recorder, p *process) { r.failed(p, all, image{random: true}) }, 0},
		"same, not random": {func(r *recorder, p *process) { r.failed(p, all, image{}) }, 2},
	} {
		if got, records := records(c.do); got != c.want || len(records) != 2 {
			t.Errorf("%s: %d disputed, want %d: %+v", name, got, c.want, records)
		}
	}
}

// TestNumbers compares the numbers that the kernel gives with those of the files of /proc.
func TestNumbers(t *testing.T) {
	c := exec.CommandContext(t.Context(), "sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	a := answerer{recorder: &recorder{outside: namespaceOf("self")}, within: -1}
	fd, err := unix.PidfdOpen(c.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.insideOf(&process{pid: c.Process.Pid, fd: fd}), a.proc.inside(fd); got != want || want != a.proc.ids(c.Process.Pid).inside {
		t.Errorf("inside %d, want %d", got, want)
	}
	threads, _ := filepath.Glob("/proc/self/task/*")
	for _, thread := range threads {
		var n int
		if n = int(parse(filepath.Base(thread))); a.group(n) != os.Getpid() && a.proc.ids(n).group != 0 {
			t.Errorf("thread %d is of process %d", n, a.group(n))
		}
	}
	if exe := a.proc.link("", c.Process.Pid, "/exe"); !strings.HasSuffix(exe, "/sleep") && !strings.Contains(exe, "busybox") && !strings.HasSuffix(exe, "/coreutils") {
		t.Errorf("exe %q", exe)
	}
}

// TestChangedLink executes a refused file although its path led to another one when the rules were compared. The record is disputed. A
// record of a script with a refused interpreter is not.
func TestChangedLink(t *testing.T) {
	rules, err := ParseRules([]string{"/usr/bin/curl"})
	if err != nil {
		t.Fatal(err)
	}
	for want, run := range map[bool]found{
		true:  {exe: "/usr/bin/curl", given: given{path: "./link", argv: []string{"./link", "-s"}}, ok: true},
		false: {exe: "/usr/bin/curl", given: given{path: "./link", argv: []string{"/usr/bin/curl", "./link", "-s"}}, ok: true},
	} {
		p := &process{calls: []*entry{{call: call{path: "./link", argv: []string{"./link", "-s"}}}}}
		(&recorder{rules: rules}).ran(p, run)
		if p.last == nil || p.last.Disputed != want || *p.last.Exe != run.exe {
			t.Errorf("%q: %+v, want disputed %v", run.given.argv, p.last, want)
		}
	}
}

func parse(s string) (n uint64) {
	for _, c := range s {
		n = n*10 + uint64(c-'0')
	}
	return n
}

// TestValuesAreMasked checks that the values of variables are not in the record, also if one begins another or begins like a path.
func TestValuesAreMasked(t *testing.T) {
	mask := withValues(func(words []string) []string { return words }, []string{
		"A=abcdefgh", "B=abcdefghSECRET", "C=/9j4AAQSkZJRg+x/w==", "D=/usr/local/go/bin:/usr/bin", "E=short", "F=/home/me/secret",
	})
	for word, want := range map[string]string{
		"abcdefgh": "***", "--key=abcdefghSECRET": "--key=***", "/9j4AAQSkZJRg+x/w==": "***",
		"/usr/local/go/bin:/usr/bin": "/usr/local/go/bin:/usr/bin", "/home/me/secret": "/home/me/secret", "short": "short",
		"YWJjZGVmZ2hTRUNSRVQ=": "***Q=", "x=%2F9j4AAQSkZJRg%2Bx%2Fw%3D%3D": "x=***",
	} {
		if got := mask([]string{word}); got[0] != want {
			t.Errorf("%q: %q, want %q", word, got[0], want)
		}
	}
}

// TestOverwrittenValueIsMasked checks that a value is masked also if the program has overwritten a comma in it.
func TestOverwrittenValueIsMasked(t *testing.T) {
	mask := withValues(func(words []string) []string { return words }, []string{"A=SECRET,abcdefgh"})
	r := Record{Path: "p", Argv: []string{"p", "-l", "a\x00b", "--key=SECRET\x00abcdefgh"}}
	if r.hide(mask); !slices.Equal(r.Argv, []string{"p", "-l", "a\x00b", "--key=***"}) {
		t.Errorf("%q", r.Argv)
	}
}
