package walls

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// Examine reports which mechanisms of the walls this machine has. probed is the result of creating all namespaces for a moment.
func Examine(probed error) []prison.Finding {
	findings := []prison.Finding{
		{Name: "kernel", Value: kernelRelease()}, idsFinding(), namespacesFinding(probed), filterFinding(), landlockFinding(), overlayFinding(), programsFinding(),
	}
	if missing := coreMissing(); missing != "" {
		findings = append(findings, prison.Finding{Name: "core dumps", Value: "off for files", Lack: missing})
	}
	return append(findings, limitFindings()...)
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// kernelAtLeast reports whether the running kernel has at least this version.
func kernelAtLeast(major, minor int) bool {
	var ma, mi int
	// if the version cannot be read, it stays 0.0, older than all others
	fmt.Sscanf(kernelRelease(), "%d.%d", &ma, &mi) //nolint:errcheck
	return ma > major || ma == major && mi >= minor
}

// ErrorFinding returns an error of this backend as a finding, with the commands that fix it if it is a
// [prison.Unavailable].
func ErrorFinding(name string, err error) prison.Finding {
	f := prison.Finding{Name: name, Value: err.Error()}
	if u, ok := errors.AsType[*prison.Unavailable](err); ok {
		f.Value, f.Mend = u.Reason, u.Mend
	}
	return f
}

func idsFinding() prison.Finding {
	const name = "phantom uids"
	if os.Geteuid() == 0 {
		return prison.Finding{Name: name, Value: "any, as root"}
	}
	uids, _, err := ownRanges()
	if err != nil {
		return ErrorFinding(name, err)
	}
	return prison.Finding{Name: name, Value: fmt.Sprintf("%d from %d on (/etc/subuid)", uids[0].count, uids[0].start)}
}

// namespacesFinding reports the result of a trial, since some refusals can be seen in no other way.
func namespacesFinding(probed error) prison.Finding {
	const name = "namespaces"
	if err := CheckKernel(); err != nil {
		return ErrorFinding(name, err)
	}
	if _, _, err := TrialPhantom(); err != nil {
		return prison.Finding{Name: name, Value: "not tried without phantom uids"}
	}
	if u, ok := errors.AsType[*prison.Unavailable](probed); ok {
		return ErrorFinding(name, u)
	}
	f := prison.Finding{Name: name, Value: "user, mount, pid, net, uts, ipc, cgroup"}
	if sysctl(apparmorSysctl) == "1" {
		f.Value += "; AppArmor lets this program make them"
	}
	return f
}

func filterFinding() prison.Finding {
	f := prison.Finding{Name: "system call filter", Value: "seccomp", Lack: filterMissing}
	if filterMissing == "" {
		f.Value = fmt.Sprintf("seccomp, %d calls allowed", filterSize())
	}
	return f
}

func landlockFinding() prison.Finding {
	const name = "Landlock"
	version, err := landlockVersion()
	if err != nil {
		return prison.Finding{Name: name, Value: "no", Lack: landlockMissing(err)}
	}
	return prison.Finding{Name: name, Value: "version " + strconv.Itoa(version)}
}

// overlayFinding reads the kernel's version only. Whether an overlay works also depends on the file system, see
// shareWritable in package inside.
func overlayFinding() prison.Finding {
	f := prison.Finding{Name: "overlay for ordinary users", Value: "yes"}
	if !kernelAtLeast(5, 11) {
		f.Value, f.Lack = "no, from Linux 5.11 on", "host paths are visible in mountinfo"
	}
	return f
}

func programsFinding() prison.Finding {
	f := prison.Finding{Name: "record of programs", Value: "yes"}
	if err := CheckPrograms(); err != nil {
		f.Value, f.Lack = "no", prison.Unrecorded(err.Error()).Text
	}
	return f
}

// limitFindings reports how each limit would be enforced.
func limitFindings() []prison.Finding {
	mounts := cgroupMounts()
	version := "none"
	switch {
	case mounts.root != "" && len(mounts.legacy) > 0:
		version = "versions 1 and 2"
	case mounts.root != "":
		version = "version 2"
	case len(mounts.legacy) > 0:
		version = "version 1"
	}
	trial := prison.Spec{ID: "examine"}
	l := planGroups(trial, groupName(trial), predictControllers)
	findings := []prison.Finding{{Name: "control groups", Value: version}}
	for i, lacking := range l.Weaker {
		f := prison.Finding{Name: "limit", Value: "not by a control group", Lack: lacking.Text}
		if i == 0 {
			f.Mend = delegation(mounts)
		}
		findings = append(findings, f)
	}
	return append(findings, l.Rlimits.lowered()...)
}

// lowered reports the limits of this process that are lower than those of a prison. A prison gets the lower ones.
func (r Rlimits) lowered() (findings []prison.Finding) {
	for _, c := range []struct {
		resource int
		want     uint64
		format   string
	}{
		{unix.RLIMIT_NPROC, r.PIDs, "at most %d processes (ulimit -Hu)"},
		{unix.RLIMIT_DATA, r.Memory >> 10, "at most %d KiB for each process (ulimit -Hd)"},
	} {
		var now unix.Rlimit
		err := unix.Getrlimit(c.resource, &now)
		if c.resource == unix.RLIMIT_DATA {
			now.Max >>= 10
		}
		if err == nil && now.Max < c.want {
			findings = append(findings, prison.Finding{Name: "limit", Value: fmt.Sprintf(c.format, now.Max)})
		}
	}
	return findings
}

// delegation returns commands that give an ordinary user control groups on a machine with systemd. They take effect
// at the next login.
func delegation(mounts cgroups) []string {
	if _, err := os.Stat("/run/systemd/system"); err != nil || os.Geteuid() == 0 {
		return nil
	}
	if len(mounts.legacy) > 0 { // version 1 cannot be delegated safely
		const argument = "systemd.unified_cgroup_hierarchy=1"
		if _, err := findProgram("grubby"); err == nil {
			return []string{"sudo grubby --update-kernel=ALL --args=" + argument, "sudo reboot"}
		}
		return []string{`sudo sed -i 's/^GRUB_CMDLINE_LINUX="/&` + argument + ` /' /etc/default/grub`, "sudo update-grub", "sudo reboot"}
	}
	const folder = "/etc/systemd/system/user@.service.d"
	return []string{
		"sudo mkdir -p " + folder,
		`printf '[Service]\nDelegate=cpu memory pids\n' | sudo tee ` + folder + "/delegate.conf",
		"sudo systemctl daemon-reload",
	}
}
