package land

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// displacedInOrder lists the files that the landing of newKillFixture displaces, in order.
var displacedInOrder = []string{"dir/a", "dir/b", "file", "rm", ".gitattributes", "link", "mod.txt", "mode"}

// needsExchange skips a test where the file system of the tests cannot exchange files. Landings check files before their renames there. Where
// the tests were promised a native prison, the system is Linux, and the test fails.
func needsExchange(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	gitopstest.Check(t, errors.Join(os.WriteFile(a, nil, 0o600), os.WriteFile(b, nil, 0o600)))
	if err := durable.Exchange(a, b); errors.Is(err, errors.ErrUnsupported) {
		if slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), "native") {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, and not tested:", err)
	}
}

// saveDisplaced changes a file that a killed landing has displaced, as if the user had saved it a moment before that.
func (k *killFixture) saveDisplaced(path string) {
	k.T.Helper()
	for _, root := range []string{"removed", "tree"} {
		found, err := filepath.Glob(filepath.Join(k.State, ScratchPrefix+"*", root, path))
		gitopstest.Check(k.T, err)
		for _, name := range found {
			gitopstest.Check(k.T, os.Remove(name))
			gitopstest.Check(k.T, os.WriteFile(name, []byte("saved"), 0o644))
			return
		}
	}
	k.T.Fatalf("%s is not displaced", path)
}

// A landing that is killed between the displacement of a file and the look at it gives back what the user has saved.
func TestRecoveryGivesBackWhatWasSaved(t *testing.T) {
	t.Parallel()
	needsExchange(t)
	for n, path := range displacedInOrder {
		for _, step := range []string{fmt.Sprint(stepDisplaced, ":", n+1), stepTree} {
			t.Run(path+" "+step, func(t *testing.T) {
				t.Parallel()
				k := newKillFixture(t)
				k.mustKill(step)
				k.saveDisplaced(path)
				k.before[path] = "-rw-r--r-- saved"
				for range 2 {
					gitopstest.Check(t, k.recover())
					k.isBefore()
				}
			})
		}
	}
	k := newKillFixture(t)
	if k.kill(fmt.Sprint(stepDisplaced, ":", len(displacedInOrder)+1)) {
		t.Errorf("more than %d files are displaced", len(displacedInOrder))
	}
	k.isAfter()
}

// A program may write into a displaced file until the landing removes it. If the branch has moved by then, recovery keeps what was written as a
// change of the user.
func TestRecoveryKeepsWhatWasSavedAfterTheRefs(t *testing.T) {
	t.Parallel()
	needsExchange(t)
	at := map[string]string{"dir/a": "a.mine", "file": "file.mine"} // there is something else now
	for _, path := range displacedInOrder {
		for _, step := range []string{stepRefs, stepIndex} {
			t.Run(path+" "+step, func(t *testing.T) {
				t.Parallel()
				k := newKillFixture(t)
				k.mustKill(step)
				k.saveDisplaced(path)
				want := k.tree()
				name := at[path]
				if path == "dir/b" {
					name = "b.mine"
				}
				if name == "" {
					name = path
				}
				want[name] = "-rw-r--r-- saved"
				for range 2 {
					gitopstest.Check(t, k.recover())
					k.tree().equals(t, want)
					k.landed(k.new)
				}
			})
		}
	}
	k := newKillFixture(t)
	k.mustKill(stepDropped)
	gitopstest.Check(t, k.recover())
	k.isAfter()
}

// A recovery that is killed while it gives a file back does so again.
func TestKilledRecoveryGivesBackWhatWasSaved(t *testing.T) {
	t.Parallel()
	needsExchange(t)
	for n := range displacedInOrder {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			k := newKillFixture(t)
			k.mustKill(stepTree)
			for _, path := range []string{"mod.txt", "rm"} {
				k.saveDisplaced(path)
				k.before[path] = "-rw-r--r-- saved"
			}
			k.kill(fmt.Sprint(stepDisplaced, ":", n+1))
			gitopstest.Check(t, k.recover())
			k.isBefore()
		})
	}
}

// landStopped makes a landing in another process, which stops at a step until act has returned. It returns what that process prints.
func (w *world) landStopped(request Landing, step string, act func()) string {
	w.T.Helper()
	content, err := json.Marshal(helperRequest{Top: w.Top, Landing: request})
	gitopstest.Check(w.T, err)
	stopped := filepath.Join(w.T.TempDir(), "stopped")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AIRLOCK_TEST_LAND="+string(content), "AIRLOCK_TEST_KILL="+step+"@"+stopped)
	var said strings.Builder
	cmd.Stderr = &said
	gitopstest.Check(w.T, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for _, err := os.Lstat(stopped); err != nil; _, err = os.Lstat(stopped) {
		select {
		case <-ended:
			w.T.Fatalf("the landing has not reached %s: %s", step, said.String())
		case <-time.After(time.Millisecond):
		}
	}
	act()
	gitopstest.Check(w.T, os.Remove(stopped))
	<-ended
	return said.String()
}

func TestLandKeepsWhatIsSavedMeanwhile(t *testing.T) {
	t.Parallel()
	save := func(w *world, name string) {
		gitopstest.Check(w.T, os.WriteFile(filepath.Join(w.Top, name), []byte("saved"), 0o644))
	}
	for name, c := range map[string]struct {
		old, new gitopstest.Files
		path     string // where the user acts after the first file, a, has changed, and before the second
		act      func(w *world, path string)
	}{
		"in place": {gitopstest.Files{"a": "1", "z": "1"}, gitopstest.Files{"a": "2", "z": "2"}, "z", save},
		"renamed": {gitopstest.Files{"a": "1", "z": "1"}, gitopstest.Files{"a": "2", "z": "2"}, "z", func(w *world, name string) {
			save(w, "saving")
			gitopstest.Check(w.T, os.Rename(filepath.Join(w.Top, "saving"), filepath.Join(w.Top, name)))
		}},
		"new":     {gitopstest.Files{"a": "1"}, gitopstest.Files{"a": "2", "z": "2"}, "z", save},
		"removed": {gitopstest.Files{"a": "1", "z": "1"}, gitopstest.Files{"a": gitopstest.Absent, "z": gitopstest.Absent}, "z", save},
		"deleted": {gitopstest.Files{"a": "1", "z": "1"}, gitopstest.Files{"a": "2", "z": "2"}, "z", func(w *world, name string) {
			gitopstest.Check(w.T, os.Remove(filepath.Join(w.Top, name)))
		}},
		"a folder": {gitopstest.Files{"a": "1", "z": "1"}, gitopstest.Files{"a": "2", "z": "2"}, "z", func(w *world, name string) {
			gitopstest.Check(w.T, os.Remove(filepath.Join(w.Top, name)))
			w.Write(gitopstest.Files{name + "/x": "saved"})
		}},
		"where a folder": {gitopstest.Files{"a": "1"}, gitopstest.Files{"a": "2", "z/x": "2"}, "z", save},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.CommitAll(c.old)
			request := w.landing(old, w.Built(old, c.new))
			rest()
			said := w.landStopped(request, stepSwing+":2", func() { c.act(w, c.path) })
			if !strings.Contains(said, "1 paths in the way, the first is "+c.path) {
				t.Fatalf("Land: %s, want a collision at %s", said, c.path)
			}
			w.NothingLeft()
			got := w.tree()
			w.Run("reset", "-q", "--hard", string(request.Old))
			w.Run("clean", "-q", "-f", "-d")
			c.act(w, c.path)
			got.equals(t, w.tree())
			if at := w.At("refs/heads/main"); at != request.Old {
				t.Errorf("main is at %s, want %s", at, request.Old)
			}
		})
	}
}

// An editor may have opened a file before the landing displaces it, and write into it afterwards.
func TestLandKeepsWhatIsWrittenIntoADisplacedFile(t *testing.T) {
	t.Parallel()
	needsExchange(t)
	for name, new := range map[string]string{"changed": "2", "removed": gitopstest.Absent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.CommitAll(gitopstest.Files{"a": "1", "z": "1"})
			request := w.landing(old, w.Built(old, gitopstest.Files{"a": new}))
			rest()
			editor, err := os.OpenFile(filepath.Join(w.Top, "a"), os.O_WRONLY, 0)
			gitopstest.Check(t, err)
			said := w.landStopped(request, stepTree, func() {
				_, err := editor.WriteString("saved")
				gitopstest.Check(t, errors.Join(err, editor.Close()))
			})
			if !strings.Contains(said, "1 paths in the way, the first is a") {
				t.Errorf("Land: %s, want a collision at a", said)
			}
			w.wantStatus(" M a")
			if content, _ := os.ReadFile(filepath.Join(w.Top, "a")); string(content) != "saved" {
				t.Errorf("a is %q", content)
			}
			w.NothingLeft()
		})
	}
}

// Files are saved at random moments while landings go on. The last content saved at each path is in the working tree afterwards, at its
// path or beside it.
func TestLandLosesNoSave(t *testing.T) {
	t.Parallel()
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	w := newWorld(t)
	files := gitopstest.Files{}
	for i := range 400 {
		files[fmt.Sprintf("d%d/f%d", i%3, i)] = "0"
	}
	names := slices.Sorted(maps.Keys(files))
	w.CommitAll(files)
	outcomes := map[string]int{}
	for round := range rounds {
		old := gitops.OID(w.Run("rev-parse", "HEAD"))
		change := gitopstest.Files{}
		for i, name := range names {
			change[name] = fmt.Sprint("landed ", round)
			if (i+round)%5 == 0 {
				change[name] = gitopstest.Absent
			}
		}
		new := w.Built(old, change)
		rest()
		saved := w.saveAtRandom(names, round, func() {
			err := Land(t.Context(), w.Repository, w.landing(old, new))
			var collision *CollisionError
			switch {
			case err == nil:
				outcomes["landed"]++
			case errors.As(err, &collision):
				outcomes["collided"]++
			case errors.Is(err, ErrUnfinished):
				outcomes["unfinished"]++
			default:
				t.Error(err)
			}
		})
		for name, content := range saved {
			beside, _ := filepath.Glob(filepath.Join(w.Top, name+".mine*"))
			if !slices.ContainsFunc(append(beside, filepath.Join(w.Top, name), filepath.Join(w.Top, filepath.Base(name)+".mine")), func(at string) bool {
				got, err := os.ReadFile(at)
				return err == nil && string(got) == content
			}) {
				t.Fatalf("round %d: %q, saved as %s, is lost", round, content, name)
			}
		}
		w.CommitAll(nil)
		gitopstest.Check(t, Recover(t.Context(), w.Repository, w.State))
		w.NothingLeft()
	}
	t.Log(outcomes)
}

// saveAtRandom saves files while work goes on, in place and through a rename, and returns what was saved last at each path. Most files are
// saved after the index is locked.
func (w *world) saveAtRandom(names []string, round int, work func()) (saved map[string]string) {
	saved = map[string]string{}
	var lock sync.Mutex
	var savers sync.WaitGroup
	done := make(chan struct{})
	for n := range 4 {
		savers.Go(func() {
			w.awaitLock(done)
			time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
			name := names[rand.IntN(len(names)/4)*4+n] // each has its own
			at, content := filepath.Join(w.Top, name), fmt.Sprintf("saved %d %d", round, n)
			err := os.MkdirAll(filepath.Dir(at), 0o755)
			if n%2 == 0 && err == nil {
				err = os.WriteFile(at, []byte(content), 0o644)
			} else if err == nil {
				err = errors.Join(os.WriteFile(at+"~", []byte(content), 0o644), os.Rename(at+"~", at))
			}
			if errors.Is(err, fs.ErrNotExist) {
				return // the landing has just removed the folder: nothing was saved
			}
			gitopstest.Check(w.T, err)
			lock.Lock()
			defer lock.Unlock()
			saved[name] = content
		})
	}
	work()
	close(done)
	savers.Wait()
	return saved
}

// awaitLock waits until the index is locked or work is done.
func (w *world) awaitLock(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			if _, err := os.Lstat(filepath.Join(w.GitDir, "index.lock")); err == nil {
				return
			}
		}
	}
}
