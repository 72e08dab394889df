//go:build linux

package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/calls"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/prison/watch/execs"
)

// bare is a prison without isolation. It runs commands directly on this machine.
type bare struct {
	prison.Prison
	dir    string
	env    []string
	prefix []string // a command that runs the rest of its arguments
	extra  []*os.File
}

func (b bare) Exec(ctx context.Context, p prison.Process) (int, error) {
	argv := append(slices.Clone(b.prefix), p.Argv...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), b.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = p.Stdin, p.Stdout, p.Stderr, b.extra
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root has nothing refused")
	}
}

// unprotected returns a subject for which no promise is kept.
func unprotected(t *testing.T) Subject {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	l, err := net.Listen("unix", "@selftest-"+filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return Subject{
		Prison: bare{dir: dir, env: []string{"TZ=Asia/Tokyo", "HOME=" + dir}, extra: []*os.File{file},
			prefix: []string{"sh", "-c", `ulimit -c unlimited; exec "$@"`, "sh"}},
		Spec: prison.Spec{UID: 1879000001, GID: 1879000001, User: "dev", Hostname: "workbench", Limits: prison.Limits{Memory: 1 << 28, PIDs: 5}, Record: true},
	}
}

// TestEachCanFail runs every probe without isolation. Each must fail.
func TestEachCanFail(t *testing.T) {
	needRoot(t)
	s := unprotected(t)
	for _, p := range probes() {
		if slices.Contains([]string{"system-calls", "metadata", "other-metadata", "own-addresses"}, p.name) {
			continue // TestCallsGoThrough and TestConnect test these
		}
		r, err := p.run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if p.name == "host-files" && strings.Contains(r.Seen, "another process") { // a test of another package has just used the file
			r, err = p.run(t.Context(), s)
		}
		if err != nil || r.Kept || strings.Contains(r.Seen, "could not be tried") {
			t.Errorf("%s: kept %v: %s", r.Name, r.Kept, r.Seen)
		}
		t.Logf("%s: %s", r.Name, r.Seen)
	}
}

// TestCallsGoThrough makes every call without isolation, as a child of its own PID 1. The kernel must process each.
func TestCallsGoThrough(t *testing.T) {
	needRoot(t)
	s := unprotected(t)
	s.Prison = bare{dir: t.TempDir(), env: []string{"HOME=" + t.TempDir()}, prefix: []string{"unshare", "-m", "-p", "-f", "sh", "-c", `"$@"; exit $?`, "sh"}}
	lacking := 0
	for _, c := range forbidden {
		results, err := calls.Make(t.Context(), s.Prison, []calls.Call{c})
		if err != nil {
			t.Fatal(err)
		}
		switch errno := syscall.Errno(-results[0]); {
		case results[0] >= 0 || !refusals[errno]:
		case errno == syscall.ENOSYS || errno == syscall.EAFNOSUPPORT:
			t.Logf("%s: not in this kernel: %v", c.Name, errno)
			lacking++
		default:
			t.Errorf("%s: refused to root: %v", c.Name, errno)
		}
	}
	if lacking > len(forbidden)/3 {
		t.Errorf("this kernel lacks %d of %d calls", lacking, len(forbidden))
	}
	if _, broken, err := tryCalls(t.Context(), s); err != nil || broken == "" {
		t.Errorf("all together: %q, %v", broken, err)
	}
}

// TestEverySourceIsRead plants a word in each source.
func TestEverySourceIsRead(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	git("-c", "user.name=Planted Author", "-c", "user.email=planted@example.org", "commit", "-q", "--allow-empty", "-m", "x")
	git("config", "planted.setting", "in-settings")
	cgroup, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), []byte("planted in notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		sleep, err = filepath.EvalSymlinks(sleep)
	}
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]string{
		"environment of processes": "planted-in-environment", "process list": "1000.125", "links of processes": sleep,
		"mounts": "sysfs", "control groups": longestWord(string(cgroup)), "host name": "Linux", "users": "nogroup",
		"time zone": "JST", "git settings": "in-settings", "commits": "Planted Author", "repository's own files": "planted@example.org",
		"home and scratch folders": "planted in notes", "other terminals": "ptmx", "system settings": "/usr/sbin/nologin",
		"names of files": "/etc/ld.so.cache",
	}
	s := unprotected(t)
	s.Prison = bare{dir: dir, env: []string{"X=planted-in-environment", "TZ=Asia/Tokyo", "HOME=/tmp"},
		// Large folders and other processes are hidden, so that there is only little to read.
		prefix: []string{"unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", `mount --bind "$0" /tmp && cd /tmp || exit 1
			for d in /root /home /var /opt /srv /work /usr/local /usr/include /usr/lib/google-cloud-sdk /dev/shm; do [ -d $d ] && mount -t tmpfs empty $d; done
			sleep 1000.125 >/dev/null 2>&1 </dev/null & exec "$@"`, dir}}
	for where, word := range planted {
		s.Words = append(s.Words, Word{where, word})
	}
	m, err := measure(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range sources {
		if !slices.ContainsFunc(m.Found, func(l Leak) bool { return l.Where == from.name && l.Kind == from.name }) {
			t.Errorf("%q was not found in %s", planted[from.name], from.name)
		}
	}
}

// longestWord returns the longest word as the leak meter understands words: with digits, so that it is not a part of a container's id.
func longestWord(text string) (longest string) {
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > len(longest) {
			longest = w
		}
	}
	return longest
}

// TestConnect connects to a port with a listener, and to one without.
func TestConnect(t *testing.T) {
	s := Subject{Prison: bare{dir: t.TempDir(), env: []string{"HOME=" + t.TempDir()}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if _, broken, err := tryConnect(t.Context(), s, "127.0.0.1", port); err != nil || broken == "" {
		t.Errorf("where somebody listens: %q, %v", broken, err)
	}
	if _, broken, err := tryOwn(t.Context(), s, []netip.Addr{netip.MustParseAddr("127.0.0.1")}); err != nil || broken == "" {
		t.Errorf("an own address: %q, %v", broken, err)
	}
	if seen, broken, err := tryDatagram(t.Context(), s, "127.0.0.1", port); err != nil || broken != "" || seen != syscall.ECONNREFUSED.Error() {
		t.Errorf("a datagram to nobody: %q, %q, %v", seen, broken, err)
	}
	l.Close()
	if _, broken, err := tryConnect(t.Context(), s, "127.0.0.1", port); err != nil || broken != "" {
		t.Errorf("where nobody listens: %q, %v", broken, err)
	}
}

func TestCores(t *testing.T) {
	const line = "Max core file size        "
	for _, c := range []struct {
		pattern, limits string
		kept            bool
	}{
		{"core", "0 0 bytes", true}, {"core", "unlimited unlimited bytes", false}, {"core", "0 unlimited bytes", false},
		{"|/usr/lib/program", "1 1 bytes", true}, {"|/usr/lib/program", "0 0 bytes", false}, {"|/usr/lib/program", "0 1 bytes", false},
	} {
		if _, broken := evaluateCoresOf(c.pattern, false, "Max data size 1 1 bytes\n"+line+c.limits+"\n"); (broken == "") != c.kept {
			t.Errorf("%q with %q: %q", c.limits, c.pattern, broken)
		}
	}
	if _, broken := evaluateCoresOf("core", false, ""); broken == "" {
		t.Error("no limit is fine")
	}
}

func TestZones(t *testing.T) {
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.FixedZone("ours", 9*3600+1800)
	plain := Subject{}
	asking := Subject{Variables: []string{"TZ"}}
	ofImages := Subject{Spec: prison.Spec{Image: "i"}, image: ofImage{env: []string{"TZ=Asia/Tokyo"}}}
	for _, c := range []struct {
		s    Subject
		out  string
		kept bool
	}{
		{plain, "UTC +0000\nUTC +0000\n", true}, {plain, "UTC +0000\nUTC +0000\n+0000\n+0200\n", true},
		{plain, "UTC +0000\nUTC +0000\n+0000\n+0930\n", false}, {plain, "JST +0900\nJST +0900\n", false},
		{plain, "UTC +0000\nJST +0900\n", false}, {plain, "UTC +0000\n", false}, {plain, "", false},
		{asking, "UTC +0000\nJST +0900\n+0900\n", true}, {asking, "UTC +0000\nJST +0900\n+0930\n", false},
		{asking, "JST +0900\nJST +0900\n", false}, {asking, "UTC +0000\nours +0930\n+0930\n", true},
		{ofImages, "CET +0100\nJST +0900\n", true}, {ofImages, "ours +0930\nJST +0900\n", false},
		{Subject{Spec: prison.Spec{Image: "i"}}, "UTC +0000\nJST +0900\n", false},
	} {
		if _, broken := evaluateZone(c.s, c.out); (broken == "") != c.kept {
			t.Errorf("%+v: %q: %q", c.s, c.out, broken)
		}
	}
}

func TestEnvironment(t *testing.T) {
	s := Subject{Variables: []string{"X"}, image: ofImage{env: []string{"FOO=bar"}}}
	for out, kept := range map[string]bool{
		"HOME=/home/x\x00X=a\nb\x00": true, "FOO=bar\x00HOME=y\x00": true, "FOO=secret\x00": false, "b=a\x00X=1\x00": false,
		"HOME=\nb=\x00Y=\x00": false,
	} {
		if _, broken := evaluateEnvironment(s, out); (broken == "") != kept {
			t.Errorf("%q: %q", out, broken)
		}
	}
}

// TestNetwork evaluates the interfaces and routes of both networks.
func TestNetwork(t *testing.T) {
	const open = "    lo\n  eth0\neth0\t0002000A\t00000000\neth0\t00000000\t0202000A\n"
	for _, c := range []struct {
		network prison.Network
		out     string
		kept    bool
	}{
		{prison.NetworkNone, "    lo\n", true}, {prison.NetworkNone, open, false},
		{prison.NetworkOpen, open, true}, {prison.NetworkOpen, open + "  eth1\n", false}, {prison.NetworkOpen, open + "docker0\t000011AC\t00000000\n", false},
	} {
		if seen, broken := evaluateNetwork(Subject{Spec: prison.Spec{Network: c.network}}, c.out); (broken == "") != c.kept || c.kept && seen == "" {
			t.Errorf("%v, %q: %q, %q", c.network, c.out, seen, broken)
		}
	}
}

func TestWritable(t *testing.T) {
	s := Subject{image: ofImage{volumes: []string{"/data"}}}
	for out, kept := range map[string]bool{"/data\n/data/x\n": true, "/database\n": false, "/tmp\n/etc\n": false} {
		if _, broken := evaluateWritable(s, out); (broken == "") != kept {
			t.Errorf("%q: %q", out, broken)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		word, text string
		found      bool
	}{
		{"anna", "hello Anna!", true}, {"anna", "savanna", false}, {"anna", "/home/anna/x", true}, {"an", "an", false},
		{"root", "root", false}, {"a.b@c.d", "<a.b@c.d>", true}, {"a.b@c.d", "axb@c.d", false}, {"anna", "anna2", false},
	} {
		words := searchable([]Word{{"", c.word}})
		if got := len(words) == 1 && words[0].pattern.MatchString(c.text); got != c.found {
			t.Errorf("%q in %q: %v", c.word, c.text, got)
		}
	}
}

func init() { execs.Begin(nil) }

// TestNative runs all tests in a real prison.
func TestNative(t *testing.T) {
	b := native.New()
	prisontest.Need(t, "native", b.Probe(t.Context()))
	uid, gid := prisontest.Phantom(t)
	spec := prisontest.NewSpec(t, b, prisontest.Options{UID: uid, GID: gid, Record: true})
	spec.Env = []string{"ASKED=1"}
	if err := b.Prepare(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	isolation, err := b.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Attach(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{Prison: p, Spec: spec, Variables: []string{"ASKED"}, Isolation: isolation, Words: []Word{
		{"tool", "airlock"}, {"tool", "selftest"}, {"path", spec.Workspace}, {"path", spec.Dir}, {"id", spec.ID},
	}}
	if u, err := user.Current(); err == nil {
		s.Words = append(s.Words, Word{"user", u.Username}, Word{"home", u.HomeDir})
	}
	if host, err := os.Hostname(); err == nil {
		s.Words = append(s.Words, Word{"host", host})
	}
	r, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.Results {
		if !one.Kept && !one.Weaker {
			t.Errorf("%s: %s", one.Name, one.Seen)
		}
		t.Logf("%s: %s", one.Name, one.Seen)
	}
	for _, leak := range r.Leaks.Found {
		t.Errorf("%+v", leak)
	}
	if r.Leaks.Sources != len(sources) || r.Leaks.Bytes < 10000 {
		t.Errorf("%+v", r.Leaks)
	}
	othersUseSystemFile(t, s)
	if _, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", `test -z "$(ls -A . ~ /tmp | grep tmp)"`}}); err != nil {
		t.Error(err)
	}
	if err := b.Stop(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// othersUseSystemFile runs the probe of the system files while another process inside uses the file, during some attempts or all.
func othersUseSystemFile(t *testing.T, s Subject) {
	t.Helper()
	inside := s.Prison
	for disturbed, wants := range map[int]string{1: "", tries - 1: "", tries + 1: "could not be tried: another process inside uses " + systemFile} {
		left := disturbed
		s.Prison = restless{inside, &left}
		_, broken, err := trySystemFiles(t.Context(), s)
		if left != 0 || broken != "" && wants == "" || fmt.Sprint(err) != cmp.Or(wants, "<nil>") {
			t.Errorf("%d attempts disturbed, %d left: %q, %v", disturbed, left, broken, err)
		}
	}
}

// restless is a prison in which another process opens the system file during the next attempts to watch it.
type restless struct {
	prison.Prison
	attempts *int
}

func (r restless) Exec(ctx context.Context, p prison.Process) (int, error) {
	if len(p.Argv) == 1 && *r.attempts > 0 { // the program that makes the calls
		*r.attempts--
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan bool)
		go func() {
			defer close(ended)
			r.Prison.Exec(ctx, prison.Process{Argv: []string{"sh", "-c", "while :; do : <" + systemFile + "; done"}}) // it never ends by itself
		}()
		defer func() { cancel(); <-ended }()
	}
	return r.Prison.Exec(ctx, p)
}

func TestOrdinaryUser(t *testing.T) { prisontest.AsOrdinaryUser(t, "native", "") }

// full is a prison that at first has no room for another process.
type full struct {
	bare
	refusals *int
}

func (f full) Exec(ctx context.Context, p prison.Process) (int, error) {
	if *f.refusals--; *f.refusals >= 0 {
		return 0, errors.New("no process can be started")
	}
	return f.bare.Exec(ctx, p)
}

func TestLookIsTriedAgain(t *testing.T) {
	for refusals, wants := range map[int]string{0: "", tries - 1: "", tries: "could not be tried: no process can be started"} {
		left := refusals
		out, err := Subject{Prison: full{bare{dir: t.TempDir()}, &left}}.read(t.Context(), "echo here")
		if said := fmt.Sprint(err); wants == "" && (err != nil || out != "here\n") || wants != "" && said != wants {
			t.Errorf("%d refusals: %q, %v", refusals, out, err)
		}
	}
}
