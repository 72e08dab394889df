package identity

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/words"
)

// NoRange reports that a user has no subordinate ids (subuid(5), subgid(5)) for a phantom.
type NoRange struct {
	User   string
	Reason string   // what is missing, in words
	Mend   []string // commands that solve the problem, to be pasted in this order
}

func (e *NoRange) Error() string {
	return fmt.Sprintf("user %q has %s", e.User, e.Reason)
}

func (c chooser) noRange(a *accounts, login string, uids, gids idSet) *NoRange {
	e := &NoRange{User: login, Reason: "no subordinate ids that are nobody else's (/etc/subuid, /etc/subgid)"}
	switch {
	case uids.size() == 0 && gids.size() == 0:
		e.Reason = "no subordinate ids (/etc/subuid, /etc/subgid)"
	case uids.size() == 0:
		e.Reason = "no subordinate user ids (/etc/subuid)"
	case gids.size() == 0:
		e.Reason = "no subordinate group ids (/etc/subgid)"
	}
	if !onPath(c.path, "newuidmap") || !onPath(c.path, "newgidmap") {
		e.Mend = append(e.Mend, "sudo apt-get install uidmap")
	}
	e.Mend = append(e.Mend, a.grant(login, c.uid))
	return e
}

// grant returns the command that gives a user a range of ids that is free for uids and gids.
func (a *accounts) grant(login string, uid int) string {
	first := a.freeRange()
	if _, local := a.names[uid]; !local {
		// usermod(8) only accepts local accounts.
		return fmt.Sprintf("echo %s:%d:%d | sudo tee -a /etc/subuid /etc/subgid", words.ShellQuote(login), first, rangeSize)
	}
	return fmt.Sprintf("sudo usermod --add-subuids %[1]d-%[2]d --add-subgids %[1]d-%[2]d %[3]s",
		first, first+rangeSize-1, words.ShellQuote(login))
}

// rangeSize is SUB_UID_COUNT and rangeStart is SUB_UID_MIN of login.defs(5).
const rangeSize, rangeStart = 65536, 100000

// freeRange returns the start of the lowest range of rangeSize ids that no account, group or other range contains.
func (a *accounts) freeRange() int {
	for _, free := range a.unused(newIDs(span{rangeStart, maxID + 1})) {
		if free.end-free.first >= rangeSize {
			return free.first
		}
	}
	return rangeStart // every id below 2^31 is in use, which usermod will report
}

// onPath reports whether a program is in one of the folders of path.
func onPath(path, program string) bool {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, program)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
