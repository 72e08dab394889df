//go:build linux

package native_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// readOnlyGroups lists the control groups of this process's read-only prisons. Other processes have other groups.
func readOnlyGroups(t *testing.T) []string {
	t.Helper()
	var all []string
	name := fmt.Sprintf("box-*-%d-*", os.Getpid())
	for _, folder := range []string{"memory/*/", "memory/", "", "*/"} {
		found, err := filepath.Glob("/sys/fs/cgroup/" + folder + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestReadOnlyLimits uses more memory in a read-only prison than its limit, in many processes together, and starts more processes than
// the limit allows. The control groups must end with the prison.
func TestReadOnlyLimits(t *testing.T) {
	b, s := prepared(t)
	isolation, err := b.Start(t.Context(), s) // to find out whether there are control groups
	if err != nil {
		t.Fatal(err)
	}
	needGroups(t, isolation, prison.LooseMemoryLimit, prison.LooseProcessLimit)
	before := len(readOnlyGroups(t))
	s.ReadOnly, s.Limits = true, prison.Limits{Memory: 64 << 20, PIDs: 60, CPUs: 1}
	look, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(readOnlyGroups(t)) == before {
		t.Error("it has no group of its own")
	}
	for _, script := range []string{
		"for i in 1 2 3 4; do (head -c 200M /dev/zero | tail -c 190M >/dev/null && echo much) & done; wait",
		"(trap 'kill $p' EXIT; i=0; p=; while [ $i -lt 120 ]; do sleep 600 & p=\"$p $!\"; i=$((i+1)); done; echo all) 2>/dev/null; true",
	} {
		var out bytes.Buffer
		if _, err := look.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != "" {
			t.Errorf("%s: %q", script, got)
		}
	}
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(readOnlyGroups(t)); got > before {
		t.Errorf("%d groups are left", got-before)
	}
}

// TestReadOnlyProcessors lets processes of a read-only prison compute without end. A limit of half a processor must apply to all of them
// together, and they must end with the command, which has a time limit.
func TestReadOnlyProcessors(t *testing.T) {
	b, s := prepared(t)
	isolation, err := b.Start(t.Context(), s) // to find out whether there are control groups
	if err != nil {
		t.Fatal(err)
	}
	needGroups(t, isolation, prison.NoCPULimit)
	s.ReadOnly, s.Limits = true, prison.Limits{Memory: 64 << 20, PIDs: 60, CPUs: 0.5}
	look, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	const script = "for i in 1 2 3 4; do timeout 2 sh -c 'while :; do :; done' & done; wait; times"
	var out bytes.Buffer
	begun := time.Now()
	if _, err := look.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	var used time.Duration
	for _, field := range strings.Fields(out.String()) {
		d, err := time.ParseDuration(field)
		if err != nil {
			t.Fatalf("times: %q", out.String())
		}
		used += d
	}
	// In each period of 100 ms, a group may use its share on each processor at once.
	if most := took/2 + 400*time.Millisecond; used == 0 || used > most {
		t.Errorf("%s of processor time in %s, want at most %s", used, took, most)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if status, err := look.Exec(ctx, prison.Process{Argv: []string{"sh", "-c", "while :; do :; done"}}); err == nil {
		t.Errorf("a command without end ended with %d", status)
	}
	out.Reset()
	const left = "grep -l 'do [:]; done' /proc/[0-9]*/cmdline 2>/dev/null || true"
	if _, err := look.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", left}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("left: %s", out.String())
	}
}

// TestAlone opens a prison that is alone with its workspace. Its programs may write there, cannot read the workspace's path on the host,
// and do not have the limits of git for the host.
func TestAlone(t *testing.T) {
	b, s := prepared(t)
	s.Alone = true
	before := len(readOnlyGroups(t))
	box, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	const script = "echo text >file; touch ~/own; cat /proc/self/mountinfo; cat file; ls ~"
	status, err := box.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil || status != 0 || !strings.HasSuffix(out.String(), "\ntext\nown\n") {
		t.Errorf("status %d, %v, output %q", status, err, out.String())
	}
	if strings.Contains(out.String(), filepath.Base(s.Dir)+"/") || strings.Contains(out.String(), s.Workspace) {
		t.Errorf("a path on the host can be seen: %s", out.String())
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(s.Dir, "home", "own")); err == nil {
		t.Error("the home is not a fresh one")
	}
	if got := len(readOnlyGroups(t)); got > before {
		t.Errorf("%d groups are left", got-before)
	}
}
