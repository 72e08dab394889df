package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// Examine implements [prison.Backend].
func (b backend) Examine(ctx context.Context) ([]prison.Finding, error) {
	findings := []prison.Finding{
		kernelFinding(), idsFinding(), b.namespacesFinding(ctx), filterFinding(), landlockFinding(), overlayFinding(),
	}
	if missing := coreMissing(); missing != "" {
		findings = append(findings, prison.Finding{Name: "core dumps", Value: "off for files", Lack: missing})
	}
	findings = append(findings, limitFindings()...)
	return append(findings, networkFinding()), b.Probe(ctx)
}

func kernelFinding() prison.Finding {
	return prison.Finding{Name: "kernel", Value: kernelRelease()}
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// kernelAtLeast compares with the running kernel's version.
func kernelAtLeast(major, minor int) bool {
	var ma, mi int
	fmt.Sscanf(kernelRelease(), "%d.%d", &ma, &mi) //nolint:errcheck // zero is older than all
	return ma > major || ma == major && mi >= minor
}

// broken turns an error of this backend into a finding's words.
func broken(name string, err error) prison.Finding {
	f := prison.Finding{Name: name, Value: err.Error()}
	var u *prison.Unavailable
	if errors.As(err, &u) {
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
		return broken(name, err)
	}
	return prison.Finding{Name: name, Value: fmt.Sprintf("%d from %d on (/etc/subuid)", uids[0].count, uids[0].start)}
}

// namespacesFinding tries them, as there are refusals that nothing announces.
func (b backend) namespacesFinding(ctx context.Context) prison.Finding {
	const name = "namespaces"
	if err := checkKernel(); err != nil {
		return broken(name, err)
	}
	var u *prison.Unavailable
	switch _, _, err := phantomForTrial(); {
	case err != nil:
		return prison.Finding{Name: name, Value: "not tried without phantom uids"}
	default:
		if err := b.Probe(ctx); errors.As(err, &u) {
			return broken(name, err)
		}
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
	f := prison.Finding{Name: "Landlock"}
	version, err := landlockVersion()
	if err != nil {
		f.Value, f.Lack = "no", landlockMissing(err)
		return f
	}
	f.Value = "version " + strconv.Itoa(version)
	return f
}

// overlayFinding goes by the version: whether an overlay works is up to each file system, see
// [builder.shareWritable].
func overlayFinding() prison.Finding {
	f := prison.Finding{Name: "overlay for ordinary users", Value: "yes"}
	if !kernelAtLeast(5, 11) {
		f.Value, f.Lack = "no, from Linux 5.11 on", "host paths are visible in mountinfo"
	}
	return f
}

// limitFindings says how each limit would be kept.
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
	l := planLimits(prison.Spec{ID: "examine"}, foretold)
	findings := []prison.Finding{{Name: "control groups", Value: version}}
	for i, lacking := range l.weaker {
		f := prison.Finding{Name: "limit", Value: "not by a control group", Lack: lacking.Text}
		if i == 0 {
			f.Mend = delegation(mounts)
		}
		findings = append(findings, f)
	}
	return findings
}

// delegation returns commands that give an ordinary user of a systemd machine control groups of their own. They
// count from the next login on.
func delegation(mounts cgroups) []string {
	if _, err := os.Stat("/run/systemd/system"); err != nil || os.Geteuid() == 0 {
		return nil
	}
	if len(mounts.legacy) > 0 { // version 1 cannot be given away safely
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

func networkFinding() prison.Finding {
	const name = "open network"
	if err := checkNetwork(prison.Spec{Network: prison.NetworkOpen}); err != nil {
		return broken(name, err)
	}
	var found []string
	for program := range findUserNetworks() {
		found = append(found, program)
	}
	return prison.Finding{Name: name, Value: "in user mode by " + strings.Join(found, " or ")}
}
