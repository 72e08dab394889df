//go:build linux

package native_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// TestExhaust uses up the resources that only this backend limits.
func TestExhaust(t *testing.T) {
	b, s := prepared(t)
	s.Limits = prison.Limits{Memory: 64 << 20}
	start(t, b, s)
	for what, script := range map[string]string{
		"inodes":                            "cd /tmp; i=0; while [ $i -lt 20000 ]; do true >f$i || break; i=$((i+1)); done; echo; test $i -gt 10000 && test $i -lt 17000 && echo bounded",
		"devices":                           "(true >/dev/new) || mkdir /dev/d || rm /dev/ptmx || ln -s /tmp /dev/link || echo bounded",
		"descriptors":                       "test $(ulimit -Hn) -le 65536 && test $(ulimit -n) -le 1024 && echo bounded",
		"being spared when memory is short": "echo 0 >/proc/self/oom_score_adj; test $(cat /proc/self/oom_score_adj) -ge 500 && echo bounded",
	} {
		if got := output(t, b, s, "("+script+") 2>/dev/null"); got != "bounded" {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestMachine checks that files which identify the machine are hidden.
func TestMachine(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	if got := output(t, b, s, `cd /proc && { cat swaps partitions diskstats mdstat devices filesystems modules misc interrupts iomem locks crypto version_signature sys/kernel/random/boot_id
		ls -A bus fs irq tty driver sys/dev; find bus fs irq -type f; } 2>/dev/null | grep -v ':$'`); got != "" {
		t.Errorf("%q", got)
	}
	// Builds read these files.
	if got := output(t, b, s, `cd /proc && for f in cpuinfo meminfo stat loadavg uptime version vmstat cgroups mounts self/status sys/kernel/random/uuid sys/vm/overcommit_memory sys/kernel/pid_max; do
		test $(head -c 10 $f | wc -c) -gt 0 || echo $f; done`); got != "" {
		t.Errorf("cannot be read: %s", got)
	}
}
