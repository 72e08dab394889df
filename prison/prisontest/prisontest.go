// Package prisontest is the test suite for the promises that every prison backend makes.
//
// It uses only the interfaces of package prison, and checks a prison from inside with commands that every system has. Begin reading at
// [Run].
package prisontest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// Options configure the suite.
type Options struct {
	UID, GID int // ids of a phantom that the backend can use
	// Image is the image with git and a shell for a backend that needs one.
	Image string
	// Runtime is the container runtime to test. Empty means the engine's default.
	Runtime string
	// Brief reduces the number of repetitions.
	Brief bool
	// Record records the programs in the suite's prisons.
	Record bool
	// Dir is the folder for workspaces and host state. Empty means a new temporary folder.
	Dir string
}

// login and host are the names that the suite's prisons show inside.
const (
	login = "dev"
	host  = "workbench"
)

// patience limits every step that should be quick. An engine may need many seconds for a step. The agent's programs have a low priority:
// on a machine with thirty busy processes they get a fiftieth of a processor.
const patience = 10 * time.Minute

// Run checks every promise of a backend.
func Run(t *testing.T, b prison.Backend, o Options) {
	t.Run("lifecycle", func(t *testing.T) { lifecycle(t, b, o) })
	t.Run("working", func(t *testing.T) {
		x := start(t, b, o)
		x.brief = o.Brief
		t.Run("exec", func(t *testing.T) { execs(t, x) })
		t.Run("terminal", func(t *testing.T) { terminals(t, x) })
		t.Run("table", func(t *testing.T) { table(t, x) })
		t.Run("walls", func(t *testing.T) { walls(t, x) })
		t.Run("watch", func(t *testing.T) { watches(t, x) })
	})
	t.Run("exhausting", func(t *testing.T) { exhausts(t, b, o) })
	t.Run("looking", func(t *testing.T) { looking(t, b, o) })
	t.Run("wipe", func(t *testing.T) { wipes(t, b, o) })
}

// box is a prison under test.
type box struct {
	backend   prison.Backend
	brief     bool // repeat less often
	spec      prison.Spec
	isolation prison.Isolation
	prison.Prison
}

// rounds returns how often a check is repeated: n times, or fewer for a brief suite.
func (x *box) rounds(n int) int {
	if x.brief {
		return max(1, n/5)
	}
	return n
}

// NewSpec returns the spec of a prison that does not exist yet. The test removes the prison and its folders at its end.
func NewSpec(t testing.TB, b prison.Backend, o Options) prison.Spec {
	t.Helper()
	dir := o.Dir
	if dir == "" {
		dir = t.TempDir()
	}
	s := prison.Spec{
		ID:  fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano()),
		Dir: filepath.Join(dir, "state"), Workspace: filepath.Join(dir, "work"),
		UID: o.UID, GID: o.GID, User: login, Hostname: host, Image: o.Image, Runtime: o.Runtime,
		Limits: prison.Limits{Memory: 1 << 30, PIDs: 256}, Record: o.Record,
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := b.Stop(ctx, s); err != nil {
			t.Errorf("stop at the end: %v", err)
		}
		if err := b.Wipe(ctx, s); err != nil {
			t.Errorf("wipe at the end: %v", err)
		}
	})
	return s
}

func start(t *testing.T, b prison.Backend, o Options) *box {
	t.Helper()
	return startFirst(t, b, NewSpec(t, b, o))
}

// startFirst starts a prison that does not exist yet.
func startFirst(t *testing.T, b prison.Backend, s prison.Spec) *box {
	t.Helper()
	if err := b.Prepare(t.Context(), s); err != nil {
		t.Fatalf("prepare: %v", err)
	}
	return restart(t, b, s)
}

func restart(t *testing.T, b prison.Backend, s prison.Spec) *box {
	t.Helper()
	isolation, err := b.Start(t.Context(), s)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return attach(t, b, s, isolation)
}

// attach returns the box of a prison that has been started.
func attach(t *testing.T, b prison.Backend, s prison.Spec, isolation prison.Isolation) *box {
	t.Helper()
	p, err := b.Attach(t.Context(), s)
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	return &box{backend: b, spec: s, isolation: isolation, Prison: p}
}

func open(t *testing.T, b prison.Backend, s prison.Spec) *box {
	t.Helper()
	s.ReadOnly = true
	p, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { p.Close() })
	return &box{backend: b, spec: s, Prison: p}
}

// result is the result of a command.
type result struct {
	status      int
	out, errOut string
}

// sh runs a script inside, and fails the test if the script does not start. The output has no final line end.
func (x *box) sh(t *testing.T, script string) result {
	t.Helper()
	return x.run(t, nil, "sh", "-c", script)
}

func (x *box) run(t *testing.T, stdin io.Reader, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errOut bytes.Buffer
	status, err := x.Exec(ctx, prison.Process{Argv: argv, Stdin: stdin, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	return result{status, strings.TrimSuffix(out.String(), "\n"), strings.TrimSuffix(errOut.String(), "\n")}
}

// must runs a script inside, fails the test if the script fails, and returns the script's output.
func (x *box) must(t *testing.T, script string) string {
	t.Helper()
	r := x.sh(t, script)
	if r.status != 0 {
		t.Fatalf("%s: status %d: %s%s", script, r.status, r.out, r.errOut)
	}
	return r.out
}

// eachScript runs its arguments as scripts. It prints the status and the output of each, with a zero byte after each value.
const eachScript = `for _script; do _out=$(sh -c "$_script" </dev/null); printf '%d\0%s\0' $? "$_out"; done`

// Each runs scripts one after the other in one command, and returns their statuses and outputs. A container engine needs more time to
// start a command than most scripts need to run.
func Each(t *testing.T, p prison.Prison, scripts []string) (statuses []int, outputs []string) {
	t.Helper()
	x := box{Prison: p}
	r := x.run(t, nil, slices.Concat([]string{"sh", "-c", eachScript, "sh"}, scripts)...)
	words := strings.Split(r.out, "\x00")
	if r.status != 0 || len(words) != 2*len(scripts)+1 {
		t.Fatalf("%q: status %d, %q, %s", scripts, r.status, r.out, r.errOut)
	}
	for i, script := range scripts {
		status, err := strconv.Atoi(words[2*i])
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		statuses, outputs = append(statuses, status), append(outputs, words[2*i+1])
	}
	if r.errOut != "" {
		t.Log(r.errOut)
	}
	return statuses, outputs
}

// processesOf lists the running processes of a prison on the host. It finds them by their gid, which init has as well.
func processesOf(t *testing.T, s prison.Spec) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		status := string(content)
		if strings.Contains(status, fmt.Sprintf("\nGid:\t%d\t", s.GID)) && !strings.Contains(status, "\nState:\tZ") {
			name, _, _ := strings.Cut(string(content), "\n")
			found = append(found, filepath.Base(filepath.Dir(path))+" "+name)
		}
	}
	return found
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
