package land

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestMain is also the helper of the kill tests: with AIRLOCK_TEST_LAND it makes the landing that the variable
// describes.
func TestMain(m *testing.M) {
	if request := os.Getenv("AIRLOCK_TEST_LAND"); request != "" {
		os.Exit(landHelper(request))
	}
	gitopstest.Main(m)
}

// helperRequest is the request of a kill test to its helper.
type helperRequest struct {
	Top     string
	Landing Landing
}

func landHelper(request string) int {
	var h helperRequest
	if err := json.Unmarshal([]byte(request), &h); err != nil {
		panic(err)
	}
	r, err := gitops.Open(context.Background(), h.Top)
	if err == nil {
		err = Land(context.Background(), r, h.Landing)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// world is an outer repository for landings.
type world struct{ *gitopstest.Repo }

func newWorld(t testing.TB, initArgs ...string) *world {
	t.Helper()
	return &world{gitopstest.New(t, initArgs...)}
}

func openWorld(t testing.TB, top string) *world {
	t.Helper()
	return &world{gitopstest.Open(t, top)}
}

// rest waits until the index is old enough to count, see stagedAge.
func rest() { time.Sleep(stagedAge + 10*time.Millisecond) }

func (w *world) landing(old, new gitops.OID) Landing {
	return Landing{Branch: "refs/heads/main", Old: old, New: new, Message: "airlock: test", Dir: w.State,
		Refs: []gitops.RefUpdate{{Ref: "refs/airlock/7f3a/promoted", Old: w.At("refs/airlock/7f3a/promoted"), New: new}}}
}

// land makes a landing and checks that the result equals a checkout.
func (w *world) land(old, new gitops.OID) {
	w.T.Helper()
	if err := Land(w.T.Context(), w.Repository, w.landing(old, new)); err != nil {
		w.T.Fatal(err)
	}
	w.landed(new)
	w.wantStatus("")
}

// wantStatus compares the lines of git status.
func (w *world) wantStatus(want string) {
	w.T.Helper()
	if got := w.Run("status", "--porcelain"); got != want {
		w.T.Errorf("git status says\n%s\nwant\n%s", got, want)
	}
}

// landed checks that branch and index are at a commit and no other files are left.
func (w *world) landed(at gitops.OID) {
	w.T.Helper()
	if got := gitops.OID(w.Run("rev-parse", "HEAD")); got != at {
		w.T.Errorf("HEAD is %s, want %s", got, at)
	}
	if got := w.At("refs/airlock/7f3a/promoted"); got != at {
		w.T.Errorf("promoted is %s, want %s", got, at)
	}
	w.NothingLeft()
	w.Run("fsck", "--no-dangling")
}

// picture is the user's part of a repository: working tree and index byte for byte, refs and HEAD.
type picture map[string]string

func (w *world) picture() picture {
	w.T.Helper()
	p := w.tree()
	index, err := os.ReadFile(filepath.Join(w.GitDir, "index"))
	gitopstest.Check(w.T, err)
	p["[index]"] = string(index)
	p["[refs]"] = w.Run("for-each-ref")
	head, err := os.ReadFile(filepath.Join(w.GitDir, "HEAD"))
	gitopstest.Check(w.T, err)
	p["[HEAD]"] = string(head)
	return p
}

// tree is the content of the working tree, byte for byte.
func (w *world) tree() picture {
	w.T.Helper()
	p := picture{}
	gitopstest.Check(w.T, filepath.WalkDir(w.Top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.Top, name)
		if rel == ".git" && d.IsDir() {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		content, err := readAny(name, info)
		p[rel] = fmt.Sprint(info.Mode(), " ", content)
		return err
	}))
	return p
}

func readAny(name string, info fs.FileInfo) (string, error) {
	if info.Mode()&fs.ModeSymlink != 0 {
		return os.Readlink(name)
	}
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrPermission) { // not for us to read; then nobody wrote it either if its times are the same
		return fmt.Sprint("unreadable ", info.Size(), info.ModTime()), nil
	}
	return string(content), err
}

func (p picture) equals(t testing.TB, want picture) {
	t.Helper()
	for name := range want {
		if p[name] != want[name] {
			t.Errorf("%q is %.200q, want %.200q", name, p[name], want[name])
		}
	}
	for name := range p {
		if _, ok := want[name]; !ok {
			t.Errorf("%q is there and should not be: %.200q", name, p[name])
		}
	}
}
