//go:build linux

package native_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"golang.org/x/sys/unix"
)

func init() { execs.Begin(mask) }

// secret is a value that the record must mask.
const secret = "s3cr3t"

func mask(words []string) []string {
	words = slices.Clone(words)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], secret, "***")
	}
	return words
}

// patience limits each step that is usually quick. On a machine with thirty busy processes the agent's programs take fifty times as long.
const patience = 5 * time.Minute

// recorded starts a prison whose programs are recorded.
func recorded(t testing.TB) (prison.Backend, prison.Spec, prison.Prison) {
	t.Helper()
	b, s := prepared(t)
	return b, s, startRecorded(t, b, s)
}

func startRecorded(t testing.TB, b prison.Backend, s prison.Spec) prison.Prison {
	t.Helper()
	i := start(t, b, s)
	if i.Lacks(prison.NoPrograms) {
		prisontest.Need(t, "native", fmt.Errorf("%v", i.Weaker))
	}
	return attach(t, b, s)
}

// shell runs a script to its end.
func shell(t testing.TB, p prison.Prison, script string) {
	t.Helper()
	if status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}}); err != nil || status != 0 {
		t.Fatal(status, err)
	}
}

// records waits until every program in the record has ended and done returns true, and returns the record.
func records(t testing.TB, s prison.Spec, done func([]execs.Record) bool) []execs.Record {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all, err := execs.Read(s.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if done(all) {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in the record: %+v", all)
		}
	}
}

// ended reports whether the last program of a record has the arguments and has ended.
func ended(argv ...string) func([]execs.Record) bool {
	return func(all []execs.Record) bool {
		return slices.ContainsFunc(all, func(r execs.Record) bool { return slices.Equal(r.Argv, argv) && r.MS != nil })
	}
}

// TestProgramRecord compares the record with the programs of one shell. The prison is stopped while one of them runs.
func TestProgramRecord(t *testing.T) {
	b, s, p := recorded(t)
	shell(t, p, `printf '#!/usr/bin/env -S sh -e\nexit 5' >t; ln -s t u`)
	in, line := io.Pipe()
	done := make(chan error, 1)
	go func() {
		status, err := p.Exec(t.Context(), prison.Process{Stdin: in, Argv: []string{"sh", "-c", `sh -c 'exit 3'; (cd /tmp; /bin/true ` + secret + `); ./absent; chmod +x t; ./u a 'b c'
sleep 60 & until read -r name </proc/$!/comm && [ "$name" = sleep ]; do :; done; sh -c 'read -r line; kill -9 $$'; exit 0`}})
		if err == nil && status != 0 {
			err = fmt.Errorf("status %d", status)
		}
		done <- err
	}()
	for _, program := range []string{"60", "read -r line; kill -9 $$"} { // a program that still runs must be in the record, too
		records(t, s, func(all []execs.Record) bool {
			return slices.ContainsFunc(all, func(r execs.Record) bool { return r.Exe != nil && r.Argv[len(r.Argv)-1] == program })
		})
	}
	line.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	all := records(t, s, func([]execs.Record) bool { return true })
	shell := slices.IndexFunc(all, func(r execs.Record) bool { return len(r.Argv) > 2 && strings.HasPrefix(r.Argv[2], "sh -c 'exit 3'") })
	if shell < 0 || all[shell].Top || all[shell].PPID != 1 || all[shell].Exit == nil || *all[shell].Exit != 0 {
		t.Fatalf("the shell is not in the record: %+v", all)
	}
	var got []string
	for _, r := range all[shell+1:] {
		if r.Top {
			got = append(got, described(r))
		}
		if r.MS == nil && r.Ran() {
			t.Errorf("it has not ended: %+v", r)
		}
	}
	want := []string{
		`sh ["-c" "exit 3"] ran exit 3 in /workspace top`,
		`true ["***"] ran exit 0 in /tmp top`,
		`absent [] exit - in /workspace top`,
		`chmod ["+x" "t"] ran exit 0 in /workspace top`,
		`u ["a" "b c"] ran exit 5 in /workspace top`,
		`sleep ["60"] ran exit 137 in /workspace top`,
		`sh ["-c" "read -r line; kill -9 $$"] ran exit 137 in /workspace top`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("record:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEndsOfAll stops a prison in which many programs run. When Stop returns, the record must have the end of each, even if a signal had
// stopped the recorder. On a busy machine it can stand still, too.
func TestEndsOfAll(t *testing.T) {
	b, s, p := recorded(t)
	const programs = 150 // more than the recorder notices at the same time
	for _, stopped := range []bool{false, true} {
		shell(t, p, fmt.Sprintf("for i in $(seq %d); do sleep 600 & done", programs))
		running := func(all []execs.Record) (sleeping []execs.Record) {
			return slices.DeleteFunc(all, func(r execs.Record) bool { return r.Path != "/bin/sleep" && r.Path != "/usr/bin/sleep" || !r.Ran() })
		}
		want := programs
		if stopped {
			want *= 2
		}
		records(t, s, func(all []execs.Record) bool { return len(running(all)) == want })
		if stopped {
			unix.Kill(recorderOf(t, s, 0), unix.SIGSTOP)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		all, err := execs.Read(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range running(all) {
			if r.MS == nil || r.Exit == nil || *r.Exit != 128+int(unix.SIGKILL) {
				t.Fatalf("recorder stopped: %t, no end: %s", stopped, described(r))
			}
		}
		if !stopped {
			p = startRecorded(t, b, s)
		}
	}
}

// TestComplete reads the end of a program in a running prison immediately after the program has ended.
func TestComplete(t *testing.T) {
	_, s, p := recorded(t)
	for i := range 30 {
		word, want := fmt.Sprint(i), i
		script := "exit " + word
		if i%2 == 0 {
			script, want = "kill -9 $$", 128+int(unix.SIGKILL)
		}
		p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script, word}})
		if err := execs.Complete(t.Context(), s.Dir); err != nil {
			t.Fatal(err)
		}
		all, err := execs.Read(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(all); n <= i || all[n-1].Argv[len(all[n-1].Argv)-1] != word || all[n-1].Exit == nil || *all[n-1].Exit != want {
			t.Fatalf("program %d: %+v", i, all)
		}
	}
}

// TestArgumentsCutByProgram runs getopt(1), which puts zero bytes in place of the commas of its argument. The record must not be disputed,
// must have the words of the call, and must not state the bytes that the program has overwritten, unless they were read before.
func TestArgumentsCutByProgram(t *testing.T) {
	_, s, p := recorded(t)
	for i := range 20 {
		word, name := fmt.Sprint(i), []string{"getopt"}
		if i%2 == 0 { // as lsb_release does
			name = append(name, "--name", "n")
		}
		shell(t, p, strings.Join(name, " ")+" -o a -l help,version,codename -- -a 'b c' "+word)
		all := records(t, s, func(all []execs.Record) bool {
			return slices.ContainsFunc(all, func(r execs.Record) bool {
				return r.Path == "/usr/bin/getopt" && r.Argv[len(r.Argv)-1] == word && r.MS != nil
			})
		})
		r := all[len(all)-1]
		words := func(long ...string) []string {
			return slices.Concat(name, []string{"-o", "a", "-l"}, long, []string{"-a", "b c", word})
		}
		overwritten := words("help\x00version\x00codename\x00--") // getopt forgets where "--" began
		if r.Disputed || !slices.Equal(r.Argv, overwritten) && !slices.Equal(r.Argv, words("help,version,codename", "--")) {
			t.Fatalf("disputed %v: %q", r.Disputed, r.Argv)
		}
	}
}

// described formats a record, without values that depend on the system.
func described(r execs.Record) string {
	words := []string{filepath.Base(r.Path), fmt.Sprintf("%q", r.Argv[1:])}
	if r.Exe != nil {
		words = append(words, "ran")
	}
	exit := "-"
	if r.Exit != nil {
		exit = fmt.Sprint(*r.Exit)
	}
	words = append(words, "exit "+exit, "in "+r.CWD)
	for word, is := range map[string]bool{"top": r.Top, "disputed": r.Disputed, "cut": r.Cut, "denied": r.Deny != nil} {
		if is {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// recorderOf waits for a recorder of a prison with another process id than other, and returns its id.
func recorderOf(t *testing.T, s prison.Spec, other int) int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if pid := stateOf(t, s).Recorder.PID; pid > 0 && pid != other {
			return pid
		}
	}
	t.Fatal("no recorder")
	return 0
}

// TestRecorderKilled kills the recorder again and again while programs start. No program may fail or wait for long.
func TestRecorderKilled(t *testing.T) {
	_, s, p := recorded(t)
	done := make(chan bool)
	go func() {
		defer close(done)
		shell(t, p, `i=0; while [ $i -lt 800 ]; do /bin/true $i || exit 1; i=$((i+1)); done`)
	}()
	pid, kills := 0, 0
	for running := true; running; kills++ {
		pid = recorderOf(t, s, pid)
		select {
		case <-done:
			running = false
		case <-time.After(300 * time.Millisecond):
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	shell(t, p, "/bin/true last")
	all := records(t, s, ended("/bin/true", "last"))
	t.Logf("%d of 800 programs recorded, after %d kills", len(all)-3, kills)
	for i := range all[1:] {
		if all[i].Seq == all[i+1].Seq {
			t.Fatalf("two records have the number %d", all[i].Seq)
		}
	}
}

// TestRecorderStopped stops the recorder with a signal. A successor must answer the program that waits.
func TestRecorderStopped(t *testing.T) {
	_, s, p := recorded(t)
	pid := recorderOf(t, s, 0)
	unix.Kill(pid, unix.SIGSTOP)
	shell(t, p, "/bin/true waits")
	records(t, s, ended("/bin/true", "waits"))
}

// TestCallFailsAfterSuccession lets execve fail in a process that executed its program under an earlier recorder. The successor must not
// record that program as the result of the failed call.
func TestCallFailsAfterSuccession(t *testing.T) {
	_, s, p := recorded(t)
	in, line := io.Pipe()
	done := make(chan int, 1)
	go func() {
		status, _ := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", "read -r line; exec /absent"}, Stdin: in})
		done <- status
	}()
	records(t, s, func(all []execs.Record) bool {
		return slices.ContainsFunc(all, func(r execs.Record) bool { return r.Exe != nil })
	})
	pid := recorderOf(t, s, 0)
	unix.Kill(pid, unix.SIGKILL)
	recorderOf(t, s, pid)
	line.Close()
	if status := <-done; status != 127 {
		t.Errorf("status %d", status)
	}
	absent := func(r execs.Record) bool { return r.Path == "/absent" }
	all := records(t, s, func(all []execs.Record) bool { return slices.ContainsFunc(all, absent) })
	if r := all[slices.IndexFunc(all, absent)]; r.Ran() {
		t.Errorf("it did not run: %+v", r)
	}
}

// TestKeeperKilledWhileRecording checks that no process inside outlives the keeper, which held the listener, and that the record
// continues after the next start.
func TestKeeperKilledWhileRecording(t *testing.T) {
	b, s, p := recorded(t)
	done := make(chan bool)
	go func() {
		defer close(done)
		p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", "while :; do /bin/true; done"}}) // the keeper's end kills it
	}()
	records(t, s, func(all []execs.Record) bool { return len(all) > 20 })
	state := stateOf(t, s)
	unix.Kill(state.Keeper.PID, unix.SIGKILL)
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the prison outlives its keeper")
	}
	p = startRecorded(t, b, s)
	if native.LooksAlive(state.Recorder.PID) && recorderOf(t, s, 0) == state.Recorder.PID {
		t.Error("the recorder of the last run still runs")
	}
	before := len(records(t, s, func([]execs.Record) bool { return true }))
	shell(t, p, "/bin/true again")
	all := records(t, s, ended("/bin/true", "again"))
	if len(all) <= before {
		t.Errorf("%d records became %d", before, len(all))
	}
}

// TestProgramsRefused refuses programs by patterns, and by the digest of a file under any name.
func TestProgramsRefused(t *testing.T) {
	b, s := prepared(t)
	s.Deny = []string{"refused", "echo secret*", "/workspace/*.sh"}
	if os.Geteuid() == 0 {
		content, err := os.ReadFile("/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		s.Deny = append(s.Deny, fmt.Sprintf("sha256:%x", sha256.Sum256(content)))
	}
	p := startRecorded(t, b, s)
	refused := []string{"./refused", "/bin/echo secret word", "./t.sh"}
	if os.Geteuid() == 0 {
		refused = append(refused, "/bin/true", "./copy", "./link")
	}
	shell(t, p, `cp /bin/echo refused; cp /bin/true copy; ln -s /bin/true link; echo 'echo no' >t.sh; chmod +x t.sh; /bin/echo other`)
	for _, command := range refused {
		var out bytes.Buffer
		status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", command}, Stdout: &out, Stderr: &out})
		if err != nil || status != 126 || !strings.Contains(out.String(), "not permitted") {
			t.Errorf("%s: %d, %v, %s", command, status, err, out.String())
		}
	}
	all := records(t, s, func(all []execs.Record) bool {
		n := 0
		for _, r := range all {
			if r.Deny != nil {
				n++
			}
		}
		return n >= len(refused)
	})
	for _, r := range all {
		if r.Deny != nil && (r.Ran() || r.Exit != nil) {
			t.Errorf("refused and executed: %+v", r)
		}
	}
}

// TestLinksRefused refuses a file by its path, also if another path leads to the file through links. On most systems /bin is a link to
// usr/bin, so a shell that must not start /usr/bin/curl tries /bin/curl.
func TestLinksRefused(t *testing.T) {
	program, err := filepath.EvalSymlinks("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	b, s := prepared(t)
	s.Deny = []string{program}
	p := startRecorded(t, b, s)
	refused := []string{program}
	if target, err := os.Readlink("/bin"); err == nil && target == "usr/bin" && program == "/usr/bin/env" {
		refused = append(refused, "/bin/env", "cd /tmp; ../bin/env", "env")
	}
	if os.Geteuid() == 0 { // other users may not follow links in the workspace of the prison's user
		refused = append(refused, "./link", "folder/"+filepath.Base(program), "folder/../"+filepath.Base(filepath.Dir(program))+"/"+filepath.Base(program))
	}
	shell(t, p, "ln -s "+program+" link; ln -s "+filepath.Dir(program)+" folder; /bin/echo other")
	for _, command := range refused {
		var out bytes.Buffer
		status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", command}, Stdout: &out, Stderr: &out})
		if err != nil || status != 126 || !strings.Contains(out.String(), "not permitted") {
			t.Errorf("%s: %d, %v, %s", command, status, err, out.String())
		}
	}
	shell(t, p, "/bin/echo done")
	for _, r := range records(t, s, ended("/bin/echo", "done")) {
		if r.Deny != nil && (r.Ran() || *r.Deny != program) || r.Exe != nil && *r.Exe == program {
			t.Errorf("%+v", r)
		}
	}
}

// TestContentOfOrdinaryUser checks that a start with a rule that cannot be enforced is refused.
func TestContentOfOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can enforce it")
	}
	b, s := prepared(t)
	s.Deny = []string{"sha256:" + strings.Repeat("ab", 32)}
	var u *prison.Unavailable
	if _, err := b.Start(t.Context(), s); !errors.As(err, &u) {
		t.Errorf("start: %v", err)
	}
}

// TestNoRecord checks that no program is recorded unless the spec requests it.
func TestNoRecord(t *testing.T) {
	b, s := prepared(t)
	s.Record = false
	start(t, b, s)
	if got := output(t, b, s, "grep Seccomp_filters /proc/self/status"); got != "Seccomp_filters:\t1" {
		t.Errorf("filters: %q", got)
	}
	if pid := stateOf(t, s).Recorder.PID; pid != 0 {
		t.Errorf("recorder %d", pid)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, execs.FileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("record: %v", err)
	}
}
