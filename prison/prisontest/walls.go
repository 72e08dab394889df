package prisontest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// walls tries to break each barrier from inside.
func walls(t *testing.T, x *box) {
	t.Run("identity", func(t *testing.T) { wallIdentity(t, x) })
	t.Run("privileges", func(t *testing.T) { wallPrivileges(t, x) })
	t.Run("system", func(t *testing.T) { wallSystem(t, x) })
	t.Run("refusals", func(t *testing.T) { wallRefusals(t, x) })
	t.Run("network", func(t *testing.T) { wallNetwork(t, x) })
	t.Run("host", func(t *testing.T) { wallHost(t, x) })
	t.Run("names", func(t *testing.T) { wallNames(t, x) })
	t.Run("limits", func(t *testing.T) { wallLimits(t, x) })
}

// ownKernel reports whether the runtime has its own kernel. Then the host does not see the prison's processes, and that kernel enforces
// the barriers.
func (x *box) ownKernel() bool { return x.spec.Runtime != "" }

func wallIdentity(t *testing.T, x *box) {
	id := fmt.Sprintf("%d %d %d", x.spec.UID, x.spec.GID, x.spec.GID)
	wanted := map[string]string{
		"echo $(id -u) $(id -g) $(id -G)":  id,
		"id -un":                           login,
		"hostname || cat /etc/hostname":    host,
		"cat /proc/sys/kernel/hostname":    host,
		"echo ~":                           "/home/" + login,
		"stat -c '%u %g %a' .":             fmt.Sprintf("%d %d 700", x.spec.UID, x.spec.GID),
		"touch mine; stat -c '%u %g' mine": fmt.Sprintf("%d %d", x.spec.UID, x.spec.GID),
		"test $(wc -l </proc/self/uid_map) -le 2 && echo ok":              "ok", // the agent's, and perhaps init's
		"touch ~/x /tmp/x /var/tmp/x /dev/shm/x && echo ok":               "ok",
		"grep -v '^nameserver 127[.]0[.]0[.]1$' /etc/resolv.conf || true": "options timeout:0 attempts:1", // the options keep some libraries from waiting
		"date +%Z": "UTC",
	}
	scripts := slices.Sorted(maps.Keys(wanted))
	statuses, outputs := Each(t, x, scripts)
	for i, script := range scripts {
		if want := wanted[script]; statuses[i] != 0 || outputs[i] != want {
			t.Errorf("%s: status %d, %q, want %q", script, statuses[i], outputs[i], want)
		}
	}
	// On the host's disk the files also belong to the phantom.
	info, err := os.Stat(x.spec.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid); got != fmt.Sprint(x.spec.UID) {
		t.Errorf("the workspace on disk belongs to %s", got)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the workspace on disk has mode %v", info.Mode())
	}
}

func wallPrivileges(t *testing.T, x *box) {
	status := x.must(t, "cat /proc/self/status")
	wanted := []string{
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
	}
	if !x.ownKernel() {
		wanted = append(wanted, "Seccomp:\t2")
	} else if !x.isolation.Lacks(prison.OwnKernel) {
		t.Error("no weakness reports that the runtime handles system calls")
	}
	for _, want := range wanted {
		if !strings.Contains(status, "\n"+want+"\n") {
			t.Errorf("no %q in the status", want)
		}
	}
	if m := regexp.MustCompile(`(?m)^Groups:(.*)$`).FindStringSubmatch(status); m == nil ||
		strings.Trim(m[1], " \t") != "" && strings.TrimSpace(m[1]) != fmt.Sprint(x.spec.GID) {
		t.Errorf("groups: %q", m)
	}
	if got := x.must(t, "ulimit -c"); got != "0" {
		t.Errorf("core files: %s", got)
	}
}

func wallSystem(t *testing.T, x *box) {
	var scripts []string
	for _, path := range []string{"/", "/usr", "/usr/bin", "/etc", "/proc/sys/kernel", "/bin", "/home"} {
		scripts = append(scripts, "touch "+path+"/new 2>/dev/null")
	}
	for _, path := range []string{"/etc/passwd", "/etc/hosts", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/1/oom_score_adj"} {
		scripts = append(scripts, "echo x > "+path)
	}
	for _, path := range []string{"environ", "root/", "cwd/", "exe", "fd/", "maps", "mem"} {
		scripts = append(scripts, "ls -d /proc/1/"+path+"/. || cat /proc/1/"+path+" > /dev/null")
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list"} {
		scripts = append(scripts, "head -c 100 "+path+" | grep -a .")
	}
	x.fails(t, scripts)
	// The few devices work.
	x.must(t, "echo x > /dev/null && head -c 5 /dev/zero /dev/urandom > /dev/null && test -c /dev/tty")
	if got := x.must(t, "find /dev -type b"); got != "" {
		t.Errorf("block devices: %q", got)
	}
}

// fails runs scripts, and fails the test if one of them succeeds.
func (x *box) fails(t *testing.T, scripts []string) {
	t.Helper()
	statuses, outputs := Each(t, x, scripts)
	for i, script := range scripts {
		if statuses[i] == 0 {
			t.Errorf("%s: succeeded: %q", script, outputs[i])
		}
	}
}

// wallRefusals tries to gain privileges, with commands that exist inside.
func wallRefusals(t *testing.T, x *box) {
	scripts := []string{
		"mount -t tmpfs none /tmp", "umount /proc", "umount -l /tmp", "unshare -n true",
		"chroot / true", "mknod dev b 8 0", "mknod dev c 1 1", "touch f && chown 0:0 f", "su -c true", "sudo -n true", "hostname other",
		"nsenter -t 1 -m true", "setpriv --reuid 0 true", "setpriv --inh-caps +all true", "insmod x", "ip link add d type dummy",
	}
	if !x.ownKernel() {
		scripts = append(scripts, "unshare -U true", "unshare -Ur true", "dmesg",
			"touch g && chmod 4755 g", "touch g && chmod 2755 g", "touch g && chmod u+s g")
	}
	x.fails(t, scripts)
	if got := x.must(t, "find . -perm /6000"); got != "" {
		t.Errorf("set-id files: %q", got)
	}
}

func wallNetwork(t *testing.T, x *box) {
	interfaces := x.must(t, "tail -n +3 /proc/net/dev | cut -d: -f1")
	if strings.TrimSpace(interfaces) != "lo" {
		t.Errorf("interfaces: %q", interfaces)
	}
	if got := x.must(t, "tail -n +2 /proc/net/route"); got != "" {
		t.Errorf("routes: %q", got)
	}
	if x.sh(t, "command -v bash").status != 0 {
		return
	}
	var scripts []string
	for _, address := range []string{fmt.Sprintf("127.0.0.1/%d", listen(t, "127.0.0.1")), "192.0.2.1/80", "169.254.169.254/80"} {
		scripts = append(scripts, "timeout 2 bash -c 'exec 3<>/dev/tcp/"+address+"'")
	}
	x.fails(t, scripts)
	// The loopback interface is up: an interface that is down refuses no connection.
	if r := x.sh(t, "timeout 30 bash -c 'exec 3<>/dev/tcp/127.0.0.1/1'"); !strings.Contains(r.errOut, "refused") {
		t.Errorf("loopback: %q", r.errOut)
	}
}

// wallHost searches the readable files for traces of the host.
func wallHost(t *testing.T, x *box) {
	var scripts []string
	if home, err := os.UserHomeDir(); err == nil {
		scripts = append(scripts, "ls "+home)
	}
	for _, path := range []string{x.spec.Dir, "/var/run/docker.sock", "/run/docker.sock", "/run/dbus", "/sys/kernel/debug", "/etc/shadow"} {
		scripts = append(scripts, "ls -A "+path+"/. | grep . || cat "+path)
	}
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		if pid > 1000 {
			scripts = append(scripts, fmt.Sprintf("ls /proc/%d", pid))
		}
	}
	x.fails(t, scripts)
	mounts := x.must(t, "cat /proc/self/mountinfo /proc/self/mounts /proc/self/cgroup")
	hidden := !strings.Contains(mounts, x.spec.Workspace) && !strings.Contains(mounts, filepath.Dir(x.spec.Dir))
	if !hidden && !x.isolation.Lacks(prison.HostPath) {
		t.Errorf("a host path is in mountinfo, and no weakness reports that")
	}
	if strings.Contains(mounts, x.spec.ID) && hidden {
		t.Error("the prison's ID is visible")
	}
	os.Setenv("PRISONTEST_SECRET", "x") // the test's own environment is not empty; other tests may run at the same time
	env := x.must(t, "env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'")
	for line := range strings.Lines(env) {
		name, _, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "PWD", "OLDPWD", "SHLVL", "_", "TERM", "":
		default:
			t.Errorf("environment: %q", line)
		}
	}
	// There are lines for three streams, for the descriptor that ls reads, and for the total.
	if n, err := strconv.Atoi(strings.TrimSpace(x.must(t, "ls -l /proc/self/fd | wc -l"))); err != nil || n > 6 {
		t.Errorf("descriptors: %s", x.must(t, "ls -l /proc/self/fd"))
	}
}

// wallNames searches for names that reveal this program.
func wallNames(t *testing.T, x *box) {
	names := []string{"airlock", "prison"}
	if host, err := os.Hostname(); err == nil && len(host) > 3 {
		names = append(names, host)
	}
	seen := x.must(t, `cat /proc/[0-9]*/comm /proc/[0-9]*/task/*/comm /proc/[0-9]*/cmdline /proc/self/mountinfo \
		/proc/self/cgroup /etc/passwd /etc/group /etc/hosts /etc/hostname 2>/dev/null | tr '\0' ' '; env
		find /usr/bin /usr/local/bin /usr/sbin /run /tmp /etc -maxdepth 1 2>/dev/null; true`)
	if x.isolation.Lacks(prison.HostPath) {
		seen = strings.ReplaceAll(seen, x.spec.Workspace, "")
	}
	for _, name := range names {
		for line := range strings.Lines(seen) {
			if strings.Contains(line, name) {
				t.Errorf("the agent can read %q", line)
			}
		}
	}
}

// wallLimits tries to start more processes than the limit allows.
func wallLimits(t *testing.T, x *box) {
	if r := x.sh(t, startMany(600)); r.status == 0 {
		t.Errorf("could start 600 processes with a limit of %d", x.spec.Limits.PIDs)
	}
	eventually(t, "the processes are gone", func() bool { return len(processesOf(t, x.spec)) < 20 })
	x.must(t, "true")
}
