package docker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestCoreDumps changes the core dump limit with both system calls. The limit must stay the one with which the kernel starts no program
// on the host, and the calls must report success.
func TestCoreDumps(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		p := startedWith(t, b, o)
		var scripts, wanted []string
		for _, lowering := range []string{"true", "ulimit -c 0", "ulimit -Hc 0", "ulimit -Sc 0", "prlimit --core=0 --pid $$", "prlimit --core=0:0 true"} {
			scripts = append(scripts, lowering+"; echo $?; grep core /proc/self/limits; prlimit --core --raw --noheadings -o SOFT,HARD")
			wanted = append(wanted, "0 Max core file size 1 1 bytes 1 1")
		}
		// The older call, a number that equals the limit's only in the low half, and a call that only reads the limit.
		for _, call := range []string{`160, 4, $new`, `302, 0, 4 | 1 << 32, $new, 0`, `302, 0, 4, 0, $old`} {
			scripts = append(scripts, "perl -e '$| = 1; $new = pack(q(QQ), 0, 0); $old = $new; print syscall("+call+"); exec qw(grep core /proc/self/limits)'")
			wanted = append(wanted, "0Max core file size 1 1 bytes")
		}
		statuses, outputs := prisontest.Each(t, p, scripts)
		for i, script := range scripts {
			if statuses[i] != 0 || strings.Join(strings.Fields(outputs[i]), " ") != wanted[i] {
				t.Errorf("%s: status %d, %q", script, statuses[i], outputs[i])
			}
		}
		if status, out := sh(t, p, "ulimit -n 99 && ulimit -n && prlimit --nofile=98 --pid $$ && ulimit -n"); status != 0 || out != "99\n98\n" {
			t.Errorf("another limit: status %d, %q", status, out)
		}
	})
}

// TestKernelTells checks that the kernel's files reveal nothing about the machine's disks, devices and users, and that the files that
// programs need exist.
func TestKernelTells(t *testing.T) {
	onEachAsRoot(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		p := startedWith(t, b, o)
		closed := []string{
			"/proc/bus/*/*", "/proc/swaps", "/proc/partitions", "/proc/filesystems", "/proc/fs/*", "/proc/diskstats", "/proc/modules", "/proc/locks",
			"/proc/devices", "/proc/misc", "/proc/tty/*", "/proc/config.gz", "/proc/irq/*", "/sys/block/*", "/sys/class/*", "/sys/bus/*", "/sys/dev/*",
			"/sys/module/*", "/sys/devices/virtual/*", "/sys/fs/ext4/*",
		}
		open := []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/cgroups",
			"/proc/self/mountinfo", "/proc/net/dev", "/sys/devices/system/cpu/online", "/sys/fs/cgroup/*", "/sys/kernel/mm/transparent_hugepage/enabled"}
		var scripts []string
		for _, path := range closed {
			scripts = append(scripts, "cat "+path+" 2>/dev/null | head -c 100; case '"+path+"' in *'*') ls -d "+path+" 2>/dev/null;; esac")
		}
		for _, path := range open {
			scripts = append(scripts, "ls -d "+path+" && for f in "+path+"; do test -d $f || cat $f >/dev/null || exit; done; nproc >/dev/null")
		}
		statuses, outputs := prisontest.Each(t, p, scripts)
		for i, path := range slices.Concat(closed, open) {
			switch {
			case i < len(closed) && outputs[i] != "":
				t.Errorf("%s tells %q", path, outputs[i])
			case i >= len(closed) && statuses[i] != 0:
				t.Errorf("%s cannot be read: %q", path, outputs[i])
			}
		}
	})
}

// TestOwnLimits checks that all resources that use the kernel's memory are limited, for any limits of the engine, and that no limit can
// be raised.
func TestOwnLimits(t *testing.T) {
	onEach(t, []string{"docker", "podman", "runsc"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		p := startedWith(t, b, o)
		all := map[int]int64{7: prison.MostFiles, 8: 8 << 20, 11: 16 * 256, 12: 800 << 10, 13: 0, 14: 0}
		resources := slices.Sorted(maps.Keys(all))
		var scripts []string
		for _, resource := range resources {
			scripts = append(scripts, fmt.Sprintf(`perl -e '$l = pack(q(QQ)); syscall(302, 0, %d, 0, $l) == 0 or die; printf q(%%d %%d), unpack(q(QQ), $l);
				$l = pack(q(QQ), 1 << 40, 1 << 40); print q( raised) if syscall(302, 0, %[1]d, $l, 0) == 0'`, resource))
		}
		_, outputs := prisontest.Each(t, p, scripts)
		for i, resource := range resources {
			out, most := outputs[i], all[resource]
			var soft, hard int64
			if n, err := fmt.Sscan(out, &soft, &hard); n != 2 || soft != hard || hard > most || strings.Contains(out, "raised") {
				t.Errorf("limit %d is %q, %v; want at most %d", resource, out, err, most)
			}
		}
	})
}

// startedWith starts a prison with a test's options.
func startedWith(t *testing.T, b *docker.Backend, o prisontest.Options) prison.Prison {
	t.Helper()
	s := prisontest.NewSpec(t, b, o)
	prepare(t, b, s)
	return again(t, b, s)
}
