package land

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

func TestLandRefusesToOverwrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old   files
		user  func(w *world)
		new   files
		paths []string
	}{
		"staged":                  {files{"a": "1"}, func(w *world) { w.write(files{"a": "u"}); w.git("add", "a") }, files{"a": "2"}, []string{"a"}},
		"staged and put back":     {files{"a": "1"}, func(w *world) { w.write(files{"a": "u"}); w.git("add", "a"); w.write(files{"a": "1"}) }, files{"a": "2"}, []string{"a"}},
		"staged the same":         {files{"a": "1"}, func(w *world) { w.write(files{"a": "2"}); w.git("add", "a"); w.write(files{"a": "u"}) }, files{"a": "2"}, []string{"a"}},
		"unstaged":                {files{"a": "1"}, func(w *world) { w.write(files{"a": "u"}) }, files{"a": "2"}, []string{"a"}},
		"unstaged, removed":       {files{"a": "1", "b": "1"}, func(w *world) { w.write(files{"a": "u"}) }, files{"a": absent}, []string{"a"}},
		"unstaged mode":           {files{"a": "1"}, func(w *world) { w.write(files{"a": execute + "1"}) }, files{"a": "2"}, []string{"a"}},
		"unstaged type":           {files{"a": "1"}, func(w *world) { w.write(files{"a": linkTo + "b"}) }, files{"a": "2"}, []string{"a"}},
		"unstaged deletion":       {files{"a": "1"}, func(w *world) { w.write(files{"a": absent}) }, files{"a": "2"}, []string{"a"}},
		"staged deletion":         {files{"a": "1"}, func(w *world) { w.git("rm", "-q", "a") }, files{"a": "2"}, []string{"a"}},
		"deletion staged, kept":   {files{"a": "1"}, func(w *world) { w.git("rm", "-q", "--cached", "a") }, files{"a": "2"}, []string{"a"}},
		"untracked":               {files{"a": "1"}, func(w *world) { w.write(files{"b": "u"}) }, files{"b": "2"}, []string{"b"}},
		"untracked, the same":     {files{"a": "1"}, func(w *world) { w.write(files{"b": "2"}) }, files{"b": "2"}, []string{"b"}},
		"untracked link":          {files{"a": "1"}, func(w *world) { w.write(files{"b": linkTo + "nowhere"}) }, files{"b": "2"}, []string{"b"}},
		"ignored":                 {files{".gitignore": ".env\n"}, func(w *world) { w.write(files{".env": "secret"}) }, files{".env": "2"}, []string{".env"}},
		"ignored below":           {files{".gitignore": "out/\n"}, func(w *world) { w.write(files{"out/x": "u", "out/y": "u"}) }, files{"out/x": "2"}, []string{"out/x"}},
		"staged as new":           {files{"a": "1"}, func(w *world) { w.write(files{"b": "u"}); w.git("add", "b") }, files{"b": "2"}, []string{"b"}},
		"staged as new, gone":     {files{"a": "1"}, func(w *world) { w.write(files{"b": "u"}); w.git("add", "b"); w.write(files{"b": absent}) }, files{"b": "2"}, []string{"b"}},
		"meant to be added":       {files{"a": "1"}, func(w *world) { w.write(files{"b": "u"}); w.git("add", "-N", "b") }, files{"b": "2"}, []string{"b"}},
		"file where a folder":     {files{"a": "1"}, func(w *world) { w.write(files{"d": "u"}) }, files{"d/x": "2", "d/y": "2"}, []string{"d"}},
		"link where a folder":     {files{"a/k": "1"}, func(w *world) { w.write(files{"d": linkTo + "a"}) }, files{"d/x": "2"}, []string{"d"}},
		"tracked folder is link":  {files{"d/x": "1", "e/x": "1"}, func(w *world) { w.write(files{"d": linkTo + "e"}) }, files{"d/x": "2"}, []string{"d", "d/x"}},
		"staged where a folder":   {files{"a": "1"}, func(w *world) { w.write(files{"d": "u"}); w.git("add", "d"); w.write(files{"d": absent}) }, files{"d/x": "2"}, []string{"d"}},
		"folder where a file":     {files{"a": "1"}, func(w *world) { w.write(files{"d/u": "u", "d/e/v": "u"}) }, files{"d": "2"}, []string{"d/e/v", "d/u"}},
		"more in the folder":      {files{"d/t": "1"}, func(w *world) { w.write(files{"d/u": "u"}) }, files{"d/t": absent, "d": "2"}, []string{"d/u"}},
		"staged in the folder":    {files{"a": "1"}, func(w *world) { w.write(files{"d/u": "u"}); w.git("add", "d"); w.write(files{"d": absent}) }, files{"d": "2"}, []string{"d/u"}},
		"ignored in the folder":   {files{".gitignore": "*.o\n"}, func(w *world) { w.write(files{"d/u.o": "u"}) }, files{"d": linkTo + "x"}, []string{"d/u.o"}},
		"repository in the place": {files{"a": "1"}, func(w *world) { w.git("init", "-q", "sub") }, files{"sub": "2"}, nil},
		"assumed unchanged":       {files{"a": "1"}, func(w *world) { w.git("update-index", "--assume-unchanged", "a"); w.write(files{"a": "u"}) }, files{"a": "2"}, []string{"a"}},
		"skipped by hand":         {files{"a": "1"}, func(w *world) { w.git("update-index", "--skip-worktree", "a"); w.write(files{"a": "u"}) }, files{"a": "2"}, []string{"a"}},
		"skipped and removed":     {files{"a": "1", "b": "1"}, func(w *world) { w.git("update-index", "--skip-worktree", "a"); w.write(files{"a": "u"}) }, files{"a": absent}, []string{"a"}},
		"odd name":                {files{"a": "1"}, func(w *world) { w.write(files{"n\nl \"q\" *": "u"}) }, files{"n\nl \"q\" *": "2"}, []string{"n\nl \"q\" *"}},
		"unreadable":              {files{"a": "1"}, func(w *world) { w.write(files{"a": "u"}); check(w.t, os.Chmod(filepath.Join(w.Top, "a"), 0o000)) }, files{"a": "2"}, []string{"a"}},
		"several":                 {files{"a": "1", "b": "1", "z": "1"}, func(w *world) { w.write(files{"a": "u", "n": "u"}) }, files{"a": "2", "b": "2", "n": "2", "z": absent}, []string{"a", "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.commit(c.old)
			new := w.built(old, c.new)
			c.user(w)
			rest()
			before := w.picture()
			err := Land(t.Context(), w.Repository, w.landing(old, new))
			var collision *CollisionError
			if !errors.As(err, &collision) {
				t.Fatalf("Land: %v, want a collision", err)
			}
			if c.paths != nil && !slices.Equal(collision.Paths, c.paths) {
				t.Errorf("paths %q, want %q", collision.Paths, c.paths)
			}
			w.picture().equals(t, before)
			w.nothingLeft()
		})
	}
}

func TestLandWithManyCollisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second, user := files{}, files{}, files{}
	for i := range 3 * gitops.PathspecLimit {
		name := "f" + string(rune('a'+i%26)) + "/" + string(rune('a'+i/26))
		first[name], second[name] = "1", "2"
		if i%10 == 0 {
			user[name] = "u"
		}
	}
	old := w.commit(first)
	new := w.built(old, second)
	w.write(user)
	rest()
	before := w.picture()
	var collision *CollisionError
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); !errors.As(err, &collision) || !slices.Equal(collision.Paths, sortedNames(user)) {
		t.Errorf("Land: %v, want collisions at %q", err, sortedNames(user))
	}
	w.picture().equals(t, before)
}

// What has conflicts without an operation in progress (git stash pop leaves that) stops a landing of other paths
// too: git can merge nothing into such an index.
func TestLandWithConflictsInTheIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit(files{"a": "1", "b": "1"})
	w.write(files{"a": "stashed"})
	w.git("stash", "-q")
	old := w.commit(files{"a": "2"})
	_, _ = tryCommand(w.Top, nil, "stash", "pop", "-q")
	new := w.built(old, files{"b": "2"})
	rest()
	before := w.picture()
	var collision *CollisionError
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); !errors.As(err, &collision) || !slices.Equal(collision.Paths, []string{"a"}) {
		t.Errorf("Land: %v, want a collision at a", err)
	}
	w.picture().equals(t, before)
	w.git("checkout", "-q", "HEAD", "--", "a")
	w.land(old, new)
}

// Right after a change of the index it may be a checkout that has not moved HEAD yet, whatever it has changed.
func TestLandWaitsForACommandHalfWayThrough(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.commit(files{"a": "1", "b": "1"})
			w.write(files{name: "u"})
			w.git("add", name)
			w.waits(old, w.built(old, files{"a": "2"}))
		})
	}
}

// waits wants a landing to wait while the index is young.
func (w *world) waits(old, new gitops.OID) {
	t := w.t
	for range 100 {
		changed := time.Now()
		check(t, os.Chtimes(filepath.Join(w.GitDir, "index"), changed, changed))
		err := Land(t.Context(), w.Repository, w.landing(old, new))
		if errors.Is(err, ErrUnsettled) {
			w.nothingLeft()
			return
		}
		if took := time.Since(changed); took < settle {
			t.Fatalf("Land: %v after %s, want ErrUnsettled", err, took)
		}
		// It may have looked too late: the machine has other things to do.
	}
	t.Error("no landing ends in time")
}

func TestLandRefusesElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user func(w *world)
		want error
	}{
		"other branch":   {func(w *world) { w.git("checkout", "-q", "-b", "other") }, ErrElsewhere},
		"detached":       {func(w *world) { w.git("checkout", "-q", "--detach") }, ErrElsewhere},
		"unborn":         {func(w *world) { w.git("checkout", "-q", "--orphan", "new") }, ErrElsewhere},
		"merge":          {func(w *world) { w.git("merge", "-q", "--no-ff", "--no-commit", "side") }, ErrElsewhere},
		"bisect":         {func(w *world) { w.git("bisect", "start") }, ErrElsewhere},
		"moved":          {func(w *world) { w.git("commit", "-q", "--allow-empty", "-m", "mine") }, gitops.ErrRefMoved},
		"reset":          {func(w *world) { w.git("reset", "-q", "--soft", "HEAD^") }, gitops.ErrRefMoved},
		"branch locked":  {func(w *world) { check(w.t, os.WriteFile(filepath.Join(w.GitDir, "refs/heads/main.lock"), nil, 0o644)) }, gitops.ErrRefMoved},
		"HEAD locked":    {func(w *world) { check(w.t, os.WriteFile(filepath.Join(w.GitDir, "HEAD.lock"), nil, 0o644)) }, gitops.ErrRefMoved},
		"index locked":   {func(w *world) { check(w.t, os.WriteFile(filepath.Join(w.GitDir, "index.lock"), []byte("DIRC"), 0o644)) }, ErrIndexLocked},
		"empty lock":     {func(w *world) { check(w.t, os.WriteFile(filepath.Join(w.GitDir, "index.lock"), nil, 0o644)) }, ErrIndexLocked},
		"airlock's refs": {func(w *world) { w.git("update-ref", "refs/airlock/7f3a/promoted", "HEAD") }, gitops.ErrRefMoved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base := w.commit(files{"z": "1"})
			old := w.commit(files{"a": "1"})
			w.git("branch", "side", string(w.built(base, files{"s": "1"})))
			new := w.built(old, files{"a": "2"})
			landing := w.landing(old, new)
			c.user(w)
			rest()
			before := w.picture()
			lock, _ := os.ReadFile(filepath.Join(w.GitDir, "index.lock"))
			if err := Land(t.Context(), w.Repository, landing); !errors.Is(err, c.want) {
				t.Errorf("Land: %v, want %v", err, c.want)
			}
			w.picture().equals(t, before)
			if now, _ := os.ReadFile(filepath.Join(w.GitDir, "index.lock")); string(now) != string(lock) {
				t.Errorf("the lock is %q, was %q", now, lock)
			}
			if name == "index locked" || name == "HEAD locked" || name == "branch locked" || name == "empty lock" {
				return
			}
			w.nothingLeft()
		})
	}
}

func TestLandOnADryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{"a": "1"})
	new := w.built(old, files{"a": "2"})
	before, landing := w.picture(), w.landing(old, new)
	w.DryRun()
	if err := Land(t.Context(), w.Repository, landing); !errors.Is(err, gitops.ErrDryRun) {
		t.Errorf("Land: %v, want ErrDryRun", err)
	}
	w.picture().equals(t, before)
}

// A smudge filter that has to work and does not is no reason to try again for ever, and changes nothing.
func TestLandWithAFailingFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.commit(files{".gitattributes": "*.x filter=f\n", "b": "1"})
	w.git("config", "filter.f.smudge", "false")
	w.git("config", "filter.f.required", "true")
	new := w.built(old, files{"a.x": "2", "b": "2"})
	before := w.picture()
	err := Land(t.Context(), w.Repository, w.landing(old, new))
	if err == nil || errors.Is(err, ErrUnsettled) || errors.Is(err, ErrElsewhere) {
		t.Errorf("Land: %v, want an error to be shown", err)
	}
	w.picture().equals(t, before)
	w.nothingLeft()
}
