package prisontest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

func lifecycle(t *testing.T, b prison.Backend, o Options) {
	t.Run("start and stop", func(t *testing.T) { startStop(t, b, o) })
	t.Run("stop ends all", func(t *testing.T) { stopEndsAll(t, b, o) })
	t.Run("launch", func(t *testing.T) { launches(t, b, o) })
	t.Run("join", func(t *testing.T) { joins(t, b, o) })
	t.Run("join and not read", func(t *testing.T) { joinStuck(t, b, o) })
	t.Run("variables", func(t *testing.T) { variables(t, b, o) })
	t.Run("network", func(t *testing.T) { networks(t, b, o) })
}

func startStop(t *testing.T, b prison.Backend, o Options) {
	ctx := t.Context()
	if err := b.Probe(ctx); err != nil {
		t.Fatalf("probe: %v", err)
	}
	s := NewSpec(t, b, o)
	if _, err := b.Attach(ctx, s); !errors.Is(err, prison.ErrNotRunning) {
		t.Errorf("attach before anything: %v", err)
	}
	if _, err := b.OpenHome(ctx, s); !errors.Is(err, prison.ErrNoHome) {
		t.Errorf("home before anything: %v", err)
	}
	if err := b.Stop(ctx, s); err != nil {
		t.Errorf("stop before anything: %v", err)
	}
	if err := b.Wipe(ctx, s); err != nil {
		t.Errorf("wipe before anything: %v", err)
	}
	if err := b.Prepare(ctx, s); err != nil {
		t.Fatalf("prepare: %v", err)
	}
	info, err := os.Stat(s.Workspace)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("workspace: %v, %v", info.Mode(), err)
	}
	if err := b.Prepare(ctx, s); err == nil {
		t.Error("prepare where something exists: no error")
	}
	x := restart(t, b, s)
	x.must(t, "echo kept > ~/file; echo kept > file; echo gone > /tmp/file")
	if _, err := b.Start(ctx, s); err == nil {
		t.Error("started twice")
	}
	if err := b.Wipe(ctx, s); err == nil {
		t.Error("wiped while it runs")
	}
	if err := b.Stop(ctx, s); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if _, err := x.Exec(ctx, prison.Process{Argv: []string{"true"}}); !errors.Is(err, prison.ErrNotRunning) {
		t.Errorf("exec after stop: %v", err)
	}
	x = restart(t, b, s)
	if got := x.must(t, "cat ~/file file; ls /tmp"); got != "kept\nkept" {
		t.Errorf("after a restart: %q", got)
	}
	looksHome(t, b, s)
}

// looksHome reads the agent's home from another prison. That prison can read everything in the home, and change nothing.
func looksHome(t *testing.T, b prison.Backend, s prison.Spec) {
	t.Helper()
	s.ReadOnly, s.Network = true, prison.NetworkNone
	p, err := b.OpenHome(t.Context(), s)
	if err != nil {
		t.Fatalf("open home: %v", err)
	}
	defer p.Close()
	x := &box{backend: b, spec: s, Prison: p}
	if got := x.must(t, `cat "$(find . -name file)"; ! (echo x >"$(find . -name file)") 2>/dev/null`); got != "kept" {
		t.Errorf("home holds %q", got)
	}
	if disk := b.HomeDisk(s); disk != "" {
		if _, err := os.Stat(disk); err != nil {
			t.Errorf("disk of the home: %v", err)
		}
	}
}

// stopEndsAll leaves processes in every possible way, and checks that Stop ends them.
func stopEndsAll(t *testing.T, b prison.Backend, o Options) {
	x := start(t, b, o)
	x.must(t, `(setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' >/dev/null 2>&1 &)
		(nohup sleep 4444 >/dev/null 2>&1 &) ; setsid -f sleep 4444 >/dev/null 2>&1; true`)
	running := make(chan error, 1)
	go func() {
		_, err := x.Exec(t.Context(), prison.Process{Argv: []string{"sleep", "4444"}})
		running <- err
	}()
	changes, err := x.Watch(t.Context(), []string{prison.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	if !x.ownKernel() {
		eventually(t, "the processes are there", func() bool { return len(processesOf(t, x.spec)) >= 4 })
	}
	if err := b.Stop(t.Context(), x.spec); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if left := processesOf(t, x.spec); len(left) > 0 {
		t.Errorf("processes left: %q", left)
	}
	if err := <-running; !errors.Is(err, prison.ErrNotRunning) {
		t.Errorf("exec during stop: %v", err)
	}
	select {
	case _, open := <-changes:
		if open {
			_, open = <-changes
		}
		if open {
			t.Error("the watch goes on")
		}
	case <-time.After(patience):
		t.Error("the watch does not end")
	}
}

func launches(t *testing.T, b prison.Backend, o Options) {
	ctx := t.Context()
	x := start(t, b, o)
	state := func() prison.Launched {
		l, err := b.Launched(ctx, x.spec)
		if err != nil || l == nil {
			t.Fatalf("launched: %v, %v", l, err)
		}
		return *l
	}
	if l, err := b.Launched(ctx, x.spec); l != nil || err != nil {
		t.Errorf("launched before anything: %v, %v", l, err)
	}
	if err := x.Launch(ctx, prison.Process{Argv: []string{"no-such-command"}}); !errors.Is(err, prison.ErrNotFound) {
		t.Errorf("launch of nothing: %v", err)
	}
	// The command has a terminal, and never waits when it writes to it.
	argv := []string{"sh", "-c", "test -t 0 && test -t 1 || exit 1; head -c 3000000 /dev/zero | tr '\\0' x; touch went; sleep 0.2; exit 5"}
	if err := x.Launch(ctx, prison.Process{Argv: argv}); err != nil {
		t.Fatalf("launch: %v", err)
	}
	if l := state(); !slices.Equal(l.Argv, argv) {
		t.Errorf("launched: %v", l)
	}
	eventually(t, "the command has ended", func() bool { return state().Exited })
	if l := state(); l.Status != 5 {
		t.Errorf("launched: %v", l)
	}
	x.must(t, "test -e went")
	if err := x.Launch(ctx, prison.Process{Argv: []string{"sleep", "3333"}}); err != nil {
		t.Fatalf("launch: %v", err)
	}
	eventually(t, "the next one is known", func() bool { return state().Argv[0] == "sleep" })
	if l := state(); l.Exited {
		t.Errorf("launched: %v", l)
	}
	if err := b.Stop(ctx, x.spec); err != nil {
		t.Fatal(err)
	}
	if l := state(); !l.Exited || l.Status != 137 {
		t.Errorf("launched after stop: %v", l)
	}
}

// wipes lets an agent make files that are hard to remove, and links to files that must stay, and checks Wipe.
func wipes(t *testing.T, b prison.Backend, o Options) {
	x := start(t, b, o)
	outside := t.TempDir()
	treasure := filepath.Join(outside, "treasure")
	if err := os.WriteFile(treasure, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	depth := 60
	if x.ownKernel() { // no path in such a kernel is longer than PATH_MAX, even a relative one
		depth = 18
	}
	deep := fmt.Sprintf("i=0; while [ $i -lt %d ]; do mkdir %s && cd -P %[2]s || exit 1; i=$((i+1)); done", depth, strings.Repeat("d", 200))
	x.must(t, `ln -s `+outside+` link; ln -s `+treasure+` file; ln -s / root; ln -s .. up; mkfifo fifo
		mkdir -p closed/inner && touch closed/inner/file && ln -s `+outside+` closed/inner/link && chmod 000 closed/inner closed
		mkdir ro && touch ro/file && chmod 555 ro
		ln -s `+outside+` ~/link; mkdir ~/closed; chmod 0 ~/closed
		`+deep+`; touch bottom`)
	if err := b.Stop(t.Context(), x.spec); err != nil {
		t.Fatal(err)
	}
	if err := b.Wipe(t.Context(), x.spec); err != nil {
		t.Fatalf("wipe: %v", err)
	}
	if _, err := os.Lstat(x.spec.Workspace); !os.IsNotExist(err) {
		t.Errorf("the workspace is there: %v", err)
	}
	if _, err := os.Stat(treasure); err != nil {
		t.Errorf("a file outside: %v", err)
	}
	if err := b.Wipe(t.Context(), x.spec); err != nil {
		t.Errorf("wipe again: %v", err)
	}
	if got := startFirst(t, b, x.spec).must(t, "ls -A . ~ | grep -v :"); strings.TrimSpace(got) != "" {
		t.Errorf("after a wipe there is %q", got)
	}
}
