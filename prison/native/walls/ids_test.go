//go:build linux

package walls

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// TestFreeRange checks that freeRange returns the first range that overlaps no other.
func TestFreeRange(t *testing.T) {
	for _, c := range []struct {
		taken []idRange
		want  int
	}{
		{nil, 100000},
		{[]idRange{{100000, 65536}}, 165536},
		{[]idRange{{165536, 65536}, {100000, 65536}}, 231072},
		{[]idRange{{120000, 10}}, 120010},
		{[]idRange{{1000, 10}}, 100000},
	} {
		if got := freeRange(c.taken); got != c.want {
			t.Errorf("freeRange(%v) = %d, want %d", c.taken, got, c.want)
		}
	}
}

// TestAppArmorProfile runs the commands in a shell and checks the profile that they write.
func TestAppArmorProfile(t *testing.T) {
	for program, path := range map[string]string{
		"/usr/local/bin/git-airlock": "/usr/local/bin/git-airlock",
		`/home/o'neil/100% "x*\/g`:   `/home/o'neil/100% \"x\*\\/g`,
	} {
		print, _, _ := strings.Cut(apparmorProfile(program)[0], " | sudo ")
		out, err := exec.Command("sh", "-c", print).Output()
		want := "abi <abi/4.0>,\nprofile git-airlock \"" + path + "\" flags=(unconfined) {\n  userns,\n}\n"
		if err != nil || string(out) != want {
			t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
		}
	}
}

func TestPickID(t *testing.T) {
	for range 100 {
		if id := pickID([]idRange{{10, 1}, {20, 2}}, 20); id != 10 && id != 21 {
			t.Fatalf("%d", id)
		}
	}
	if id := pickID([]idRange{{10, 1}}, 10); id != 0 {
		t.Errorf("%d is the phantom's", id)
	}
	if pickID(nil, 10) != 0 {
		t.Error("an id of no range")
	}
}

// TestRangesOf checks that ids that no phantom can have are not the user's.
func TestRangesOf(t *testing.T) {
	own, all := rangesOf("me:4294967290:65536\nme:2147483000:65536\nother:100000:65536\n7:200000:10\nme:x:1\n", "me", "7")
	if want := []idRange{{2147483000, 647}, {200000, 10}}; !slices.Equal(own, want) {
		t.Errorf("own: %v, want %v", own, want)
	}
	if len(all) != 4 {
		t.Errorf("all: %v", all)
	}
}

// TestMapperError checks that a message does not end with a colon if the program prints nothing.
func TestMapperError(t *testing.T) {
	failed := errors.New("exit status 1")
	for said, want := range map[string]string{" \n": "newuidmap prints no reason: exit status 1", "denied\n": "newuidmap: exit status 1: denied"} {
		if got := mapperError("newuidmap", failed, []byte(said)).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestGrantID checks that there is a command for ids that nobody has, even if a new range contains them, but not for two different ids.
func TestGrantID(t *testing.T) {
	_, uids := readRanges("/etc/subuid")
	_, gids := readRanges("/etc/subgid")
	inNew := freeRange(append(uids, gids...)) + 7
	if got, want := grantID(prison.Spec{UID: inNew, GID: inNew}), grant(inNew-7, rangeSize); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	const free = 1<<31 - 2
	if got := grantID(prison.Spec{UID: free, GID: free}); len(got) != 1 || !strings.Contains(got[0], "2147483646") {
		t.Errorf("%q", got)
	}
	if got := grantID(prison.Spec{UID: free, GID: free - 1}); got != nil {
		t.Errorf("%q", got)
	}
}
