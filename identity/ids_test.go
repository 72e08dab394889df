package identity

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// few returns a set of small ids, and a table with the same ids.
func few(r *rand.Rand) (idSet, [64]bool) {
	var spans []span
	var table [64]bool
	for range r.IntN(6) {
		first := r.IntN(60)
		sp := span{first, first + r.IntN(5)}
		spans = append(spans, sp)
		for id := sp.first; id < sp.end; id++ {
			table[id] = true
		}
	}
	return newIDs(spans...), table
}

func checkSet(t *testing.T, what string, s idSet, want func(id int) bool) {
	t.Helper()
	var ids []int
	for id := range 64 {
		if want(id) {
			ids = append(ids, id)
		}
	}
	var got []int
	for i := range s.size() {
		got = append(got, s.at(i))
	}
	if !slices.Equal(got, ids) {
		t.Fatalf("%s: %v is %v, want %v", what, s, got, ids)
	}
}

// TestSets compares the sets with plain tables.
func TestSets(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 0))
		a, inA := few(r)
		b, inB := few(r)
		what := fmt.Sprintf("seed %d, %v, %v", seed, a, b)
		checkSet(t, what+" a", a, func(id int) bool { return inA[id] })
		checkSet(t, what+" minus", a.minus(b), func(id int) bool { return inA[id] && !inB[id] })
		checkSet(t, what+" and", a.and(b), func(id int) bool { return inA[id] && inB[id] })
	}
}

// TestPickGivesUp checks that a search among taken ids ends.
func TestPickGivesUp(t *testing.T) {
	asked := 0
	if id, ok := rootIDs.pick(func(int) bool { asked++; return true }); ok || asked > 1<<20 {
		t.Errorf("%d, %v after %d", id, ok, asked)
	}
	if id, ok := (idSet{}).pick(func(int) bool { return false }); ok {
		t.Errorf("%d of none", id)
	}
}

func TestRandom(t *testing.T) {
	var counts [10]int
	for range 10000 {
		counts[random(10)]++
	}
	for n, count := range counts {
		if count < 800 || count > 1200 { // more than six standard deviations from the mean
			t.Errorf("%d came %d times of 10000", n, count)
		}
	}
}

// TestPhantomsOnRandomHosts checks that a phantom is never an account's, never in another user's range, and always in a range of the
// user.
func TestPhantomsOnRandomHosts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, busyUID, busyGID, ownUID, ownGID := randomHost(r)
		p, err := h.chooser(t).choose(nil)
		if err != nil {
			if own := func(id int) bool { return ownUID[id] && !busyUID[id] }; h.uid == 0 {
				t.Errorf("seed %d: %v", seed, err)
			} else if _, found := firstOf(own); found {
				if _, found := firstOf(func(id int) bool { return ownGID[id] && !busyGID[id] }); found {
					t.Errorf("seed %d: %v although ids are free\n%+v", seed, err, h)
				}
			}
			continue
		}
		if busyUID[p.UID] || busyGID[p.GID] {
			t.Errorf("seed %d: phantom %+v is somebody's\n%+v", seed, p, h)
		}
		if h.uid != 0 && (!ownUID[p.UID] || !ownGID[p.GID]) {
			t.Errorf("seed %d: phantom %+v is not in the user's ranges\n%+v", seed, p, h)
		}
	}
}

func firstOf(f func(id int) bool) (int, bool) {
	for id := range 20000 {
		if f(id) {
			return id, true
		}
	}
	return 0, false
}

// randomHost makes files about ids below 20000, and tables with the same content.
func randomHost(r *rand.Rand) (h host, busyUID, busyGID, ownUID, ownGID map[int]bool) {
	h = host{passwd: anna, uid: []int{0, 1000, 1000, 1000}[r.IntN(4)]}
	busyUID, busyGID = map[int]bool{0: true, 1000: true, 1001: true}, map[int]bool{0: true, 1000: true, 1001: true}
	ownUID, ownGID = make(map[int]bool), make(map[int]bool)
	for range r.IntN(30) {
		uid, gid, other := 4000+r.IntN(100), 4000+r.IntN(100), 4000+r.IntN(100)
		h.passwd += fmt.Sprintf("u%d:x:%d:%d::/:/bin/sh\n", uid, uid, gid)
		h.group += fmt.Sprintf("g%d:x:%d:\n", other, other)
		for _, id := range []int{uid, gid, other} { // an account's uid must not be a phantom's gid either
			busyUID[id], busyGID[id] = true, true
		}
	}
	ranges := func(busy, own map[int]bool) string {
		var b strings.Builder
		for range r.IntN(5) {
			owner := []string{"anna", "1000", "ben", "1001", "gone"}[r.IntN(5)]
			first, count := 4000+r.IntN(80), []int{1, 20, 40, 3000}[r.IntN(4)]
			fmt.Fprintf(&b, "%s:%d:%d\n", owner, first, count)
			mine := h.uid == 1000 && (owner == "anna" || owner == strconv.Itoa(h.uid))
			for id := first; id < first+count; id++ {
				if mine {
					own[id] = true
				} else {
					busy[id] = true
				}
			}
		}
		return b.String()
	}
	h.subuid, h.subgid = ranges(busyUID, ownUID), ranges(busyGID, ownGID)
	return h, busyUID, busyGID, ownUID, ownGID
}

func FuzzAccounts(f *testing.F) {
	f.Add(anna, "anna:100000:65536\n")
	f.Add("a:b:4294967295:4294967296\n+::::::\n", "a:4294967295:4294967295\n::\na:0:0")
	f.Fuzz(func(t *testing.T, passwd, sub string) {
		root := t.TempDir()
		write(t, filepath.Join(root, "etc/passwd"), passwd, 0o644)
		write(t, filepath.Join(root, "etc/subuid"), sub, 0o644)
		write(t, filepath.Join(root, "etc/subgid"), sub, 0o644)
		for _, uid := range []int{0, 1000} {
			c := chooser{root: root, uid: uid, known: func(int) bool { return false }}
			p, err := c.choose(nil)
			if err == nil && (p.UID <= 0 || p.UID > maxID || p.UID != p.GID) {
				t.Errorf("phantom %+v", p)
			}
		}
	})
}
