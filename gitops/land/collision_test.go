package land

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

func TestLandRefusesToOverwrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old   gitopstest.Files
		user  func(w *world)
		new   gitopstest.Files
		paths []string
	}{
		"staged": {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": "u"}); w.Run("add", "a") }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"staged and put back": {gitopstest.Files{"a": "1"}, func(w *world) {
			w.Write(gitopstest.Files{"a": "u"})
			w.Run("add", "a")
			w.Write(gitopstest.Files{"a": "1"})
		}, gitopstest.Files{"a": "2"}, []string{"a"}},
		"staged the same": {gitopstest.Files{"a": "1"}, func(w *world) {
			w.Write(gitopstest.Files{"a": "2"})
			w.Run("add", "a")
			w.Write(gitopstest.Files{"a": "u"})
		}, gitopstest.Files{"a": "2"}, []string{"a"}},
		"unstaged":              {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": "u"}) }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"unstaged, removed":     {gitopstest.Files{"a": "1", "b": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": "u"}) }, gitopstest.Files{"a": gitopstest.Absent}, []string{"a"}},
		"unstaged mode":         {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": gitopstest.Execute + "1"}) }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"unstaged type":         {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": gitopstest.LinkTo + "b"}) }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"unstaged deletion":     {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": gitopstest.Absent}) }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"staged deletion":       {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("rm", "-q", "a") }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"deletion staged, kept": {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("rm", "-q", "--cached", "a") }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"untracked":             {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"b": "u"}) }, gitopstest.Files{"b": "2"}, []string{"b"}},
		"untracked, the same":   {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"b": "2"}) }, gitopstest.Files{"b": "2"}, []string{"b"}},
		"untracked link":        {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"b": gitopstest.LinkTo + "nowhere"}) }, gitopstest.Files{"b": "2"}, []string{"b"}},
		"ignored":               {gitopstest.Files{".gitignore": ".env\n"}, func(w *world) { w.Write(gitopstest.Files{".env": "secret"}) }, gitopstest.Files{".env": "2"}, []string{".env"}},
		"ignored below":         {gitopstest.Files{".gitignore": "out/\n"}, func(w *world) { w.Write(gitopstest.Files{"out/x": "u", "out/y": "u"}) }, gitopstest.Files{"out/x": "2"}, []string{"out/x"}},
		"staged as new":         {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"b": "u"}); w.Run("add", "b") }, gitopstest.Files{"b": "2"}, []string{"b"}},
		"staged as new, gone": {gitopstest.Files{"a": "1"}, func(w *world) {
			w.Write(gitopstest.Files{"b": "u"})
			w.Run("add", "b")
			w.Write(gitopstest.Files{"b": gitopstest.Absent})
		}, gitopstest.Files{"b": "2"}, []string{"b"}},
		"meant to be added":      {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"b": "u"}); w.Run("add", "-N", "b") }, gitopstest.Files{"b": "2"}, []string{"b"}},
		"file where a folder":    {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"d": "u"}) }, gitopstest.Files{"d/x": "2", "d/y": "2"}, []string{"d"}},
		"link where a folder":    {gitopstest.Files{"a/k": "1"}, func(w *world) { w.Write(gitopstest.Files{"d": gitopstest.LinkTo + "a"}) }, gitopstest.Files{"d/x": "2"}, []string{"d"}},
		"tracked folder is link": {gitopstest.Files{"d/x": "1", "e/x": "1"}, func(w *world) { w.Write(gitopstest.Files{"d": gitopstest.LinkTo + "e"}) }, gitopstest.Files{"d/x": "2"}, []string{"d", "d/x"}},
		"staged where a folder": {gitopstest.Files{"a": "1"}, func(w *world) {
			w.Write(gitopstest.Files{"d": "u"})
			w.Run("add", "d")
			w.Write(gitopstest.Files{"d": gitopstest.Absent})
		}, gitopstest.Files{"d/x": "2"}, []string{"d"}},
		"folder where a file": {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"d/u": "u", "d/e/v": "u"}) }, gitopstest.Files{"d": "2"}, []string{"d/e/v", "d/u"}},
		"more in the folder":  {gitopstest.Files{"d/t": "1"}, func(w *world) { w.Write(gitopstest.Files{"d/u": "u"}) }, gitopstest.Files{"d/t": gitopstest.Absent, "d": "2"}, []string{"d/u"}},
		"staged in the folder": {gitopstest.Files{"a": "1"}, func(w *world) {
			w.Write(gitopstest.Files{"d/u": "u"})
			w.Run("add", "d")
			w.Write(gitopstest.Files{"d": gitopstest.Absent})
		}, gitopstest.Files{"d": "2"}, []string{"d/u"}},
		"ignored in the folder":   {gitopstest.Files{".gitignore": "*.o\n"}, func(w *world) { w.Write(gitopstest.Files{"d/u.o": "u"}) }, gitopstest.Files{"d": gitopstest.LinkTo + "x"}, []string{"d/u.o"}},
		"repository in the place": {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("init", "-q", "sub") }, gitopstest.Files{"sub": "2"}, nil},
		"another repository":      {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("init", "-q", "d/sub") }, gitopstest.Files{"d/sub/.hooks/x": "2"}, []string{"d/sub"}},
		"another bare one":        {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("init", "-q", "--bare", "d/sub") }, gitopstest.Files{"d/sub/hooks/x": "2"}, []string{"d/sub"}},
		"assumed unchanged":       {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("update-index", "--assume-unchanged", "a"); w.Write(gitopstest.Files{"a": "u"}) }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"skipped by hand":         {gitopstest.Files{"a": "1"}, func(w *world) { w.Run("update-index", "--skip-worktree", "a"); w.Write(gitopstest.Files{"a": "u"}) }, gitopstest.Files{"a": "2"}, []string{"a"}},
		"skipped and removed":     {gitopstest.Files{"a": "1", "b": "1"}, func(w *world) { w.Run("update-index", "--skip-worktree", "a"); w.Write(gitopstest.Files{"a": "u"}) }, gitopstest.Files{"a": gitopstest.Absent}, []string{"a"}},
		"odd name":                {gitopstest.Files{"a": "1"}, func(w *world) { w.Write(gitopstest.Files{"n\nl \"q\" *": "u"}) }, gitopstest.Files{"n\nl \"q\" *": "2"}, []string{"n\nl \"q\" *"}},
		"unreadable": {gitopstest.Files{"a": "1"}, func(w *world) {
			w.Write(gitopstest.Files{"a": "u"})
			gitopstest.Check(w.T, os.Chmod(filepath.Join(w.Top, "a"), 0o000))
		}, gitopstest.Files{"a": "2"}, []string{"a"}},
		"several": {gitopstest.Files{"a": "1", "b": "1", "z": "1"}, func(w *world) { w.Write(gitopstest.Files{"a": "u", "n": "u"}) }, gitopstest.Files{"a": "2", "b": "2", "n": "2", "z": gitopstest.Absent}, []string{"a", "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.CommitAll(c.old)
			new := w.Built(old, c.new)
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
			w.NothingLeft()
		})
	}
}

// Git reports a file as changed if the clean filter does not restore the committed bytes. A checkout writes such a file as it is, so
// the user has not changed it, and git keeps reporting it whatever command the user types.
func TestLandOverFilesThatOnlySeemChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old  gitopstest.Files
		user func(w *world)
	}{
		"line ends":            {gitopstest.Files{".gitattributes": "*.txt text\n"}, func(*world) {}},
		"assumed unchanged":    {gitopstest.Files{".gitattributes": "*.txt text\n"}, func(w *world) { w.Run("update-index", "--assume-unchanged", "f.txt") }},
		"clean filter":         {gitopstest.Files{".gitattributes": "*.txt filter=f\n"}, func(w *world) { w.Run("config", "filter.f.clean", "tr 1 x") }},
		"untracked attributes": {gitopstest.Files{"d/a": "1"}, func(w *world) { w.Write(gitopstest.Files{".gitattributes": "*.txt text\n"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base := w.CommitAll(c.old)
			one := w.Built(base, gitopstest.Files{"f.txt": "1\r\n"})
			gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(base, one)))
			c.user(w)
			gitopstest.Check(t, os.Chtimes(filepath.Join(w.Top, "f.txt"), time.Time{}, time.Now().Add(-time.Hour)))
			rest()
			if name != "assumed unchanged" && w.Run("status", "--porcelain", "f.txt") != " M f.txt" {
				t.Fatal("git does not report the file as changed: nothing to be shown here")
			}
			two := w.Built(one, gitopstest.Files{"f.txt": "2\r\n", "other": "2"})
			gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(one, two)))
			w.landed(two)
			if got, _ := os.ReadFile(filepath.Join(w.Top, "f.txt")); string(got) != "2\r\n" {
				t.Errorf("f.txt is %q", got)
			}
			w.Write(gitopstest.Files{"f.txt": "user\r\n"})
			rest()
			three := w.Built(two, gitopstest.Files{"f.txt": "3\r\n"})
			var collision *CollisionError
			if err := Land(t.Context(), w.Repository, w.landing(two, three)); !errors.As(err, &collision) || !slices.Equal(collision.Paths, []string{"f.txt"}) {
				t.Errorf("Land over a change: %v, want a collision at f.txt", err)
			}
		})
	}
}

// Test data can look like a repository.
func TestLandIntoATrackedBareRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"d/HEAD": "1", "d/objects/x": "1", "d/refs/x": "1"})
	new := w.Built(old, gitopstest.Files{"d/objects/y": "2"})
	rest()
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); err != nil {
		t.Error(err)
	}
}

func TestLandWithManyCollisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second, user := gitopstest.Files{}, gitopstest.Files{}, gitopstest.Files{}
	for i := range 3 * gitops.PathspecLimit {
		name := "f" + string(rune('a'+i%26)) + "/" + string(rune('a'+i/26))
		first[name], second[name] = "1", "2"
		if i%10 == 0 {
			user[name] = "u"
		}
	}
	old := w.CommitAll(first)
	new := w.Built(old, second)
	w.Write(user)
	rest()
	before := w.picture()
	var collision *CollisionError
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); !errors.As(err, &collision) || !slices.Equal(collision.Paths, slices.Sorted(maps.Keys(user))) {
		t.Errorf("Land: %v, want collisions at %q", err, slices.Sorted(maps.Keys(user)))
	}
	w.picture().equals(t, before)
}

// Conflicts without an operation in progress, such as git stash pop leaves, also stop a landing of other paths,
// because git cannot merge anything into such an index.
func TestLandWithConflictsInTheIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.CommitAll(gitopstest.Files{"a": "1", "b": "1"})
	w.Write(gitopstest.Files{"a": "stashed"})
	w.Run("stash", "-q")
	old := w.CommitAll(gitopstest.Files{"a": "2"})
	_, _ = gitopstest.TryCommand(w.Top, nil, "stash", "pop", "-q")
	new := w.Built(old, gitopstest.Files{"b": "2"})
	rest()
	before := w.picture()
	var collision *CollisionError
	if err := Land(t.Context(), w.Repository, w.landing(old, new)); !errors.As(err, &collision) || !slices.Equal(collision.Paths, []string{"a"}) {
		t.Errorf("Land: %v, want a collision at a", err)
	}
	w.picture().equals(t, before)
	w.Run("checkout", "-q", "HEAD", "--", "a")
	w.land(old, new)
}

// A change of the index may belong to a checkout that has not moved HEAD yet, whatever it has changed.
func TestLandWaitsForACommandHalfWayThrough(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for later := time.Duration(0); !waits(t, name, later); later += 60 * time.Millisecond {
				if later > 5*time.Second {
					t.Fatal("no landing waits")
				}
			}
		})
	}
}

// waits reports whether a landing waits since the index, with another content of a path, is young. The index is written later than the landing
// begins: on a slow machine the landing takes a while until it looks.
func waits(t *testing.T, name string, later time.Duration) bool {
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1", "b": "1"})
	new := w.Built(old, gitopstest.Files{"a": "2"})
	w.Write(gitopstest.Files{name: "u"})
	w.Run("add", name)
	changed := time.Now()
	gitopstest.Check(t, os.Chtimes(filepath.Join(w.GitDir, "index"), changed, changed.Add(later)))
	err := Land(t.Context(), w.Repository, w.landing(old, new))
	if errors.Is(err, ErrUnfinished) {
		w.NothingLeft()
		return true
	}
	if took := time.Since(changed); later == 0 && took < stagedAge {
		t.Fatalf("Land: %v after %s, want ErrUnfinished", err, took)
	}
	return false
}

func TestLandRefusesElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user func(w *world)
		want error
	}{
		"other branch": {func(w *world) { w.Run("checkout", "-q", "-b", "other") }, ErrElsewhere},
		"detached":     {func(w *world) { w.Run("checkout", "-q", "--detach") }, ErrElsewhere},
		"unborn":       {func(w *world) { w.Run("checkout", "-q", "--orphan", "new") }, ErrElsewhere},
		"merge":        {func(w *world) { w.Run("merge", "-q", "--no-ff", "--no-commit", "side") }, ErrElsewhere},
		"bisect":       {func(w *world) { w.Run("bisect", "start") }, ErrElsewhere},
		"moved":        {func(w *world) { w.Run("commit", "-q", "--allow-empty", "-m", "mine") }, gitops.ErrRefMoved},
		"reset":        {func(w *world) { w.Run("reset", "-q", "--soft", "HEAD^") }, gitops.ErrRefMoved},
		"branch locked": {func(w *world) {
			gitopstest.Check(w.T, os.WriteFile(filepath.Join(w.GitDir, "refs/heads/main.lock"), nil, 0o644))
		}, gitops.ErrRefMoved},
		"HEAD locked": {func(w *world) { gitopstest.Check(w.T, os.WriteFile(filepath.Join(w.GitDir, "HEAD.lock"), nil, 0o644)) }, gitops.ErrRefMoved},
		"index locked": {func(w *world) {
			gitopstest.Check(w.T, os.WriteFile(filepath.Join(w.GitDir, "index.lock"), []byte("DIRC"), 0o644))
		}, ErrIndexLocked},
		"empty lock":     {func(w *world) { gitopstest.Check(w.T, os.WriteFile(filepath.Join(w.GitDir, "index.lock"), nil, 0o644)) }, ErrIndexLocked},
		"airlock's refs": {func(w *world) { w.Run("update-ref", "refs/airlock/7f3a/promoted", "HEAD") }, gitops.ErrRefMoved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			base := w.CommitAll(gitopstest.Files{"z": "1"})
			old := w.CommitAll(gitopstest.Files{"a": "1"})
			w.Run("branch", "side", string(w.Built(base, gitopstest.Files{"s": "1"})))
			new := w.Built(old, gitopstest.Files{"a": "2"})
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
			w.NothingLeft()
		})
	}
}

func TestLandOnADryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a": "1"})
	new := w.Built(old, gitopstest.Files{"a": "2"})
	before, landing := w.picture(), w.landing(old, new)
	w.DryRun()
	if err := Land(t.Context(), w.Repository, landing); !errors.Is(err, gitops.ErrDryRun) {
		t.Errorf("Land: %v, want ErrDryRun", err)
	}
	w.picture().equals(t, before)
}

// A failed smudge filter that is required does not cause endless retries, and changes nothing.
func TestLandWithAFailingFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{".gitattributes": "*.x filter=f\n", "b": "1"})
	w.Run("config", "filter.f.smudge", "false")
	w.Run("config", "filter.f.required", "true")
	new := w.Built(old, gitopstest.Files{"a.x": "2", "b": "2"})
	before := w.picture()
	err := Land(t.Context(), w.Repository, w.landing(old, new))
	if err == nil || errors.Is(err, ErrUnfinished) || errors.Is(err, ErrElsewhere) {
		t.Errorf("Land: %v, want an error to be shown", err)
	}
	w.picture().equals(t, before)
	w.NothingLeft()
}
