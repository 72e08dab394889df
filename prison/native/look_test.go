//go:build linux

package native_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// lookGroups lists the control groups of this process's read-only prisons. Other processes have some of their own.
func lookGroups(t *testing.T) []string {
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

// TestReadOnlyLimits uses more memory in a read-only prison than its limit, in many processes together, and starts more
// processes than allowed. The control groups must end with the prison.
func TestReadOnlyLimits(t *testing.T) {
	b, s := prepared(t)
	isolation, err := b.Start(t.Context(), s) // shows whether there are control groups
	if err != nil {
		t.Fatal(err)
	}
	if isolation.Lacks(prison.LooseMemoryLimit) || isolation.Lacks(prison.LooseProcessLimit) {
		t.Skip("SKIPPED: this user may make no control groups, which is said under weaker")
	}
	before := len(lookGroups(t))
	s.ReadOnly, s.Limits = true, prison.Limits{Memory: 64 << 20, PIDs: 60, CPUs: 1}
	look, err := b.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(lookGroups(t)) == before {
		t.Error("it has no group of its own")
	}
	for _, script := range []string{
		"for i in 1 2 3 4; do (head -c 200M /dev/zero | tail -c 190M >/dev/null && echo much) & done; wait",
		"(i=0; while [ $i -lt 120 ]; do sleep 5 & i=$((i+1)); done; echo all) 2>/dev/null; true",
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
	if got := len(lookGroups(t)); got > before {
		t.Errorf("%d groups are left", got-before)
	}
}
