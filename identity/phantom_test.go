package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// host is a machine for tests: the files of etc by name, the programs on PATH, and the calling user.
type host struct {
	passwd, group, subuid, subgid string
	programs                      []string
	uid                           int
}

func (h host) chooser(t *testing.T) chooser {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"etc/passwd": h.passwd, "etc/group": h.group, "etc/subuid": h.subuid, "etc/subgid": h.subgid,
	} {
		if content != "" {
			write(t, filepath.Join(root, name), content, 0o644)
		}
	}
	for _, name := range h.programs {
		write(t, filepath.Join(root, "bin", name), "", 0o755)
	}
	return chooser{root: root, uid: h.uid, path: "/nowhere:" + filepath.Join(root, "bin"), known: func(int) bool { return false }}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

const anna = "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\nben:x:1001:1001::/home/ben:/bin/sh\n"

var mappers = []string{"newuidmap", "newgidmap"}

func within(id int, spans ...span) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.first <= id && id < s.end })
}

func TestRootsPhantoms(t *testing.T) {
	// All ids except [1879050000,1879050100) are taken, and some ids in it are accounts'.
	h := host{
		passwd: anna + "high:x:1879050001:1879050002::/:/bin/sh\n",
		group:  "high:x:1879050003:\n",
		subuid: "anna:1879048192:1808\n1001:1879050100:100000000\n",
		subgid: "ben:1979050100:100000000\nghost:2079050100:67500000\nanna:2146550100:4000000000\n",
	}
	c := h.chooser(t)
	seen := make(map[int]bool)
	for range 96 {
		p, err := c.choose(func(uid int) bool { return seen[uid] || uid == 1879050004 })
		if err != nil {
			t.Fatal(err)
		}
		if p.UID != p.GID || !within(p.UID, span{1879050000, 1879050001}, span{1879050005, 1879050100}) || seen[p.UID] {
			t.Errorf("phantom %+v", p)
		}
		seen[p.UID] = true
	}
	if p, err := c.choose(func(uid int) bool { return seen[uid] || uid == 1879050004 }); err == nil || p != (Phantom{}) {
		t.Errorf("with every id taken: %+v, %v", p, err)
	}
}

func TestRootNeedsNoFiles(t *testing.T) {
	c := host{}.chooser(t)
	seen := make(map[Phantom]bool)
	for range 1000 {
		p, err := c.choose(nil)
		if err != nil || p.UID != p.GID || p.UID < 1879048192 || p.UID > 2147483646 {
			t.Fatalf("phantom %+v, %v", p, err)
		}
		seen[p] = true
	}
	if len(seen) < 990 {
		t.Errorf("only %d of 1000 phantoms are distinct", len(seen))
	}
}

func TestKnownAccountsAreAvoided(t *testing.T) {
	c := host{passwd: anna, subuid: "anna:5000:2\n", subgid: "anna:5000:2\n", uid: 1000}.chooser(t)
	c.known = func(id int) bool { return id == 5000 }
	for range 50 {
		if p, err := c.choose(nil); err != nil || p != (Phantom{5001, 5001}) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	c.known = func(int) bool { return true }
	if p, err := c.choose(nil); !errors.Is(err, errNoFreeID) || p != (Phantom{}) {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestOwnPhantoms chooses many times on each host. Every phantom must be among the wanted ids. In a small range every id must occur.
func TestOwnPhantoms(t *testing.T) {
	for _, c := range []struct {
		name           string
		subuid, subgid string
		passwd         string
		uids, gids     []span
		equal          bool
	}{
		{"by name", "anna:100000:65536\n", "anna:100000:65536\n", "", []span{{101000, 165536}}, []span{{101000, 165536}}, true},
		{"by number", "1000:100000:1010", "1000:100000:1010", "", []span{{101000, 101010}}, []span{{101000, 101010}}, true},
		{"several ranges", "ben:100000:65536\nanna:200000:1003\n1000:300000:1004\n", "anna:200000:1003\nben:1:5\nanna:300000:1004\n", "",
			[]span{{201000, 201003}, {301000, 301004}}, []span{{201000, 201003}, {301000, 301004}}, true},
		{"a small range", "anna:5000:10\n", "anna:5000:10\n", "", []span{{5000, 5010}}, []span{{5000, 5010}}, true},
		{"small and large", "anna:5000:10\nanna:7000:1005\n", "anna:5000:10\nanna:7000:1005\n", "", []span{{8000, 8005}}, []span{{8000, 8005}}, true},
		{"an overlap", "anna:5000:10\n", "anna:5007:10\n", "", []span{{5007, 5010}}, []span{{5007, 5010}}, true},
		{"an overlap in the starts", "anna:5000:2000\n", "anna:6500:2000\n", "", []span{{6500, 7000}}, []span{{6500, 7000}}, true},
		{"apart", "anna:100000:1003\n", "anna:200000:1004\n", "", []span{{101000, 101003}}, []span{{201000, 201004}}, false},
		{"accounts within", "anna:5000:5\n", "anna:5000:5\n", "a:x:5001:5002::/:/bin/sh\n", []span{{5000, 5001}, {5003, 5005}}, []span{{5000, 5001}, {5003, 5005}}, true},
		{"others' ranges within", "anna:5000:10\nben:5005:10\n", "anna:5000:10\nben:4000:1002\n", "", []span{{5002, 5005}}, []span{{5002, 5005}}, true},
		{"nobody within", "anna:65530:10\n", "anna:65530:10\n", "", []span{{65530, 65534}, {65536, 65540}}, []span{{65530, 65534}, {65536, 65540}}, true},
		{"root within", "anna:0:3\n", "anna:0:3\n", "", []span{{1, 3}}, []span{{1, 3}}, true},
		{"beyond 31 bits", "anna:2147483645:5000\n", "anna:2147483645:5000\n", "", []span{{2147483645, 2147483647}}, []span{{2147483645, 2147483647}}, true},
		{"lines that are none", "\n:\nanna:x:5\nanna:1\nanna:-5:10\n# c\nanna:1:2:3\nanna:5000:4294967296\nanna:6000:2\nanna:7000:0", "anna:6000:2\r\n", "",
			[]span{{6000, 6002}}, []span{{6000, 6002}}, true},
		{"touching lines", "anna:5000:600\nanna:5600:402\n", "anna:5000:1002\n", "", []span{{6000, 6002}}, []span{{6000, 6002}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := host{passwd: anna + c.passwd, subuid: c.subuid, subgid: c.subgid, uid: 1000}.chooser(t)
			seen := make(map[int]bool)
			for range 300 {
				p, err := ch.choose(nil)
				if err != nil {
					t.Fatal(err)
				}
				if !within(p.UID, c.uids...) || !within(p.GID, c.gids...) || c.equal && p.UID != p.GID {
					t.Fatalf("phantom %+v", p)
				}
				seen[p.UID] = true
			}
			if want := min(newIDs(c.uids...).size(), 100); len(seen) < want {
				t.Errorf("%d distinct uids, want at least %d", len(seen), want)
			}
		})
	}
}

func TestOwnPhantomsTaken(t *testing.T) {
	c := host{passwd: anna, subuid: "anna:5000:1001\n", subgid: "anna:5000:1001\n", uid: 1000}.chooser(t)
	// The only id above the first 1000 is taken, so one of the first 1000 is chosen.
	p, err := c.choose(func(uid int) bool { return uid != 5500 })
	if err != nil || p != (Phantom{5500, 5500}) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = c.choose(func(int) bool { return true })
	if !errors.Is(err, errNoFreeID) || p != (Phantom{}) {
		t.Errorf("all taken: %+v, %v", p, err)
	}
}

func TestUnreadableFile(t *testing.T) {
	c := host{passwd: anna, uid: 1000}.chooser(t)
	if err := os.MkdirAll(filepath.Join(c.root, "etc/subuid"), 0o755); err != nil { // a directory cannot be read
		t.Fatal(err)
	}
	var none *NoRange
	if p, err := c.choose(nil); err == nil || errors.As(err, &none) || p != (Phantom{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNoRange(t *testing.T) {
	const add = "sudo usermod --add-subuids %[1]d-%[2]d --add-subgids %[1]d-%[2]d anna"
	install := "sudo apt-get install uidmap"
	for _, c := range []struct {
		name   string
		host   host
		reason string
		mend   []string
	}{
		{"nothing", host{passwd: anna}, "no subordinate ids (", []string{install, fmt.Sprintf(add, 100000, 165535)}},
		{"programs there", host{passwd: anna, programs: mappers}, "no subordinate ids (", []string{fmt.Sprintf(add, 100000, 165535)}},
		{"one program", host{passwd: anna, programs: mappers[:1]}, "no subordinate ids (", []string{install, fmt.Sprintf(add, 100000, 165535)}},
		{"only uids", host{passwd: anna, subuid: "anna:100000:65536\n", programs: mappers}, "no subordinate group ids", []string{fmt.Sprintf(add, 165536, 231071)}},
		{"only gids", host{passwd: anna, subgid: "anna:100000:65536\n", programs: mappers}, "no subordinate user ids", []string{fmt.Sprintf(add, 165536, 231071)}},
		{"others have", host{passwd: anna, subuid: "ben:100000:65536\n", subgid: "ben:231072:65536\n", programs: mappers}, "no subordinate ids (",
			[]string{fmt.Sprintf(add, 165536, 231071)}},
		{"a gap too small", host{passwd: anna, subuid: "ben:100000:65536\n", subgid: "ben:200000:65536\n", programs: mappers}, "no subordinate ids (",
			[]string{fmt.Sprintf(add, 265536, 331071)}},
		{"an account in the way", host{passwd: anna + "d:x:100500:1000::/:\n", group: "d:x:166000:\n", programs: mappers}, "no subordinate ids (",
			[]string{fmt.Sprintf(add, 166001, 231536)}},
		{"all shared", host{passwd: anna, subuid: "anna:100000:65536\nben:100000:65536\n", subgid: "anna:100000:65536\n", programs: mappers}, "nobody else's",
			[]string{fmt.Sprintf(add, 165536, 231071)}},
		{"an account of a directory service", host{programs: mappers, subuid: "x:100000:65536\n"}, "no subordinate ids (",
			[]string{"echo 987654:165536:65536 | sudo tee -a /etc/subuid /etc/subgid"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.host.uid = 1000
			if c.host.passwd == "" {
				c.host.uid = 987654 // no account has this uid on the machine that runs the tests
			}
			p, err := c.host.chooser(t).choose(nil)
			var none *NoRange
			if !errors.As(err, &none) || p != (Phantom{}) {
				t.Fatalf("%+v, %v", p, err)
			}
			if !slices.Equal(none.Mend, c.mend) {
				t.Errorf("mend %q, want %q", none.Mend, c.mend)
			}
			if !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), fmt.Sprintf("%q", none.User)) {
				t.Errorf("error %q", err)
			}
		})
	}
}

// TestAdvisedRangeWorks gives the user the range that the advice names, and chooses again.
func TestAdvisedRangeWorks(t *testing.T) {
	h := host{passwd: anna, subuid: "ben:100000:65536\n", subgid: "ben:190000:65536\n", uid: 1000, programs: mappers}
	_, err := h.chooser(t).choose(nil)
	var none *NoRange
	if !errors.As(err, &none) {
		t.Fatal(err)
	}
	var first, last int
	if _, err := fmt.Sscanf(none.Mend[0], "sudo usermod --add-subuids %d-%d", &first, &last); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("anna:%d:%d\n", first, last-first+1)
	h.subuid, h.subgid = h.subuid+line, h.subgid+line
	p, err := h.chooser(t).choose(nil)
	if err != nil || p.UID != p.GID || !within(p.UID, span{first + 1000, last + 1}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestPhantomJSON(t *testing.T) {
	got, err := json.Marshal(Phantom{1, 2})
	if err != nil || string(got) != `{"uid":1,"gid":2}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestNewPhantom chooses on the machine that runs the test, as the user who runs it.
func TestNewPhantom(t *testing.T) {
	a, err := readAccounts("/")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPhantom(nil)
	var none *NoRange
	switch {
	case errors.As(err, &none) && os.Geteuid() != 0:
		t.Log(err, none.Mend)
	case err != nil:
		t.Fatal(err)
	case len(newIDs(span{p.UID, p.UID + 1}, span{p.GID, p.GID + 1}).and(a.ids)) > 0:
		t.Errorf("phantom %+v is an account's", p)
	case known(p.UID) || known(p.GID):
		t.Errorf("phantom %+v is known", p)
	}
}
