package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxID is the highest id that is used. It is positive as a signed 32-bit number, which some file systems and tools need.
const maxID = 1<<31 - 2

// accounts are the ids in use on a host.
type accounts struct {
	names  map[int]string // logins by uid, from /etc/passwd
	ids    idSet          // every uid and gid of an account or group
	subUID []subordinate  // /etc/subuid
	subGID []subordinate  // /etc/subgid
}

// subordinate is one line of subuid(5) or subgid(5).
type subordinate struct {
	owner string // login or uid in decimal
	ids   span
}

// readAccounts reads the host's files below root, which is "/" except in tests. A missing file counts as empty.
// Malformed lines are skipped, as the shadow tools do.
func readAccounts(root string) (*accounts, error) {
	a := &accounts{names: make(map[int]string)}
	// 0 is root's and 65534 is nobody's. Old system calls treat 65535 as -1 (systemd's UIDS-GIDS.md).
	used := []span{{0, 1}, {65534, 65536}}
	use := func(text string) int {
		id, err := parseID(text)
		if err != nil {
			return -1
		}
		used = append(used, span{id, id + 1})
		return id
	}
	err := errors.Join(
		eachLine(root, "etc/passwd", 4, func(f []string) {
			uid := use(f[2])
			use(f[3])
			if _, known := a.names[uid]; !known {
				a.names[uid] = f[0]
			}
		}),
		eachLine(root, "etc/group", 3, func(f []string) { use(f[2]) }),
		eachLine(root, "etc/subuid", 3, func(f []string) { a.subUID = addRange(a.subUID, f) }),
		eachLine(root, "etc/subgid", 3, func(f []string) { a.subGID = addRange(a.subGID, f) }),
	)
	a.ids = newIDs(used...)
	return a, err
}

// unused returns those of some ids that no account, group or range has.
func (a *accounts) unused(ids idSet) idSet {
	_, subUID := split(a.subUID, "", -1)
	_, subGID := split(a.subGID, "", -1)
	return ids.minus(a.ids).minus(subUID).minus(subGID)
}

// eachLine calls f with the fields of each line that has at least the number of fields. Fields are separated by colons.
func eachLine(root, name string, fields int, f func(fields []string)) error {
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read accounts: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if parts := strings.Split(strings.TrimSpace(line), ":"); len(parts) >= fields {
			f(parts)
		}
	}
	return nil
}

func parseID(text string) (int, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	return int(id), err
}

// addRange adds the range in the fields of one line: owner, first id, count.
func addRange(ranges []subordinate, f []string) []subordinate {
	if len(f) != 3 {
		return ranges
	}
	first, err1 := parseID(f[1])
	count, err2 := parseID(f[2])
	if err1 != nil || err2 != nil {
		return ranges
	}
	return append(ranges, subordinate{owner: f[0], ids: span{first, min(first+count, maxID+1)}})
}

// split divides ranges into a user's own ids and the ids of all other users.
func split(ranges []subordinate, login string, uid int) (own, foreign idSet) {
	var mine, others []span
	for _, r := range ranges {
		if r.owner == login || r.owner == strconv.Itoa(uid) {
			mine = append(mine, r.ids)
		} else {
			others = append(others, r.ids)
		}
	}
	return newIDs(mine...), newIDs(others...)
}
