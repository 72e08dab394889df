package prisontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// exhausts uses up resources in a small prison. Each attempt must fail inside, and the prison must answer afterwards or be startable:
// when files in memory fill a container, the kernel may kill its first process.
func exhausts(t *testing.T, b prison.Backend, o Options) {
	s := NewSpec(t, b, o)
	s.Limits = prison.Limits{Memory: 96 << 20, PIDs: 60, CPUs: 1}
	x := startFirst(t, b, s)
	t.Run("socket buffers", func(t *testing.T) {
		fillSockets(t, x)
		x = answering(t, b, s, x)
	})
	for _, c := range []struct{ name, script string }{
		// Without a control group, the lowest memory limit of a process is 256 MiB.
		{"memory", "head -c 600M /dev/zero | tail -c 590M >/dev/null"},
		{"scratch folder", "head -c 400M /dev/zero >/tmp/big; s=$?; rm -f /tmp/big; exit $s"},
		{"shared memory", "head -c 400M /dev/zero >/dev/shm/big; s=$?; rm -f /dev/shm/big; exit $s"},
		{"descriptors", "ulimit -n 2000000"},
		{"processes", startMany(200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, err := x.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", c.script}})
			if err == nil && status == 0 {
				t.Errorf("%s: succeeded", c.script)
			}
			x = answering(t, b, s, x)
		})
	}
	t.Run("signals", func(t *testing.T) {
		eventually(t, "the processes of before have ended", func() bool { return len(processesOf(t, x.spec)) < 10 })
		x.sh(t, "kill -STOP 1; kill -TERM 1; kill -KILL 1; kill -KILL -1")
		x.must(t, "true")
	})
	t.Run("fork bomb", func(t *testing.T) { forkBomb(t, x) })
}

// startMany returns a script that starts n processes, which run until the script ends. It fails when one of them cannot be started.
func startMany(n int) string {
	return fmt.Sprintf(`trap 'kill $p' EXIT; i=0; p=; while [ $i -lt %d ]; do sleep 6000 & p="$p $!"; i=$((i+1)); done 2>/dev/null`, n)
}

// answering waits until a prison answers, and returns it. If the kernel has killed the prison to free memory, answering starts it again.
// That happens where a single program on the host runs the whole prison.
func answering(t *testing.T, b prison.Backend, s prison.Spec, x *box) *box {
	t.Helper()
	eventually(t, "the prison answers", func() bool {
		status, err := x.Exec(t.Context(), prison.Process{Argv: []string{"true"}})
		if errors.Is(err, prison.ErrNotRunning) {
			t.Log("the prison ended")
			// Shortly before the prison counts as ended, it cannot execute commands.
			if err := b.Stop(t.Context(), s); err != nil {
				t.Fatalf("stop: %v", err)
			}
			x = restart(t, b, s)
		}
		return err == nil && status == 0
	})
	return x
}

// fillSockets fills the buffers of many connections at once, without reading.
func fillSockets(t *testing.T, x *box) {
	script := `command -v perl >/dev/null || { echo 0; exit; }; perl -MSocket -MFcntl -e '
		socket(my $l, PF_INET, SOCK_STREAM, 0) or die; bind($l, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen($l, 500) or die;
		my ($sum, @all) = 0;
		for (1..200) {
			socket(my $c, PF_INET, SOCK_STREAM, 0) or last;
			connect($c, getsockname($l)) or last; accept(my $s, $l) or last; push @all, $c, $s;
			fcntl($c, F_SETFL, O_NONBLOCK);
			for (1..64) { my $n = syswrite($c, "x" x 65536); last unless $n; $sum += $n }
		}
		print "$sum
"'`
	var out bytes.Buffer
	status, err := x.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}, Stdout: &out})
	if errors.Is(err, prison.ErrNotRunning) || err == nil && status >= 128 {
		t.Log("the queued data counts as the prison's memory, and the prison was killed for it")
		return
	}
	var queued int64
	if _, scanErr := fmt.Sscan(out.String(), &queued); err != nil || scanErr != nil {
		t.Fatalf("%d, %v, %v: %q", status, err, scanErr, out.String())
	}
	t.Logf("%d MiB were queued", queued>>20)
	limited := !x.isolation.Lacks(prison.LooseMemoryLimit) && !x.isolation.Lacks(prison.NoMemoryLimit)
	if limited && queued > x.spec.Limits.Memory {
		t.Errorf("%d bytes are queued in a prison of %d", queued, x.spec.Limits.Memory)
	}
}

// forkBomb starts a fork bomb that goes on after its first process has ended.
func forkBomb(t *testing.T, x *box) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	x.Exec(ctx, prison.Process{Argv: []string{"sh", "-c", "b() { b | b & }; b; sleep 1"}}) // any result is accepted
	// While /proc is read, processes end and begin. Processes in two successive lists ran at the same time between them.
	most, before := 0, []string{}
	for range 20 {
		after := processesOf(t, x.spec)
		both := slices.DeleteFunc(before, func(process string) bool { return !slices.Contains(after, process) })
		most, before = max(most, len(both)), after
		time.Sleep(10 * time.Millisecond)
	}
	if allowed := x.spec.Limits.PIDs + 20; most > allowed {
		t.Errorf("%d processes; at most %d", most, allowed)
	}
	if err := x.backend.Stop(t.Context(), x.spec); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if left := processesOf(t, x.spec); len(left) > 0 {
		t.Errorf("processes left: %q", left)
	}
	restart(t, x.backend, x.spec).must(t, "true")
}
