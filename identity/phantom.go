package identity

import (
	"errors"
	"os"
	"os/user"
	"strconv"
)

// Phantom is the uid and gid of an agent's processes. No account on the host has them.
type Phantom struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// rootIDs are the ids from which root's phantoms are chosen. They are above the ids that systemd gives to containers
// (systemd's UIDS-GIDS.md) and far above those that useradd(8) gives to accounts.
var rootIDs = newIDs(span{1879048192, maxID + 1})

// errNoFreeID reports that other airlocks use every id that a phantom could have.
var errNoFreeID = errors.New("no free user id for an airlock is left")

// NewPhantom chooses the ids of a new airlock at random. uid and gid are equal if the host allows that. taken reports whether another
// airlock uses a uid; nil means that none does. Root's phantoms have ids from 1879048192 to 2147483646 that nobody on the host has.
// Phantoms of other users come from the user's own ranges in subuid(5) and subgid(5). If a user has no range, the error is a [*NoRange].
func NewPhantom(taken func(uid int) bool) (Phantom, error) {
	return chooser{root: "/", uid: os.Geteuid(), path: os.Getenv("PATH"), known: known}.choose(taken)
}

// NewEnginePhantom chooses a phantom as [NewPhantom] does for root. It is for an agent in a container, because a
// container engine can run processes as any user.
func NewEnginePhantom(taken func(uid int) bool) (Phantom, error) {
	return chooser{root: "/", path: os.Getenv("PATH"), known: known}.choose(taken)
}

// chooser chooses a phantom on a host. Tests replace the host.
type chooser struct {
	root  string            // the folder that contains etc
	uid   int               // the calling user
	path  string            // PATH of that user
	known func(id int) bool // reports whether an account or group has the id, also one that is not in the files below root
}

// known looks an id up through the system's libraries. If the program was built with cgo, they also find accounts of a directory service.
func known(id int) bool {
	_, noUser := user.LookupId(strconv.Itoa(id))
	_, noGroup := user.LookupGroupId(strconv.Itoa(id))
	return noUser == nil || noGroup == nil
}

func (c chooser) choose(taken func(uid int) bool) (Phantom, error) {
	a, err := readAccounts(c.root)
	if err != nil {
		return Phantom{}, err
	}
	busy := func(id int) bool { return taken != nil && taken(id) || c.known(id) }
	if c.uid == 0 {
		return choosePrivileged(a, busy)
	}
	return c.chooseOwn(a, busy)
}

func choosePrivileged(a *accounts, busy func(id int) bool) (Phantom, error) {
	id, ok := a.unused(rootIDs).pick(busy)
	if !ok {
		return Phantom{}, errNoFreeID
	}
	return Phantom{id, id}, nil
}

// chooseOwn chooses ids from the user's own ranges, except those that accounts or other users' ranges have as well.
func (c chooser) chooseOwn(a *accounts, busy func(id int) bool) (Phantom, error) {
	login := c.login(a)
	uids, foreignUIDs := split(a.subUID, login, c.uid)
	gids, foreignGIDs := split(a.subGID, login, c.uid)
	freeUIDs, freeGIDs := uids.minus(foreignUIDs).minus(a.ids), gids.minus(foreignGIDs).minus(a.ids)
	if freeUIDs.size() == 0 || freeGIDs.size() == 0 {
		return Phantom{}, c.noRange(a, login, uids, gids)
	}
	highUIDs, highGIDs := freeUIDs.minus(starts(uids)), freeGIDs.minus(starts(gids))
	for _, same := range []idSet{highUIDs.and(highGIDs), freeUIDs.and(freeGIDs)} {
		if id, ok := same.pick(busy); ok {
			return Phantom{id, id}, nil
		}
	}
	uid, foundUID := pickFirst(busy, highUIDs, freeUIDs)
	gid, foundGID := pickFirst(c.known, highGIDs, freeGIDs)
	if !foundUID || !foundGID {
		return Phantom{}, errNoFreeID
	}
	return Phantom{uid, gid}, nil
}

// starts returns the first 1000 ids of each range. They are in use although no file lists them: rootless containers map the system
// accounts of an image to them.
func starts(ranges idSet) idSet {
	var s idSet
	for _, r := range ranges {
		s = append(s, span{r.first, min(r.first+1000, r.end)})
	}
	return s
}

func pickFirst(busy func(id int) bool, sets ...idSet) (id int, ok bool) {
	for _, s := range sets {
		if id, ok = s.pick(busy); ok {
			return id, true
		}
	}
	return 0, false
}

func (c chooser) login(a *accounts) string {
	if name, ok := a.names[c.uid]; ok {
		return name
	}
	if u, err := user.LookupId(strconv.Itoa(c.uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(c.uid)
}
