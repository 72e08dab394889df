package selftest

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// otherMetadata are the addresses, except the link-local one, at which clouds give metadata to their machines: Alibaba's, Azure's and
// Oracle's.
var otherMetadata = []string{"100.100.100.200", "168.63.129.16", "192.0.0.192"}

// probes returns the promises of a prison, in the order in which they are shown.
func probes() []probe { //nolint:funlen // a table
	return append([]probe{
		{
			name: "identity", promise: "uid and gid are the phantom's, with no other group",
			tried: "id", script: "echo $(id -u) $(id -g) $(id -G)",
			evaluate: func(s Subject, out string) (string, string) {
				return expect(out, fmt.Sprintf("%d %d %d", s.Spec.UID, s.Spec.GID, s.Spec.GID))
			},
		},
		{
			name: "privileges", promise: "no capability, and no way to gain one",
			tried: "/proc/self/status", script: "grep -E '^(Cap|NoNewPrivs)' /proc/self/status",
			evaluate: evaluatePrivileges,
		},
		{
			name: "set-id", promise: "no file can be made setuid or setgid", tried: "chmod in the workspace and at home",
			script: setID,
			evaluate: func(_ Subject, out string) (string, string) {
				for _, mode := range lines(out) {
					if len(mode) > 3 {
						return "", "a file has mode " + mode
					}
				}
				return "every file kept mode 700", ""
			},
			weaker: []prison.Missing{prison.OwnKernel},
		},
		{
			name: "system-calls", promise: "system calls that few need and many attacks use are refused",
			tried: fmt.Sprintf("%d calls", len(forbidden)), try: tryCalls, weaker: []prison.Missing{prison.OwnKernel},
		},
		{
			name: "namespaces", promise: "mounts, processes, network, names and shared memory are its own",
			tried: "/proc/self/ns", script: "cd /proc/self/ns && for n in mnt pid net uts ipc; do echo $n $(readlink $n); done",
			evaluate: evaluateNamespaces,
		},
		{
			name: "processes", promise: "no process of the host is visible", tried: "/proc/*/status",
			script: "cat /proc/[0-9]*/status 2>/dev/null | grep '^Uid:' | cut -f2 | sort | uniq -c",
			evaluate: func(s Subject, out string) (string, string) {
				for _, line := range lines(out) {
					if f := strings.Fields(line); len(f) != 2 || f[1] != fmt.Sprint(s.Spec.UID) && f[1] != nobody {
						return "", "processes (number, uid): " + out
					}
				}
				return "all belong to the phantom or keep its prison", ""
			},
		},
		{
			name: "environment", promise: "only the requested variables of the caller's environment",
			tried: "/proc/self/environ, /proc/1/environ", script: "cat /proc/self/environ /proc/1/environ 2>/dev/null; true",
			evaluate: evaluateEnvironment,
		},
		{
			name: "descriptors", promise: "no file, socket or terminal of the caller", tried: "/proc/self/fd",
			script: "ls -l /proc/$$/fd; true", evaluate: evaluateDescriptors, // the descriptors of the shell itself
		},
		{
			name: "system-files", promise: "system files cannot be changed", tried: "writing to each mounted folder",
			script:   writable,
			evaluate: evaluateWritable,
		},
		{
			name: "host-files", promise: "processes inside cannot watch or delay the host's use of its system files", tried: "inotify, flock",
			try: trySystemFiles, weaker: []prison.Missing{prison.SharedSystem},
		},
		{
			name: "private-folders", promise: "/tmp and /dev are its own", tried: "stat", script: "stat -c '%d %n' /tmp /dev",
			evaluate: evaluatePrivate,
		},
		{
			name: "devices", promise: "no device but those that every program needs", tried: "/dev",
			script:   `for f in /dev/* /dev/*/* /dev/*/*/*; do if [ -b "$f" ] || [ -c "$f" ]; then echo "$f"; fi; done`,
			evaluate: evaluateDevices,
			weaker:   []prison.Missing{prison.OwnKernel},
		},
		{
			name: "kernel-files", promise: "nothing of the kernel's own can be read or set", tried: "/proc/kcore, keys, sysrq-trigger, ...",
			script: `for f in kcore keys kallsyms timer_list sched_debug cmdline sys/kernel/random/boot_id; do [ "$(head -c 1 /proc/$f 2>/dev/null | wc -c)" -gt 0 ] && echo "$f"; done
				[ -w /proc/sysrq-trigger ] && [ -s /proc/sysrq-trigger -o ! -c /proc/sysrq-trigger ] && (: >>/proc/sysrq-trigger) 2>/dev/null && echo sysrq-trigger; true`,
			evaluate: evaluateKernelFiles, weaker: []prison.Missing{prison.OwnKernel},
		},
		{
			name: "host-homes", promise: "no home of the host is there", tried: "/home, /root, /mnt, /media, /srv",
			script: "ls -A -d /home/* /root/.[!.]* /root/* /mnt/* /media/* /srv/* 2>/dev/null; true", evaluate: evaluateHomes,
		},
		{
			name: "host-sockets", promise: "no socket of an engine, agent or bus of the host", tried: "/run, /proc/net/unix",
			script: `ls -d /run/docker.sock /var/run/docker.sock /run/containerd* /run/podman /run/dbus /run/user /run/systemd /run/udev /tmp/ssh-* /tmp/.X11-unix 2>/dev/null
				cat /proc/net/unix 2>/dev/null | grep -o '@.*'; true`,
			evaluate: evaluateSockets,
		},
		{
			name: "network", promise: "the network is the requested one", tried: "/proc/net/dev, /proc/net/route",
			script: "tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route | cut -f1-3", evaluate: evaluateNetwork,
		},
		{
			name: "host-name", promise: "the host name is the prison's", tried: "uname -n", script: "uname -n",
			evaluate: func(s Subject, out string) (string, string) { return expect(out, s.Spec.Hostname) },
		},
		{
			name: "time-zone", promise: "the time zone is not the host's", tried: "date, git log",
			script: `(unset TZ; date '+%Z %z'); date '+%Z %z'; git log --all --format='%ad%n%cd' --date=format:%z 2>/dev/null | sort -u; true`, evaluate: evaluateZone,
		},
		{
			name: "core-dumps", promise: "no core dumps, neither to a file nor to a program of the host's", tried: "ulimit -c 0, /proc/self/limits",
			script: "cat /proc/self/limits; ulimit -c 0; cat /proc/self/limits", evaluate: evaluateCores,
			weaker: []prison.Missing{prison.HostCoreProgram},
		},
		{
			name: "workspace", promise: "the workspace is the agent's alone", tried: "stat .", script: "stat -c '%u %g %a' . && pwd && test -w . && echo writable",
			evaluate: func(s Subject, out string) (string, string) {
				return expect(out, fmt.Sprintf("%d %d 700\n%s\nwritable", s.Spec.UID, s.Spec.GID, prison.Workspace))
			},
		},
		{
			name: "process-limit", promise: "the number of processes is limited", tried: "starting more",
			try: tryProcessLimit,
		},
		{
			name: "memory-limit", promise: "memory is limited", tried: "the control group, else ulimit -d", try: tryMemoryLimit,
			weaker: []prison.Missing{prison.NoMemoryLimit},
		},
		{
			name: "processor-limit", promise: "processor time is limited", tried: "the control group", try: tryProcessorLimit,
			weaker: []prison.Missing{prison.NoCPULimit},
		},
		{
			name: "programs", promise: "what is executed is in the record outside", tried: "sh with a random argument", try: tryRecord,
			weaker: []prison.Missing{prison.NoPrograms}, skip: unrecorded,
		},
	}, networkProbes()...)
}

// evaluateCores accepts a core limit of 0 only if cores go to a file. If the kernel passes them to a program, only a
// limit of 1 stops them, see core(5).
func evaluateCores(s Subject, out string) (seen, broken string) {
	pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern") // missing if this is not Linux
	return evaluateCoresOf(string(pattern), s.ownKernel(), out)
}

func evaluateCoresOf(pattern string, ownKernel bool, out string) (seen, broken string) {
	piped := strings.HasPrefix(pattern, "|") && !ownKernel
	for _, line := range lines(out) {
		limits, isCore := strings.CutPrefix(line, "Max core file size")
		if !isCore {
			continue
		}
		if seen = strings.Join(strings.Fields(limits), " "); seen != "1 1 bytes" && (piped || seen != "0 0 bytes") {
			return "", "the limit, soft and hard, is " + seen
		}
	}
	if seen == "" {
		return "", "no limit can be seen"
	}
	return "the limit is " + seen, ""
}

func expect(out, want string) (seen, broken string) {
	if out = strings.TrimSpace(out); out != want {
		return "", fmt.Sprintf("%q, not %q", out, want)
	}
	return out, ""
}

func evaluateKernelFiles(_ Subject, out string) (seen, broken string) {
	if found := lines(out); len(found) > 0 {
		return "", "can be used: " + strings.Join(found, ", ")
	}
	return "none", ""
}

// setID sets bits of a new file in the workspace and at home, and prints the file's mode. In a repository the file is made in .git, where
// git ignores unknown files, so that the agent's work does not change.
const setID = `for f in "$PWD" "$HOME"; do [ -d "$f/.git" ] && f=$f/.git; d=$(mktemp "$f/tmp.XXXXXX") && chmod 700 "$d" || exit 1
		chmod 4755 "$d" 2>/dev/null; chmod u-s,g+s "$d" 2>/dev/null; stat -c %a "$d"; rm -f "$d"; done`

func evaluatePrivileges(_ Subject, out string) (seen, broken string) {
	found := map[string]string{}
	for _, line := range lines(out) {
		name, value, _ := strings.Cut(line, ":")
		found[name] = strings.TrimSpace(value)
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if value := found[set]; value == "" || strings.Trim(value, "0") != "" {
			return "", fmt.Sprintf("%s is %q", set, value)
		}
	}
	if found["NoNewPrivs"] != "1" {
		return "", fmt.Sprintf("NoNewPrivs is %q", found["NoNewPrivs"])
	}
	return "all sets are empty, NoNewPrivs is 1", ""
}

func evaluateNamespaces(_ Subject, out string) (seen, broken string) {
	answers := lines(out)
	if len(answers) != 5 {
		return "", "namespaces: " + out
	}
	for _, line := range answers {
		name, id, _ := strings.Cut(line, " ")
		ours, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return "not Linux outside", "" // the prison is in a virtual machine
		}
		if id == "" || id == ours {
			return "", "it is in our namespace " + line
		}
	}
	return "none is the host's", ""
}

// ownVariables are the variables of every prison, and those that a shell sets.
var ownVariables = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "TERM"}

// evaluateEnvironment reads variables, each of which ends with a NUL since values may contain line ends. A variable of the image is
// accepted if it has the image's value.
func evaluateEnvironment(s Subject, out string) (seen, broken string) {
	for entry := range strings.SplitSeq(out, "\x00") {
		name, _, _ := strings.Cut(entry, "=")
		if entry != "" && !slices.Contains(ownVariables, name) && !slices.Contains(s.Variables, name) && !slices.Contains(s.image.env, entry) {
			return "", "variable " + name
		}
	}
	return "nothing else", ""
}

var descriptor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([0-9]+) -> (.*)$`) })

func evaluateDescriptors(s Subject, out string) (seen, broken string) {
	known := 0
	for _, line := range lines(out) {
		m := descriptor().FindStringSubmatch(line)
		switch {
		case m == nil:
			continue
		case m[1] > "2" || len(m[1]) > 1, !strings.HasPrefix(m[2], "pipe:") && !strings.HasPrefix(m[2], "socket:") && m[2] != "/dev/null" &&
			(!s.ownKernel() || !strings.HasPrefix(m[2], "host:")): // a pipe that the runtime passes in
			return "", "descriptor " + m[0]
		}
		known++
	}
	if known == 0 {
		return "", "no descriptors can be seen"
	}
	return "pipes only", ""
}

// writable prints the mounted folders, and the files and folders of the system, that can be written to. It tries to write, since test(1)
// of some shells only reads modes. It removes the files that it makes.
const writable = `for p in $(cut -d' ' -f5 /proc/self/mountinfo) / /etc /etc/passwd /usr /usr/bin /bin /lib /sbin /var \
		/proc/sys/kernel/core_pattern /sys; do
		[ "$p" = "$PWD" ] && continue # an agent may be at work there
		if [ -d "$p" ]; then
			f=$(mktemp "$p/tmp.XXXXXX" 2>/dev/null) && rm -f "$f" && echo "$p"
		elif [ -f "$p" ]; then
			(true >>"$p") 2>/dev/null && echo "$p"
		fi
	done; true`

// evaluateWritable compares the output with the places that may be writable, including an image's volumes and everything
// below them.
func evaluateWritable(s Subject, out string) (seen, broken string) {
	own := []string{prison.Workspace, "/home/" + s.Spec.User, "/tmp", "/run", "/var/tmp", "/var/run", "/dev", "/proc"}
	own = append(own, s.image.volumes...)
	for _, p := range lines(out) {
		if !slices.ContainsFunc(own, func(o string) bool { return p == o || strings.HasPrefix(p, o+"/") }) || strings.HasPrefix(p, "/proc/sys") {
			return "", p + " is writable"
		}
	}
	return "only the workspace, the home and scratch folders are writable", ""
}

func evaluateDevices(_ Subject, out string) (seen, broken string) {
	own := []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console", "stdin", "stdout", "stderr"}
	for _, d := range lines(out) {
		name := strings.TrimPrefix(d, "/dev/")
		if !slices.Contains(own, name) && path.Dir(name) != "pts" && !strings.HasPrefix(name, "fd/") {
			return "", d
		}
	}
	return fmt.Sprintf("%d, all harmless", len(lines(out))), ""
}

// evaluateHomes accepts other homes of an image if they do not exist on the host.
func evaluateHomes(s Subject, out string) (seen, broken string) {
	for _, p := range lines(out) {
		_, err := os.Lstat(p)
		if p != "/home/"+s.Spec.User && (s.Spec.Image == "" || err == nil) {
			return "", "there is " + p
		}
	}
	return "only the agent's", ""
}

// evaluateSockets compares the names with the host's abstract sockets, which no permission protects.
func evaluateSockets(_ Subject, out string) (seen, broken string) {
	outside, _ := os.ReadFile("/proc/net/unix") // missing on another system, whose sockets cannot be reached
	for _, line := range lines(out) {
		if !strings.HasPrefix(line, "@") {
			return "", "there is " + line
		}
		if strings.Contains(string(outside), " "+line+"\n") {
			return "", "the host's socket " + line + " is in reach"
		}
	}
	return "none", ""
}

// evaluateZone checks the system's time zone and the zone that TZ selects. Both must be UTC unless the user has chosen another one.
// Commits may have any zone except the host's, unless the host's zone is UTC or the user has chosen it.
func evaluateZone(s Subject, out string) (seen, broken string) {
	const everybody = "+0000"
	ours := time.Now().Format("-0700")
	isOurs := func(zone string) bool { return ours != everybody && strings.HasSuffix(zone, ours) }
	answers := lines(out)
	if len(answers) < 2 {
		return "", fmt.Sprintf("%q, not UTC", out)
	}
	system, shown := answers[0], answers[1]
	brought := s.Spec.Image != "" || s.Spec.Root != "" // an image or another root has its own zone
	if system != "UTC "+everybody && (!brought || isOurs(system)) {
		return "", fmt.Sprintf("the system's is %q, not UTC", system)
	}
	byImage := slices.ContainsFunc(s.image.env, func(entry string) bool { return strings.HasPrefix(entry, "TZ=") })
	if shown != system && !byImage && !slices.Contains(s.Variables, "TZ") {
		return "", fmt.Sprintf("TZ makes it %q, not %q", shown, system)
	}
	if !isOurs(shown) && slices.ContainsFunc(answers[2:], isOurs) {
		return "", "a commit has the host's time zone, " + ours
	}
	return shown, ""
}

func evaluateNetwork(s Subject, out string) (seen, broken string) {
	const theirs = "eth0" // the interface of a network, with its routes
	seen = "loopback alone"
	for _, line := range lines(out) {
		switch name := strings.Fields(line); {
		case len(name) == 0, name[0] == "lo" && len(name) == 1:
		case name[0] == theirs && s.Spec.Network != prison.NetworkNone:
			seen = "loopback and " + theirs
		default:
			return "", "interface or route " + line
		}
	}
	return seen, ""
}
