package promote_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// seeds returns the seeds of the histories to make. They are the same few each time, so that a test result depends
// only on the change. AIRLOCK_TEST_SEED selects one seed, AIRLOCK_TEST_SEEDS a number of random ones.
func seeds(t *testing.T, few int) []uint64 {
	t.Helper()
	if text := os.Getenv("AIRLOCK_TEST_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		check(t, err)
		return []uint64{seed}
	}
	first := uint64(1)
	if text := os.Getenv("AIRLOCK_TEST_SEEDS"); text != "" {
		var err error
		few, err = strconv.Atoi(text)
		check(t, err)
		first = uint64(time.Now().UnixNano()) / 1000
	}
	var list []uint64
	for i := range few {
		list = append(list, first+uint64(i))
	}
	return list
}

// few returns how many cases a test makes: fewer in a short run.
func few(short, all int) int {
	if testing.Short() {
		return short
	}
	return all
}

// notShort leaves a test out of a short run.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long test (scripts/test --everywhere)")
	}
}

// seedsBelow runs a test with each seed below a number: usual, a quarter of them in a short run, or long if AIRLOCK_TEST_LONG is set.
func seedsBelow(t *testing.T, usual, long int, test func(t *testing.T, seed int)) {
	t.Helper()
	number := few((usual+3)/4, usual)
	if os.Getenv("AIRLOCK_TEST_LONG") != "" {
		number = long
	}
	for seed := range number {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			test(t, seed)
		})
	}
}

// formatOf returns the object format of the repositories of a seed, so that the seed alone repeats a test.
func formatOf(seed uint64) string { return []string{"sha256", "sha1"}[seed%2] }

// eachSeed runs a test for each seed. All of them run in parallel.
func eachSeed(t *testing.T, all []uint64, test func(t *testing.T, format string, seed uint64)) {
	t.Helper()
	for _, seed := range all {
		format := formatOf(seed)
		t.Run(fmt.Sprintf("%s/AIRLOCK_TEST_SEED=%d", format, seed), func(t *testing.T) {
			t.Parallel()
			test(t, format, seed)
		})
	}
}

// TestAnyHistoryLandsExactly makes random histories that grow and are rewritten. Each commit must land as the
// contract demands: tree, message, encoding, author date, parents and notes.
func TestAnyHistoryLandsExactly(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t, 2) {
		format := formatOf(seed)
		for name, does := range map[string]struct{ rewrites, works bool }{
			"growing": {}, "rewritten": {rewrites: true}, "user works": {works: true}, "both": {rewrites: true, works: true},
		} {
			if testing.Short() && does.works == (format == "sha1") {
				continue // each kind with one format
			}
			t.Run(fmt.Sprintf("%s/%s/AIRLOCK_TEST_SEED=%d", name, format, seed), func(t *testing.T) {
				t.Parallel()
				landHistory(t, format, seed, does.rewrites, does.works)
			})
		}
	}
}

func landHistory(t *testing.T, format string, seed uint64, rewrites, works bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	base := tree{}
	for range r.IntN(12) {
		base.put(somePath(r), someFile(r))
	}
	if works {
		base[shared] = sharedFile()
	}
	w := newWorld(t, format, base)
	a := newAgent(w, base, seed)
	m := newModel(w, a)
	for round := range 8 {
		for range r.IntN(8) {
			a.step()
		}
		if rewrites && r.IntN(2) == 0 {
			a.rewrite()
		}
		if works && r.IntN(2) == 0 {
			m.userCommits(r, fmt.Sprint(round))
		}
		if r.IntN(4) == 0 {
			// A new engine stands for another process, as after stop and start.
			w.engine = newEngine(w.Repository, w.record, w.inner)
		}
		if r.IntN(4) == 0 {
			m.away(a, rewrites)
		}
		a.publish()
		onto := m.tip()
		if o := w.cycle(); len(o.Holds) > 0 {
			t.Fatalf("held: %+v", o.Holds)
		}
		m.landed(a.main, onto)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	m.whole()
}

// away switches the user to another branch while the agent continues. Waiting commits are rewritten meanwhile and
// must leave no trace.
func (m *model) away(a *agent, rewrites bool) {
	m.t.Helper()
	m.git("checkout", "-q", "-B", "elsewhere")
	for range 3 {
		a.step()
		if rewrites {
			a.rewrite()
		}
		a.publish()
		before := m.tip()
		m.cycle()
		if m.tip() != before {
			m.t.Error("landed while another branch was checked out")
		}
	}
	m.git("checkout", "-q", m.record.BranchName().Raw())
}

// TestHistoryGrowsWhileItLands lets a daemon land a history while it grows. The result must be the same as of one
// cycle at the end.
func TestHistoryGrowsWhileItLands(t *testing.T) {
	t.Parallel()
	eachSeed(t, seeds(t, 2), func(t *testing.T, format string, seed uint64) {
		base := tree{"a": plain("a\n"), "lib/a": plain("a\n")}
		w := newWorld(t, format, base)
		a := newAgent(w, base, seed)
		m := newModel(w, a)
		stop := w.daemon()
		for range 60 {
			a.step()
			a.publish()
			time.Sleep(time.Duration(a.r.IntN(15)) * time.Millisecond)
		}
		w.await("everything to land", func() bool { return noteValue(m.notes()[m.tip()], "Inner-Commit") == string(a.main.id) })
		stop()
		m.landed(a.main, w.record.Base)
		m.whole()
	})
}

// daemon runs the airlock's daemon until the returned function is called.
func (w *world) daemon() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	var said bytes.Buffer
	go func() {
		ended <- daemon.Run(ctx, daemon.Config{Engine: newEngine(w.Repository, w.record, w.inner), Log: log.New(&said, "", log.Lmicroseconds)})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil || w.t.Failed() {
			w.t.Errorf("the daemon: %v\n%s", err, &said)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// patience is the time that a test waits for an expected event. On a machine with thirty busy processes a landing takes twenty times as long.
const patience = 5 * time.Minute

func (w *world) await(what string, there func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !there(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestNULIsRefused commits a message with a NUL, which git does not accept. The commit is refused, and so are the
// commits on top of it. When the agent removes it, the others land.
func TestNULIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	a := newAgent(w, tree{"a": plain("a\n")}, 1)
	m := newModel(w, a)
	before := a.main
	a.main = &commit{files: tree{"b": plain("b\n")}, parents: []*commit{before}, author: a.ghost, when: "1 +0000", message: "a\x00b\n"}
	a.store(a.main)
	a.publish()
	for range 2 {
		o := w.cycle()
		if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.InnerInvalid || m.tip() != w.record.Base {
			t.Fatalf("not held: %+v", o)
		}
	}
	a.main = a.next(before)
	a.publish()
	w.cycle()
	m.landed(a.main, w.record.Base)
	m.whole()
}
