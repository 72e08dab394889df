package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// world is a workspace with its store.
type world struct {
	*testing.T
	dir   string
	store *Store
	*files.Client
}

func newWorld(t *testing.T, most int64) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir()}
	store, err := OpenStore(filepath.Join(t.TempDir(), "checkpoints"), most)
	if err != nil {
		t.Fatal(err)
	}
	w.store = store
	w.Client = serve(t, w.dir)
	t.Cleanup(func() {
		w.Close() // a test may have made Close fail
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		exec.Command("chmod", "-R", "u+rwx", w.dir).Run() // so that t.TempDir can remove it
	})
	return w
}

// serve serves a folder from this process.
func serve(t *testing.T, dir string) *files.Client {
	t.Helper()
	return files.Start(t.Context(), func(_ context.Context, _ []string, in io.Reader, out, _ io.Writer) (int, error) {
		return 0, files.Serve(dir, in, out)
	})
}

var begin = time.Unix(1790000000, 0)

func (w *world) take(message string) Taken {
	w.Helper()
	taken, err := w.store.Take(w.Context(), w.Client, Options{Message: message, Now: begin, Opens: true})
	if err == nil {
		err = taken.Shut(w.Client)
	}
	if err != nil {
		w.Fatal(err)
	}
	return taken
}

// restore restores a checkpoint and returns the number of the checkpoint before it.
func (w *world) restore(to Checkpoint, o RestoreOptions) int {
	w.Helper()
	o.Message, o.Now, o.Opens = "before the restore", begin, true
	r, err := w.store.Plan(w.Context(), w.Client, to, o)
	if err != nil {
		w.Fatal(err)
	}
	done, err := w.store.Restore(w.Context(), w.Client, r)
	if err != nil {
		w.Fatalf("%v: %q; wrote %q, removed %q", err, done.Failed, r.Write, r.Remove)
	}
	return r.Before.Number
}

// listing describes a folder independently of this package.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%q %o %d.%09d ", strings.TrimPrefix(path, dir), st.Mode, st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			content, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%q", content)
			if err != nil {
				return err
			}
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			fmt.Fprintf(&b, "-> %q", target)
			if err != nil {
				return err
			}
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// difference returns lines that only one of two listings has, up to a limit.
func difference(got, want string) string {
	var b strings.Builder
	for _, side := range []struct{ mark, has, other string }{{"+", got, want}, {"-", want, got}} {
		for line := range strings.Lines(side.has) {
			if !strings.Contains("\n"+side.other, "\n"+line) {
				fmt.Fprintf(&b, "%s%.200s\n", side.mark, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return b.String()
}

// hostile are names that git, shells or our own formats could misread.
var hostile = []string{".git", ".GIT", "git~1", ".g\u200cit", ".git ", ".git.", ".git\\x", "%2Egit", "%meta", "%", "a b", "new\nline", "\xff\xfe", "-rf", "*",
	"\x1b[31m", ".gitmodules", ".gitattributes", "meta", "files", "~", "a", "b", "c", "é", strings.Repeat("n", 255), "dot.", "\"", ":x", "\x01"}

// damage makes random changes in a folder, and nowhere else.
func damage(t *testing.T, r *rand.Rand, dir string, steps int) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	folders, all := []string{"."}, []string(nil)
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != "." {
			all = append(all, path)
			if d.IsDir() {
				folders = append(folders, path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range steps {
		path := filepath.Join(folders[r.IntN(len(folders))], hostile[r.IntN(len(hostile))])
		content := bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(3000))
		// Errors do not matter: a file may exist already, or its folder may be gone.
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			root.WriteFile(path, content, fs.FileMode(r.IntN(0o1000)|0o400))
			all = append(all, path)
		case 4, 5:
			if strings.Count(path, "/") < 8 && root.Mkdir(path, 0o755) == nil {
				folders, all = append(folders, path), append(all, path)
			}
		case 6:
			root.Symlink(hostile[r.IntN(len(hostile))], path)
		case 7:
			root.Symlink("/nowhere", path)
		default:
			if len(all) > 0 {
				harm(r, root, all[r.IntN(len(all))], path, content)
			}
		}
	}
}

// harm changes or removes an existing file.
func harm(r *rand.Rand, root *os.Root, path, other string, content []byte) {
	if info, err := root.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return
	}
	switch r.IntN(7) {
	case 0:
		root.RemoveAll(path)
	case 1:
		root.Rename(path, other)
	case 2:
		root.Chmod(path, fs.FileMode(r.IntN(0o1000))|readable()|fs.FileMode(r.IntN(2))<<20) // sometimes with the sticky bit
	case 3:
		root.Chtimes(path, time.Time{}, begin.Add(-time.Duration(r.Int64N(1<<60))))
	case 4:
		root.Link(path, other)
	case 5:
		root.RemoveAll(path)
		root.Symlink("/nowhere", path)
	case 6:
		root.WriteFile(path, content, 0o600)
	}
}

// readable returns the bits that every mode gets, so that an ordinary user can list the result of a restore. Root can list all files.
func readable() fs.FileMode {
	if os.Getuid() == 0 {
		return 0
	}
	return 0o700
}

// TestDamageAndRestore restores random states after random damage, with names that git refuses, and compares each with an independent
// listing. AIRLOCK_CHECKPOINT_CYCLES sets the number of cycles, and AIRLOCK_CHECKPOINT_SEED the first seed.
func TestDamageAndRestore(t *testing.T) {
	cycles := 40
	if n, err := strconv.Atoi(os.Getenv("AIRLOCK_CHECKPOINT_CYCLES")); err == nil {
		cycles = n
	}
	first, _ := strconv.Atoi(os.Getenv("AIRLOCK_CHECKPOINT_SEED")) // 0 if it is not set
	const perWorld = 20
	for n := range (cycles + perWorld - 1) / perWorld {
		seed := first + n
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 22))
			w := newWorld(t, DefaultBytes)
			if out, err := exec.Command("git", "init", "-q", w.dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for range perWorld {
				damage(t, r, w.dir, 15)
				taken := w.take("a state")
				before := listing(t, w.dir)
				damage(t, r, w.dir, 15)
				damaged := listing(t, w.dir)
				undo := w.restore(taken.Checkpoint, RestoreOptions{})
				if after := listing(t, w.dir); after != before {
					t.Fatalf("restored:\n%s", difference(after, before))
				}
				if r.IntN(3) > 0 {
					continue
				}
				back, err := w.store.Find(undo)
				if err != nil {
					t.Fatal(err)
				}
				w.restore(back, RestoreOptions{})
				if after := listing(t, w.dir); after != damaged {
					t.Fatalf("undone:\n%s", difference(after, damaged))
				}
			}
			if out, err := exec.Command("git", "-C", w.store.dir, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil {
				t.Errorf("git fsck: %v: %s", err, out)
			}
		})
	}
}

// TestRace restores while a program replaces folders by links to a folder outside. Nothing outside may change, and a restore with another
// result must report that.
func TestRace(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(w.dir, "folder")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "file"), []byte("inside"), 0o600)); err != nil {
		t.Fatal(err)
	}
	taken := w.take("")
	before := listing(t, outside)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(folder, folder+".aside")
			os.Symlink(outside, folder)
			os.WriteFile(filepath.Join(folder+".aside", "file"), []byte("raced"), 0o640)
			os.Remove(folder)
			os.Rename(folder+".aside", folder)
		}
	}()
	for round := range 30 {
		r, err := w.store.Plan(t.Context(), w.Client, taken.Checkpoint, RestoreOptions{Options: Options{Now: begin}})
		if err == nil && round%2 == 1 { // as the second try of an interrupted restore
			r, err = w.store.PlanAgain(t.Context(), w.Client, r.Before.Checkpoint, taken.Checkpoint, RestoreOptions{Options: Options{Now: begin}})
		}
		if unreadable := new(Unreadable); errors.As(err, &unreadable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		done, err := w.store.Restore(t.Context(), w.Client, r)
		if err == nil && done.IDs != taken.IDs || err != nil && !errors.Is(err, ErrDiffers) {
			t.Fatalf("%v: %v, want %v", err, done.IDs, taken.IDs)
		}
	}
	close(stop)
	<-stopped
	if after := listing(t, outside); after != before {
		t.Errorf("outside:\n%s", difference(after, before))
	}
}

// TestRestoreOfPart restores a part of the workspace: with files that the checkpoint does not contain, and with new files that must stay.
func TestRestoreOfPart(t *testing.T) {
	w := newWorld(t, DefaultBytes)
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(w.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			return "none"
		}
		return string(content)
	}
	check := func(want ...string) {
		t.Helper()
		for i := 0; i < len(want); i += 2 {
			if got := read(want[i]); got != want[i+1] {
				t.Errorf("%s contains %q, want %q", want[i], got, want[i+1])
			}
		}
	}
	write("a/one", "1")
	write("b/two", "2")
	if err := unix.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := w.take("first")
	if first.Special != 1 || first.Files != 4 || first.Git != "" {
		t.Errorf("%+v", first)
	}
	write("a/one", "changed")
	write("b/two", "changed")
	write("new", "new")
	second := w.take("second")
	if same, err := w.store.Take(t.Context(), w.Client, Options{Message: "same", Now: begin, OnlyNew: true}); err != nil || same.Checkpoint != second.Checkpoint {
		t.Errorf("a checkpoint of the same state: %+v, %v", same.Checkpoint, err)
	}
	states := []State{{}}
	for _, c := range []Taken{first, second} {
		state, err := w.store.State(c.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, state)
	}
	const different = "[{ time folder} {a/one changed file} {b/two changed file} {new added file}]"
	now, err := w.store.Present(t.Context(), w.Client, false)
	for got, want := range map[string]string{
		fmt.Sprint(Compare(states[1], states[2], nil)):        different,
		fmt.Sprint(Compare(states[1], now, nil)):              different,
		fmt.Sprint(Compare(states[2], now, nil)):              "[]",
		fmt.Sprint(Compare(states[0], states[1], Scope{"a"})): "[{a added folder} {a/one added file}]",
	} {
		if err != nil || got != want {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	w.restore(first.Checkpoint, RestoreOptions{Scope: Scope{"a"}})
	check("a/one", "1", "b/two", "changed", "new", "new")
	w.restore(first.Checkpoint, RestoreOptions{KeepNew: true})
	check("b/two", "2", "new", "new")
	w.restore(first.Checkpoint, RestoreOptions{})
	check("new", "none")
	if info, err := os.Lstat(filepath.Join(w.dir, "pipe")); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe is gone: %v", err)
	}
	if _, err := w.store.Find(99); !errors.Is(err, ErrNoCheckpoint) {
		t.Error(err)
	}
}

// TestCaps checks that the oldest checkpoints are removed when the store is too large, and that the others stay complete.
func TestCaps(t *testing.T) {
	w := newWorld(t, 300_000)
	var last Taken
	for n := range 12 {
		content := make([]byte, 40_000)
		r := rand.New(rand.NewPCG(uint64(n), 1))
		for i := range content {
			content[i] = byte(r.Uint32())
		}
		if err := os.WriteFile(filepath.Join(w.dir, "file"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		last = w.take("")
		if _, err := w.store.Trim(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.store.List()
	if err != nil || len(all) < 2 || len(all) > 7 || all[len(all)-1].IDs != last.IDs || w.store.Size() > 300_000 {
		t.Errorf("%d checkpoints, %d bytes: %v", len(all), w.store.Size(), err)
	}
	w.restore(all[0], RestoreOptions{})
	if err := os.Truncate(filepath.Join(w.dir, "file"), 1<<42); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Take(t.Context(), w.Client, Options{Now: begin}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w.store.most = 1000
	if _, err := w.store.Take(t.Context(), w.Client, Options{Now: begin}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
