package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"golang.org/x/sys/unix"
)

// trialID is whom root's trial runs as: any number that is nobody's.
const trialID = 1879048192

// idRange is a line of subuid(5) or subgid(5).
type idRange struct{ start, count int }

func (r idRange) holds(id int) bool { return id >= r.start && id < r.start+r.count }

// Probe implements [prison.Backend]. After the reasons that can be named it makes the namespaces
// for a moment, since there are others (a container's filter, AppArmor) that can only be tried.
func (backend) Probe(ctx context.Context) error {
	if err := checkKernel(); err != nil {
		return err
	}
	uid, gid, err := phantomForTrial()
	if err != nil {
		return err
	}
	err = child{
		role: roleHelper, config: folderTask{UID: uid, GID: gid, Trial: true}, namespaces: namespaces,
		uids: []mapping{{uid, uid}}, gids: []mapping{{gid, gid}},
	}.help(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refusedBy(err)
	}
	return nil
}

// phantomForTrial returns ids that the caller may be in a trial.
func phantomForTrial() (uid, gid int, err error) {
	if os.Geteuid() == 0 {
		return trialID, trialID, nil
	}
	uids, gids, err := ownRanges()
	if err != nil {
		return 0, 0, err
	}
	return uids[0].start, gids[0].start, nil
}

// tryNamespaces does the parts of building a root that machines refuse.
func tryNamespaces(uid, gid int) error {
	if err := becomePhantom(uid, gid); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("root", "/tmp", "tmpfs", privateFlags, ""); err != nil {
		return fmt.Errorf("mount memory file system: %w", err)
	}
	for _, name := range []string{"/tmp/proc", "/tmp/etc"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", "/tmp/proc", "proc", privateFlags, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return bind(unix.AT_FDCWD, "/etc", "/tmp/etc", readOnlyAttr)
}

// apparmorSysctl lets only programs with a profile make user namespaces, as Ubuntu does since 23.10.
const apparmorSysctl = "kernel.apparmor_restrict_unprivileged_userns"

// apparmorProfile returns commands that install a profile which lets a program make user namespaces, and
// restricts nothing.
func apparmorProfile(program string) []string {
	// A path in a profile is a pattern, see apparmor.d(5), and printf(1) reads its format.
	pattern := backslashed(program, `\"*?[]{}^@`)
	format := strings.ReplaceAll(backslashed(pattern, `\`), "%", "%%")
	const file = "/etc/apparmor.d/git-airlock"
	profile := `abi <abi/4.0>,\nprofile git-airlock "` + format + `" flags=(unconfined) {\n  userns,\n}\n`
	return []string{"printf " + quote(profile) + " | sudo tee " + file, "sudo apparmor_parser -r " + file}
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

// refusedBy guesses why an attempt failed.
func refusedBy(err error) error {
	reason := "this machine refuses user namespaces: " + err.Error()
	if os.Geteuid() != 0 && sysctl(apparmorSysctl) == "1" {
		exe, _ := os.Executable()
		return unavailable(reason+" ("+apparmorSysctl+" is 1)", apparmorProfile(exe)...)
	}
	if errors.Is(err, unix.ENOSYS) || strings.Contains(err.Error(), unix.ENOSYS.Error()) {
		return unavailable("it needs Linux 5.12 or later: " + err.Error())
	}
	return unavailable(reason)
}

func sysctl(name string) string {
	value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}

// checkKernel names the settings that forbid user namespaces.
func checkKernel() error {
	if sysctl("user.max_user_namespaces") == "0" {
		return unavailable("user namespaces are switched off (user.max_user_namespaces is 0)",
			"sudo sysctl -w user.max_user_namespaces=15000")
	}
	if os.Geteuid() != 0 && sysctl("kernel.unprivileged_userns_clone") == "0" {
		return unavailable("user namespaces are for root only (kernel.unprivileged_userns_clone is 0)",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1")
	}
	return nil
}

// checkIDs refuses a phantom that this user cannot be.
func checkIDs(s prison.Spec) error {
	if os.Geteuid() == 0 {
		return nil
	}
	uids, gids, err := ownRanges()
	if err != nil {
		return err
	}
	if !anyHolds(uids, s.UID) || !anyHolds(gids, s.GID) {
		return unavailable(fmt.Sprintf("uid %d and gid %d are not in your ranges of /etc/subuid and /etc/subgid", s.UID, s.GID))
	}
	return nil
}

func anyHolds(ranges []idRange, id int) bool {
	for _, r := range ranges {
		if r.holds(id) {
			return true
		}
	}
	return false
}

// ownRanges returns the subordinate ids that newuidmap(1) and newgidmap(1) let the user map.
func ownRanges() (uids, gids []idRange, err error) {
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		if _, err := findProgram(tool); err != nil {
			return nil, nil, unavailable(tool+" is not installed", installMappers()...)
		}
	}
	uids, allUIDs := readRanges("/etc/subuid")
	gids, allGIDs := readRanges("/etc/subgid")
	if len(uids) > 0 && len(gids) > 0 {
		return uids, gids, nil
	}
	return nil, nil, unavailable("you have no range of subordinate ids in /etc/subuid and /etc/subgid", grantRange(append(allUIDs, allGIDs...)))
}

// rangeSize is what a user gets as a rule, rangeStart where the first begins: login.defs(5), SUB_UID_COUNT and SUB_UID_MIN.
const rangeSize, rangeStart = 65536, 100000

// grantRange is the command that gives the user a range: usermod(8) knows local accounts only.
func grantRange(taken []idRange) string {
	start := freeRange(taken)
	if _, err := user.LookupId(strconv.Itoa(os.Getuid())); err != nil {
		return fmt.Sprintf("echo %s:%d:%d | sudo tee -a /etc/subuid /etc/subgid", quote(userName()), start, rangeSize)
	}
	return fmt.Sprintf("sudo usermod --add-subuids %[1]d-%[2]d --add-subgids %[1]d-%[2]d %[3]s", start, start+rangeSize-1, quote(userName()))
}

// installMappers returns the command that installs the two programs.
func installMappers() []string {
	return installation(map[string]string{
		"apt-get": "uidmap", "dnf": "shadow-utils", "zypper": "shadow", "pacman": "shadow", "apk": "shadow-uidmap",
	})
}

// installation returns the command that installs a package with what this system installs with; the
// package's name may differ from system to system.
func installation(packages map[string]string) []string {
	for _, m := range []struct{ manager, command string }{
		{"apt-get", "sudo apt-get install "},
		{"dnf", "sudo dnf install "},
		{"zypper", "sudo zypper install "},
		{"pacman", "sudo pacman -S "},
		{"apk", "sudo apk add "},
	} {
		if _, err := findProgram(m.manager); err == nil {
			return []string{m.command + packages[m.manager]}
		}
	}
	return nil
}

// readRanges returns the user's ranges in a file of subuid(5) form, and everybody's.
func readRanges(path string) (own, all []idRange) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	name, uid := userName(), strconv.Itoa(os.Getuid())
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		start, err1 := strconv.Atoi(fields[1])
		count, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil || start <= 0 || count <= 0 {
			continue
		}
		r := idRange{start, count}
		all = append(all, r)
		if fields[0] == name || fields[0] == uid {
			own = append(own, r)
		}
	}
	return own, all
}

// freeRange returns the start of a range that overlaps none.
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

// quote makes a word safe to paste into a shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
