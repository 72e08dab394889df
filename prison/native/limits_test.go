//go:build linux

package native_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestMemoryLimit uses more memory than the limit in all processes together.
func TestMemoryLimit(t *testing.T) {
	b, s := prepared(t)
	i := start(t, b, s)
	needGroups(t, i, prison.LooseMemoryLimit)
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s.Limits = prison.Limits{Memory: 64 << 20}
	start(t, b, s)
	got := output(t, b, s, "head -c 200M /dev/zero | tail -c 190M > /dev/null; echo $?")
	if got == "0" {
		t.Error("190 MB fitted in 64")
	}
	runsOn(t, b, s)
}

// TestAgentHasLowPriority checks that the agent's programs have a lower priority than the host's.
func TestAgentHasLowPriority(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	got := output(t, b, s, "cat /proc/self/oom_score_adj; cut -d' ' -f19 /proc/self/stat; umask; echo -1000 > /proc/self/oom_score_adj")
	if got != "500\n5\n0022" {
		t.Errorf("score, niceness, mask: %q", got)
	}
}

// TestNetlinkMemory requests answers from the kernel and reads none. No control group counts their memory.
func TestNetlinkMemory(t *testing.T) {
	_, err := exec.LookPath("perl")
	prisontest.Need(t, "native", err)
	b, s := prepared(t)
	s.Limits = prison.Limits{Memory: 64 << 20}
	start(t, b, s)
	p := attach(t, b, s)
	defer p.Close()
	// Each request is invalid, and the answer repeats it.
	const flood = `$| = 1; my @all; for (1..900) { socket(my $s, 16, 3, 0) or last; push @all, $s; fcntl($s, 4, 2048);
		my $r = pack("LSSLL", 30000, 20, 5, 1, 0) . "x" x 29984; my $to = pack("SSLL", 16, 0, 0, 0); for (1..20) { send($s, $r, 0, $to) or last } }
		sleep 600`
	if status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"perl", "-e", flood}}); err == nil {
		t.Errorf("exit status %d, and the prison goes on", status)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// needGroups skips a test if a prison lacks the control groups for some limits, as for an ordinary user. Where the tests were promised a native
// prison, root has them, and the test fails.
func needGroups(t *testing.T, i prison.Isolation, without ...prison.Missing) {
	t.Helper()
	for _, lack := range without {
		if !i.Lacks(lack) {
			continue
		}
		if os.Geteuid() == 0 && prisontest.Required("native") {
			t.Fatalf("root has no control group: %q", i.Weaker)
		}
		t.Skipf("SKIPPED: no control group: %q", i.Weaker)
	}
}
