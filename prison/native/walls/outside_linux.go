package walls

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// The process that carries the packets of a prison runs outside of the prison's namespaces, perhaps in a user namespace. The functions
// below leave it only these rights: to use its descriptors, to connect, and to read the configuration of name resolution.

// rootPhantoms is the range from which root chooses phantom ids, see package identity.
var rootPhantoms = idRange{start: 1879048192, count: 268435455}

// SecondPhantom returns random ids for a process that belongs to a prison but must be neither its phantom nor the
// user.
func SecondPhantom(uid, gid int) (secondUID, secondGID int, err error) {
	uids, gids, err := phantomRanges()
	if err != nil {
		return 0, 0, err
	}
	secondUID, secondGID = pickID(uids, uid), pickID(gids, gid)
	if secondUID == 0 || secondGID == 0 {
		return 0, 0, Unavailable("an open network needs a second id in your ranges of /etc/subuid and /etc/subgid", grantRange(append(uids, gids...)))
	}
	return secondUID, secondGID, nil
}

// InitUID returns a random uid for the init of a prison with this phantom, or 0 if the user's ranges contain no
// second uid.
func InitUID(phantom int) int {
	uids, _, _ := phantomRanges() // after an error there are none
	return pickID(uids, phantom)
}

// phantomRanges returns the ids that this user may map.
func phantomRanges() (uids, gids []idRange, err error) {
	if os.Geteuid() == 0 {
		return []idRange{rootPhantoms}, []idRange{rootPhantoms}, nil
	}
	return ownRanges()
}

// pickID returns a random id of the ranges that differs from but. If no id is left, it returns 0, which no range contains.
func pickID(ranges []idRange, but int) (id int) {
	free := slices.DeleteFunc(slices.Clone(ranges), func(r idRange) bool { return r.count == 1 && r.start == but })
	if len(free) == 0 {
		return 0
	}
	r := free[rand.IntN(len(free))]
	for {
		if id = r.start + rand.IntN(r.count); id != but {
			return id
		}
	}
}

// resolverFolder contains the configuration of name resolution: resolv.conf(5), hosts(5) and nsswitch.conf(5). The
// rule is for the folder because these files get replaced, and a rule for a file would then apply to a removed one.
const resolverFolder = "/etc"

// LandlockNetwork leaves this thread and its children two rights for files: reading the configuration of name
// resolution, and reading the program to execute. A kernel without Landlock leaves the other walls only, which the
// prison reports already.
func LandlockNetwork(program int) error {
	version, err := landlockVersion()
	if err != nil {
		return nil
	}
	const read = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rules := map[string]uint64{
		resolverFolder:                           read,
		fmt.Sprintf("/proc/self/fd/%d", program): unix.LANDLOCK_ACCESS_FS_READ_FILE,
	}
	if target, err := filepath.EvalSymlinks(resolverFolder + "/resolv.conf"); err == nil {
		rules[filepath.Dir(target)] = read
	}
	for _, folder := range libraries {
		if _, err := os.Stat(folder); err == nil {
			rules[folder] = read
		}
	}
	return restrict(version, read, rules)
}

// networkFiles is enough for the maximum number of connections of a prison.
const networkFiles = 4096

// networkMemory is twice what a network's process needs with all its connections in use, see package share. A process that exceeds it ends,
// which refuses everything, and a successor goes on.
const networkMemory = 512 << 20

// LimitNetwork limits this process, which connects a prison with the network.
func LimitNetwork() error {
	unix.Umask(0o077)
	limits := map[int]uint64{unix.RLIMIT_NOFILE: networkFiles, unix.RLIMIT_DATA: networkMemory, unix.RLIMIT_CORE: 0}
	for resource, most := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set resource limit: %w", err)
		}
	}
	return nil
}
