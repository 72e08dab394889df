//go:build linux

package native_test

import (
	"os"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestMemoryLimit uses more than there is, all together.
func TestMemoryLimit(t *testing.T) {
	b, s := prepared(t)
	i, err := b.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if i.Lacks(prison.LooseMemoryLimit) {
		if os.Geteuid() == 0 && prisontest.Required("native") {
			t.Fatalf("root has no control group for memory: %q", i.Weaker)
		}
		t.Skipf("SKIPPED: no control group for memory: %q", i.Weaker)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s.Limits = prison.Limits{Memory: 64 << 20}
	if _, err := b.Start(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got := output(t, b, s, "head -c 200M /dev/zero | tail -c 190M > /dev/null; echo $?")
	if got == "0" {
		t.Error("190 MB fitted in 64")
	}
	if got := output(t, b, s, "echo on"); got != "on" {
		t.Errorf("output %q", got)
	}
}

// TestCourtesy checks that the host's own programs come first.
func TestCourtesy(t *testing.T) {
	b, s := prepared(t)
	if _, err := b.Start(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got := output(t, b, s, "cat /proc/self/oom_score_adj; cut -d' ' -f19 /proc/self/stat; umask; echo -1000 > /proc/self/oom_score_adj")
	if got != "500\n5\n0022" {
		t.Errorf("score, niceness, mask: %q", got)
	}
}
