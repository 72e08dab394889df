package checkpoint

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// randomTime returns a time: near the present, near a limit, or anywhere.
func randomTime(r *rand.Rand) files.Time {
	centers := []int64{0, begin.Unix(), mostSeconds, -mostSeconds, math.MaxInt64 / second, math.MinInt64 / second, 1 << 40, -1 << 40}
	sec := centers[r.IntN(len(centers))] + r.Int64N(9) - 4
	if r.IntN(4) == 0 {
		sec = int64(r.Uint64())
	}
	return files.Time{Sec: sec, Nsec: []int64{0, 1, r.Int64N(second), second - 1}[r.IntN(4)]}
}

// TestTimes writes random times and reads them again. Times that fit in an int64 have the form that they always had.
func TestTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 26))
	for range 20_000 {
		want := randomTime(r)
		text := string(appendTime(nil, want))
		if got, err := parseTime(text); err != nil || got != want {
			t.Fatalf("%v is written as %s and read as %v: %v", want, text, got, err)
		}
		exact := new(big.Int).Mul(big.NewInt(want.Sec), big.NewInt(second))
		if exact.Add(exact, big.NewInt(want.Nsec)).String() != text {
			t.Fatalf("%v is written as %s, want %s", want, text, exact)
		}
	}
	for _, text := range []string{"", "x", "1.5", "1e3", "9223372036854775808000000000", "1" + strconv.Itoa(math.MaxInt64) + "00000000000000"} {
		if got, err := parseTime(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestRestoreOfTimes restores files with random times. The file system may cut a time off, so the times are read after they were set.
func TestRestoreOfTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 26))
	w := newWorld(t, DefaultBytes)
	touch := func() {
		t.Helper()
		for n := range 40 {
			at := randomTime(r)
			path := filepath.Join(w.dir, strconv.Itoa(n))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.Timespec(at)}, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 5 {
		touch()
		before := listing(t, w.dir)
		taken := w.take("times")
		if again := w.take(""); again.IDs != taken.IDs {
			t.Errorf("ids %v and then %v", taken.IDs, again.IDs)
		}
		touch()
		w.restore(taken.Checkpoint, RestoreOptions{})
		if after := listing(t, w.dir); after != before {
			t.Errorf("restored:\n%s", difference(after, before))
		}
	}
}
