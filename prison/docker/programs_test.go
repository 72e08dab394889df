//go:build linux

package docker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/prison/watch/execs"

	"github.com/docker/docker/api/types/container"
	"golang.org/x/sys/unix"
)

func init() { execs.Begin(func(words []string) []string { return words }) }

// recorded starts a prison with a rule for programs and a variable. If this user is not root, it has no rule.
func recorded(t *testing.T, b *docker.Backend, o prisontest.Options) (prison.Spec, prison.Prison) {
	t.Helper()
	s := prisontest.NewSpec(t, b, o)
	s.Record, s.Deny, s.Env = true, []string{"expr 1 *"}, []string{"TOKEN=secret-value"}
	prepare(t, b, s)
	return s, again(t, b, s)
}

// recordedPrograms waits until done returns true for the record, and returns a line for each program that ran or was refused.
func recordedPrograms(t *testing.T, s prison.Spec, done func(lines []string) bool) (lines []string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all, err := execs.Read(s.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		lines = nil
		for _, r := range all {
			exit := "-"
			if r.Exit != nil {
				exit = fmt.Sprint(*r.Exit)
			}
			switch {
			case r.Deny != nil:
				lines = append(lines, fmt.Sprintf("%q refused", r.Argv))
			case r.Ran():
				lines = append(lines, fmt.Sprintf("%q exit %s in %s top %v disputed %v", r.Argv, exit, r.CWD, r.Top, r.Disputed))
			}
		}
		if done(lines) {
			return lines
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in the record:\n%s", strings.Join(lines, "\n"))
		}
	}
}

func has(line string) func([]string) bool {
	return func(lines []string) bool { return slices.Contains(lines, line) }
}

// TestProgramsOfContainers compares the record with the programs that commands, a launched command and a watch have executed.
func TestProgramsOfContainers(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s, p := recorded(t, b, o)
		changes, err := p.Watch(t.Context(), []string{prison.Workspace})
		if err != nil {
			t.Fatal(err)
		}
		status, out := sh(t, p, `(cd /tmp && /bin/true secret-value); /usr/bin/expr 1 + 1; expr 2 + 2; /home/.enter /bin/true; echo $?; cat /home/.enter; exit 3`)
		if status != 3 || !strings.Contains(out, "expr: Operation not permitted\n4\n126\n") || !strings.Contains(out, "/home/.enter: Permission denied") {
			t.Errorf("status %d: %s", status, out)
		}
		if err := p.Launch(t.Context(), prison.Process{Argv: []string{"sh", "-c", "/bin/sleep 0.2; touch new; /bin/sleep 60"}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changes:
		case <-time.After(patience):
			t.Error("the watch saw nothing")
		}
		recordedPrograms(t, s, has(`["/bin/sleep" "60"] exit - in /workspace top true disputed false`))
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got := recordedPrograms(t, s, func([]string) bool { return true })
		if len(got) < 2 || !strings.HasPrefix(got[0], `["sh" "-c" "(cd`) || !strings.HasSuffix(got[0], "exit 3 in /workspace top false disputed false") {
			t.Fatalf("record: %q", got)
		}
		want := []string{
			`["/bin/true" "***"] exit 0 in /tmp top true disputed false`,
			`["/usr/bin/expr" "1" "+" "1"] refused`,
			`["expr" "2" "+" "2"] exit 0 in /workspace top true disputed false`,
			`["/home/.enter" "/bin/true"] exit 126 in /workspace top true disputed false`,
			`["cat" "/home/.enter"] exit 1 in /workspace top true disputed false`,
			`["sh" "-c" "/bin/sleep 0.2; touch new; /bin/sleep 60"] exit 137 in /workspace top false disputed false`,
			`["/bin/sleep" "0.2"] exit 0 in /workspace top true disputed false`,
			`["touch" "new"] exit 0 in /workspace top true disputed false`,
			`["/bin/sleep" "60"] exit 137 in /workspace top true disputed false`,
		}
		if !slices.Equal(got[1:], want) {
			t.Errorf("record:\n%s\nwant:\n%s", strings.Join(got[1:], "\n"), strings.Join(want, "\n"))
		}
	})
}

// recordState reads the state of a record.
func recordState(t *testing.T, s prison.Spec) (recorder int) {
	t.Helper()
	var state struct{ Recorder int }
	text, err := os.ReadFile(filepath.Join(s.Dir, "programs.json"))
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.Recorder <= 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return state.Recorder
}

// keeperOf returns the parent of a recorder, which keeps it.
func keeperOf(t *testing.T, recorder int) (pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", recorder))
	if err == nil {
		_, err = fmt.Sscan(string(text[strings.LastIndexByte(string(text), ')')+3:]), &pid)
	}
	if err != nil || pid <= 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return pid
}

// TestRecorderOfContainerKilled kills the recorder while programs start, and then the keeper, which ends the prison.
func TestRecorderOfContainerKilled(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s, p := recorded(t, b, o)
		done := make(chan string)
		go func() {
			_, out := sh(t, p, `i=0; while [ $i -lt 300 ]; do /bin/true $i || exit; i=$((i+1)); done; echo all`)
			done <- out
		}()
		last := 0
		for out := ""; out == ""; {
			select {
			case out = <-done:
				if out != "all\n" {
					t.Error(out)
				}
			case <-time.After(200 * time.Millisecond):
				if pid := recordState(t, s); pid != last {
					last = pid
					unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
		if status, out := sh(t, p, "/bin/true last"); status != 0 {
			t.Error(status, out)
		}
		recordedPrograms(t, s, has(`["/bin/true" "last"] exit 0 in /workspace top true disputed false`))
		ended := make(chan error)
		go func() {
			_, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sleep", "1000"}})
			ended <- err
		}()
		recordedPrograms(t, s, has(`["sleep" "1000"] exit - in /workspace top false disputed false`))
		unix.Kill(keeperOf(t, recordState(t, s)), unix.SIGKILL)
		if err := <-ended; !errors.Is(err, prison.ErrNotRunning) {
			t.Errorf("after the end of the keeper: %v", err)
		}
		if _, err := b.Attach(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
			t.Errorf("attach: %v", err)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if status, out := sh(t, again(t, b, s), "/bin/true healed"); status != 0 {
			t.Error(status, out)
		}
		recordedPrograms(t, s, has(`["/bin/true" "healed"] exit 0 in /workspace top true disputed false`))
	})
}

// TestEntranceIsClosed checks that the agent cannot read the process that waits until its listener is taken.
func TestEntranceIsClosed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has a record")
	}
	s, p := recorded(t, need(t), options())
	c := engine(t)
	defer c.Close()
	boxes, _ := labelled(t, s.ID)
	x, err := c.ContainerExecCreate(t.Context(), boxes[0].ID, container.ExecOptions{
		Cmd: []string{"/home/.enter", "/bin/sleep", "1000"}, User: fmt.Sprintf("%d:%d", s.UID, s.GID),
	})
	if err == nil {
		err = c.ContainerExecStart(t.Context(), x.ID, container.ExecStartOptions{Detach: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	// The arguments of a shell that runs this script contain the name, but do not begin with it.
	const find = `p=; for i in $(seq 3000); do p=$(grep -l -a '^/home/.enter' /proc/[0-9]*/cmdline | head -1); [ "$p" ] && break; sleep 0.1; done; p=${p%/cmdline}; `
	if status, out := sh(t, p, find+`! ls $p/fd 2>&1 && ! cat $p/mem 2>&1 && ! readlink $p/exe && grep ^Uid $p/status`); status != 0 || strings.Count(out, "Permission denied") != 2 || !strings.Contains(out, fmt.Sprint(s.UID)) {
		t.Errorf("status %d: %s", status, out)
	}
}

// TestUnrecordedContainers checks that a container whose programs cannot be recorded reports this weakness, and refuses rules.
func TestUnrecordedContainers(t *testing.T) {
	names := []string{"runsc"}
	if os.Geteuid() != 0 {
		names = append(names, "docker")
	}
	onEach(t, names, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		s.Record, s.Deny = true, []string{"expr 1 *"}
		prepare(t, b, s)
		var u *prison.Unavailable
		if _, err := b.Start(t.Context(), s); !errors.As(err, &u) || len(u.Mend) == 0 || !strings.Contains(u.Reason, "airlock.exec.deny") {
			t.Errorf("with rules: %v", err)
		}
		s.Deny = nil
		i, err := b.Start(t.Context(), s)
		if err != nil || !i.Lacks(prison.NoPrograms) {
			t.Errorf("%+v, %v", i.Weaker, err)
		}
	})
}

// TestContainerWithoutRecord checks that no process watches a container's programs unless the spec requests a record.
func TestContainerWithoutRecord(t *testing.T) {
	t.Parallel()
	b := need(t)
	s, p := started(t, b, func(s *prison.Spec) { s.Record = false })
	if status, out := sh(t, p, "grep Seccomp_filters /proc/self/status; ls /home/.enter 2>/dev/null"); status == 0 || out != "Seccomp_filters:\t1\n" {
		t.Errorf("status %d: %s", status, out)
	}
	for _, name := range []string{"programs.json", execs.FileName} {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
