package walls

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"

	"golang.org/x/sys/unix"
)

// idRange is a line of subuid(5) or subgid(5).
type idRange struct{ start, count int }

// TrialPhantom returns ids with which the caller may try namespaces.
func TrialPhantom() (uid, gid int, err error) {
	uids, gids, err := phantomRanges()
	if err != nil {
		return 0, 0, err
	}
	return uids[0].start, gids[0].start, nil
}

// apparmorSysctl is the setting that lets only programs with an AppArmor profile create user namespaces. Ubuntu
// sets it since 23.10.
const apparmorSysctl = "kernel.apparmor_restrict_unprivileged_userns"

// apparmorProfile returns commands that install a profile for a program. The profile lets the program create user
// namespaces, and restricts nothing.
func apparmorProfile(program string) []string {
	// A path in a profile is a pattern, see apparmor.d(5). The profile is also the format argument of printf(1).
	pattern := backslashed(program, `\"*?[]{}^@`)
	format := strings.ReplaceAll(backslashed(pattern, `\`), "%", "%%")
	const file = "/etc/apparmor.d/git-airlock"
	profile := `abi <abi/4.0>,\nprofile git-airlock "` + format + `" flags=(unconfined) {\n  userns,\n}\n`
	return []string{"printf " + words.ShellQuote(profile) + " | sudo tee " + file, "sudo apparmor_parser -r " + file}
}

func backslashed(text, special string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if strings.IndexByte(special, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// RefusedBy returns an error that names the likely reason why namespaces could not be created, and the commands
// that fix it.
func RefusedBy(err error) error {
	reason := "this machine refuses user namespaces: " + err.Error()
	if os.Geteuid() != 0 && sysctl(apparmorSysctl) == "1" {
		exe, _ := os.Executable()
		return Unavailable(reason+" ("+apparmorSysctl+" is 1)", apparmorProfile(exe)...)
	}
	if errors.Is(err, unix.ENOSYS) || strings.Contains(err.Error(), unix.ENOSYS.Error()) {
		return Unavailable("it needs Linux 5.12 or later: " + err.Error())
	}
	return Unavailable(reason)
}

func sysctl(name string) string {
	value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}

// CheckKernel returns an error if a kernel setting forbids user namespaces.
func CheckKernel() error {
	if sysctl("user.max_user_namespaces") == "0" {
		return Unavailable("user namespaces are switched off (user.max_user_namespaces is 0)",
			"sudo sysctl -w user.max_user_namespaces=15000")
	}
	if os.Geteuid() != 0 && sysctl("kernel.unprivileged_userns_clone") == "0" {
		return Unavailable("user namespaces are for root only (kernel.unprivileged_userns_clone is 0)",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1")
	}
	return nil
}

// leastFiles is how many files a process must be able to open. To confine itself, the first process of a prison opens each folder that it
// allows; 72 files were enough for the smallest prison of one machine.
const leastFiles = 96

// CheckFiles returns an error if the limit on open files is too low. A trial, which allows fewer folders, does not find that.
func CheckFiles() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil || now.Max >= leastFiles {
		return err
	}
	return Unavailable(fmt.Sprintf("a process here can open %d files, and the first process of a prison needs up to %d", now.Max, leastFiles), "ulimit -n 1024")
}

// CheckIDs returns an error if this user cannot map the phantom's ids.
func CheckIDs(s prison.Spec) error {
	if os.Geteuid() == 0 {
		return nil
	}
	if err := checkMappers(); err != nil {
		return err
	}
	uids, _ := readRanges("/etc/subuid")
	gids, _ := readRanges("/etc/subgid")
	if !anyHolds(uids, s.UID) || !anyHolds(gids, s.GID) {
		return Unavailable(fmt.Sprintf("uid %d and gid %d are not in your ranges of /etc/subuid and /etc/subgid", s.UID, s.GID), grantID(s)...)
	}
	return nil
}

// grantID returns the command that gives the user the ids of a prison, which may be older than the user's range. If nobody has an id of
// the usual range, the command grants that whole range. The result is empty if another user has the ids, since no command can help then.
func grantID(s prison.Spec) []string {
	_, taken := readRanges("/etc/subuid")
	_, allGIDs := readRanges("/etc/subgid")
	taken = append(taken, allGIDs...)
	start := freeRange(taken)
	switch {
	case s.UID != s.GID || anyHolds(taken, s.UID):
		return nil
	case start <= s.UID && s.UID < start+rangeSize:
		return []string{grant(start, rangeSize)}
	}
	return []string{grant(s.UID, 1)}
}

func anyHolds(ranges []idRange, id int) bool {
	return slices.ContainsFunc(ranges, func(r idRange) bool { return id >= r.start && id < r.start+r.count })
}

// checkMappers returns an error if newuidmap(1) or newgidmap(1) is missing, with which an ordinary user maps ids.
func checkMappers() error {
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		if _, err := findProgram(tool); err != nil {
			return Unavailable(tool+" is not installed", installMappers()...)
		}
	}
	return nil
}

// ownRanges returns the subordinate ids that newuidmap(1) and newgidmap(1) let the user map.
func ownRanges() (uids, gids []idRange, err error) {
	if err := checkMappers(); err != nil {
		return nil, nil, err
	}
	uids, allUIDs := readRanges("/etc/subuid")
	gids, allGIDs := readRanges("/etc/subgid")
	if len(uids) > 0 && len(gids) > 0 {
		return uids, gids, nil
	}
	return nil, nil, Unavailable("you have no range of subordinate ids in /etc/subuid and /etc/subgid", grantRange(append(allUIDs, allGIDs...)))
}

// rangeSize is the usual number of ids in a user's range, and rangeStart the usual start of the first range:
// SUB_UID_COUNT and SUB_UID_MIN in login.defs(5).
const rangeSize, rangeStart = 65536, 100000

// grantRange returns the command that gives the user a range of ids that no other user has.
func grantRange(taken []idRange) string { return grant(freeRange(taken), rangeSize) }

// grant returns the command that gives the user ids. usermod(8) knows local accounts only.
func grant(start, count int) string {
	if _, err := user.LookupId(strconv.Itoa(os.Getuid())); err != nil {
		return fmt.Sprintf("echo %s:%d:%d | sudo tee -a /etc/subuid /etc/subgid", words.ShellQuote(userName()), start, count)
	}
	return fmt.Sprintf("sudo usermod --add-subuids %[1]d-%[2]d --add-subgids %[1]d-%[2]d %[3]s", start, start+count-1, words.ShellQuote(userName()))
}

// installMappers returns the command that installs newuidmap and newgidmap with this system's package manager.
func installMappers() []string {
	for _, m := range []struct{ manager, command string }{
		{"apt-get", "sudo apt-get install uidmap"},
		{"dnf", "sudo dnf install shadow-utils"},
		{"zypper", "sudo zypper install shadow"},
		{"pacman", "sudo pacman -S shadow"},
		{"apk", "sudo apk add shadow-uidmap"},
	} {
		if _, err := findProgram(m.manager); err == nil {
			return []string{m.command}
		}
	}
	return nil
}

// maxID is the highest id that package identity chooses for a phantom.
const maxID = 1<<31 - 2

// readRanges reads a file in the format of subuid(5). It returns the user's own ranges, as far as a phantom can have their ids, and the
// ranges of all users.
func readRanges(path string) (own, all []idRange) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	return rangesOf(string(content), userName(), strconv.Itoa(os.Getuid()))
}

// rangesOf returns the ranges of a user and of all users in such a file.
func rangesOf(content, name, uid string) (own, all []idRange) {
	for line := range strings.Lines(content) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		start, err1 := strconv.Atoi(fields[1])
		count, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil || start <= 0 || count <= 0 {
			continue
		}
		all = append(all, idRange{start, count})
		if usable := min(count, maxID+1-start); usable > 0 && (fields[0] == name || fields[0] == uid) {
			own = append(own, idRange{start, usable})
		}
	}
	return own, all
}

// freeRange returns the start of a range that overlaps no range in taken.
func freeRange(taken []idRange) int {
	start := rangeStart
	for moved := true; moved; {
		moved = false
		for _, r := range taken {
			if start < r.start+r.count && r.start < start+rangeSize {
				start, moved = r.start+r.count, true
			}
		}
	}
	return start
}

func userName() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// Unavailable returns the error for a machine that cannot have a native prison, or not this one, with the commands
// that fix that.
func Unavailable(reason string, mend ...string) error {
	return &prison.Unavailable{Backend: "native", Reason: reason, Mend: mend}
}
