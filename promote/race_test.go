package promote_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/git-airlock/git-airlock/promote"
)

// housekeeping are user commands that pack, remove or move objects.
var housekeeping = map[string]string{
	"gc":             "git gc -q",
	"gc now":         "git gc -q --prune=now",
	"gc auto":        "git -c gc.auto=1 -c gc.autoPackLimit=1 -c gc.autoDetach=false gc -q --auto",
	"gc cruft":       "git gc -q --cruft --prune=now",
	"gc unreflogged": "git reflog expire --expire=now --all; git gc -q --prune=now",
	"repack":         "git repack -dq",
	"repack all":     "git repack -adq",
	"repack loosen":  "git repack -Adq; git prune --expire=now",
	"repack kept":    "git repack -adq --pack-kept-objects",
	"geometric":      "git repack --geometric=2 -dq",
	"midx":           "git repack -dq; git multi-pack-index write; git multi-pack-index repack --batch-size=0; git multi-pack-index expire",
	"prune":          "git prune --expire=now; git prune-packed -q",
	"maintenance":    "git maintenance run --quiet --task=loose-objects --task=incremental-repack --task=pack-refs --task=commit-graph",
	"maintenance gc": "git maintenance run --quiet --task=gc",
	"fetch":          "git fetch -q --prune ../other 'refs/heads/*:refs/remotes/other/*'; git -c gc.autoDetach=false -c gc.auto=1 maintenance run --auto --quiet",
}

// TestHousekeepingLosesNothing lands commits, at once and after they were pending, while the user's housekeeping runs
// in a loop. No object may be lost. AIRLOCK_TEST_RACES is the number of rounds for each command.
func TestHousekeepingLosesNothing(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 3 // one of them with pending commits
	}
	if text := os.Getenv("AIRLOCK_TEST_RACES"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		check(t, err)
	}
	for name, command := range housekeeping {
		for _, format := range []string{"sha1", "sha256"} {
			if format == "sha256" && rounds < 20 && name != "gc now" {
				continue
			}
			t.Run(name+" "+format, func(t *testing.T) {
				w := newWorld(t, format, tree{"a": plain("a\n")})
				git(t, "", "clone", "-q", w.Top, filepath.Join(filepath.Dir(w.Top), "other"))
				git(t, w.Top, "config", "core.logAllRefUpdates", "false") // without reflogs, only refs keep objects
				w.engine.Progress = func(what string, _, _ int) {
					if strings.HasPrefix(what, "restoring") {
						t.Error("objects were lost, and put back")
					}
				}
				stop := w.beside(command)
				defer stop()
				for round := range rounds {
					w.race(round)
				}
			})
		}
	}
}

// beside runs a command in a loop until stop is called.
func (w *world) beside(command string) (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !over.Load() {
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = w.Top
			_ = cmd.Run() // it may meet a lock, or a tip that moves
		}
	})
	return func() { over.Store(true); all.Wait() }
}

// race makes the agent commit and lands the commits, in every third round after they were pending. Then it checks
// that all objects exist.
func (w *world) race(round int) {
	w.t.Helper()
	for n := range 1 + round%3 {
		check(w.t, os.WriteFile(filepath.Join(w.inner, fmt.Sprintf("f%d-%d", round, n)), fmt.Appendf(nil, "%d %d\n", round, n), 0o644))
		git(w.t, w.inner, "add", "-A")
		git(w.t, w.inner, "commit", "-q", "-m", fmt.Sprint(round, " ", n))
	}
	if round%3 == 2 {
		git(w.t, w.Top, "config", "airlock.autoLand", "false")
		w.cycle()
		git(w.t, w.Top, "config", "--unset", "airlock.autoLand")
		w.sound(round)
	}
	for tries := 0; ; tries++ {
		o, err := w.engine.Drain(w.t.Context(), promote.Options{})
		check(w.t, err)
		if o.Pending == 0 && git(w.t, w.Top, "rev-parse", "main^{tree}") == git(w.t, w.inner, "rev-parse", "main^{tree}") {
			break
		}
		if tries > 20 {
			w.t.Fatalf("round %d: not landed: %+v", round, o)
		}
	}
	w.sound(round)
}

// sound checks that the repository has all objects that its refs reach.
func (w *world) sound(round int) {
	w.t.Helper()
	_, err := tryGit(w.Top, "", "rev-list", "--objects", "--all", "--quiet")
	for tries := 0; err != nil && tries < 10; tries++ { // a repack may have removed a pack that a try had just listed
		_, err = tryGit(w.Top, "", "rev-list", "--objects", "--all", "--quiet")
	}
	if err != nil {
		out, _ := tryGit(w.Top, "", "fsck", "--connectivity-only", "--no-dangling")
		w.t.Fatalf("round %d: %v\n%s", round, err, strings.TrimSpace(out))
	}
}

// TestLostObjectsAreHandedOverAgain removes landed objects from the repository. The next cycle restores them.
func TestLostObjectsAreHandedOverAgain(t *testing.T) {
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.race(0)
	w.race(2)
	packs, err := filepath.Glob(filepath.Join(w.CommonDir, "objects", "pack", "pack-*"))
	check(t, err)
	for _, file := range packs {
		check(t, os.Remove(file))
	}
	if _, err := tryGit(w.Top, "", "rev-list", "--objects", "--all", "--quiet"); err == nil {
		t.Fatal("no object is lost")
	}
	w.cycle()
	w.sound(0)
	w.nothingLeft()
	if keeps, _ := filepath.Glob(filepath.Join(w.CommonDir, "objects", "pack", "*.keep")); len(keeps) > 0 {
		t.Errorf("left: %q", keeps)
	}
}
