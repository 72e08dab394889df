package land

import (
	"bytes"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

// After a landing, the entries of an index have the stat data of their files, in each version of the format, and git reads no file again.
func TestStampedIndex(t *testing.T) {
	t.Parallel()
	for _, init := range [][]string{nil, {"--object-format=sha256"}} {
		for _, version := range []string{"2", "3", "4"} {
			w := &world{gitopstest.New(t, init...)}
			files, next := gitopstest.Files{"dropped": "d", strings.Repeat("long", 50): "l"}, gitopstest.Files{"dropped": gitopstest.Absent, "new/er": "n", "link": gitopstest.LinkTo + "a"}
			for i := range 300 {
				name := strings.Repeat("d", i%3) + "/f" + strconv.Itoa(i)
				if files["a"+name] = strconv.Itoa(i); i%7 == 0 {
					next["a"+name] = "changed"
				}
			}
			old := w.CommitAll(files)
			new := w.Built(old, next)
			w.Run("update-index", "--index-version", version)
			if version == "3" {
				w.Write(gitopstest.Files{"intended": "x"})
				w.Run("add", "-N", "intended")
				gitopstest.Check(t, os.Chtimes(filepath.Join(w.GitDir, "index"), time.Time{}, time.Now().Add(-time.Second)))
			}
			changes, err := w.Diff(t.Context(), old, new)
			gitopstest.Check(t, err)
			if x := readIndex(filepath.Join(w.GitDir, "index"), w.Format, changes); x == nil || len(x.at) != len(changes) || x.at["a/f0"] == 0 {
				t.Errorf("%v, version %s: the index was not read", init, version)
			}
			gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(old, new)))
			if got := w.Run("diff-files"); got != "" && version != "3" || strings.Count(got, "\n") > 0 {
				t.Errorf("%v, version %s: git must look at\n%s", init, version, got)
			}
			if got := w.Run("diff-index", "--cached", "--name-only", string(new)); got != "" && got != "intended" {
				t.Errorf("%v, version %s: staged\n%s", init, version, got)
			}
			w.Run("fsck", "--strict")
		}
	}
}

// A file that changes while a landing puts it into its place is not taken for the landed one.
func TestStampOfAChangedFile(t *testing.T) {
	t.Parallel()
	w := &world{gitopstest.New(t)}
	old := w.CommitAll(gitopstest.Files{"a": "1\n", "b": "1\n"})
	new := w.Built(old, gitopstest.Files{"a": "2\n", "b": "2\n"})
	w.Run("reset", "-q", "--hard", string(new))
	changes, err := w.Diff(t.Context(), old, new)
	gitopstest.Check(t, err)
	placed := lstatAll(w.Repository, changes)
	w.Run("update-index", "--cacheinfo", "100644,"+string(changes[0].New.OID)+",a", "--cacheinfo", "100644,"+string(changes[1].New.OID)+",b")
	w.Write(gitopstest.Files{"a": "3\n"})
	gitopstest.Check(t, os.Chtimes(filepath.Join(w.Top, "a"), time.Time{}, time.Now().Add(-time.Hour)))
	index := filepath.Join(w.GitDir, "index")
	gitopstest.Check(t, readIndex(index, w.Format, changes).stamp(w.Repository, index, changes, placed))
	if got := w.Run("diff-files", "--name-only"); got != "a" {
		t.Errorf("changed: %q", got)
	}
}

// An edit in the second in which the index was written, of the same size, stays visible after a landing of other files.
func TestEditInTheSecondOfTheIndex(t *testing.T) {
	t.Parallel()
	// The second is a file system whose times have no fractions of a second.
	for part, later := range map[time.Duration]time.Duration{5 * time.Millisecond: 0, 0: 700 * time.Millisecond} {
		w := &world{gitopstest.New(t)}
		w.Run("config", "core.trustctime", "false")
		old := w.CommitAll(gitopstest.Files{"a": "1\n", "edited": "1\n"})
		new := w.Built(old, gitopstest.Files{"a": "2\n"})
		edited, index := filepath.Join(w.Top, "edited"), filepath.Join(w.GitDir, "index")
		then := time.Now().Add(-time.Hour).Truncate(time.Second).Add(part)
		gitopstest.Check(t, os.Chtimes(edited, then, then))
		w.Run("update-index", "--refresh")
		gitopstest.Check(t, os.Chtimes(index, then, then.Add(later)))
		gitopstest.Check(t, os.WriteFile(edited, []byte("2\n"), 0o644))
		gitopstest.Check(t, os.Chtimes(edited, then, then))
		gitopstest.Check(t, Land(t.Context(), w.Repository, w.landing(old, new)))
		if got := w.Run("diff-files", "--name-only"); got != "edited" {
			t.Errorf("changed: %q", got)
		}
	}
}

// Damaged indexes are left to git.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	w := &world{gitopstest.New(t)}
	w.CommitAll(gitopstest.Files{"a": "1\n", "b/c": "1\n", "b/d": "2\n"})
	name, changes, cases := filepath.Join(t.TempDir(), "index"), []gitops.Change{{Path: "a"}, {Path: "b/d"}}, 1000
	if testing.Short() {
		cases = 200
	}
	for _, version := range []string{"2", "4"} {
		w.Run("update-index", "--index-version", version)
		whole, err := os.ReadFile(filepath.Join(w.GitDir, "index"))
		gitopstest.Check(t, err)
		for i := range cases {
			damaged := bytes.Clone(whole)
			random := rand.New(rand.NewSource(int64(i)))
			for range 1 + random.Intn(3) {
				damaged[random.Intn(len(damaged))] = byte(random.Intn(256))
			}
			damaged = damaged[:len(damaged)-random.Intn(2)*random.Intn(len(damaged))]
			gitopstest.Check(t, os.WriteFile(name, damaged, 0o600))
			if x := readIndex(name, "sha1", changes); x != nil {
				for _, c := range changes {
					x.is(c.Path, gitops.Entry{Mode: gitops.ModeFile, OID: w.At("HEAD")})
				}
			}
		}
	}
}

// The entries of a split index are in a second file, so that only git reads it.
func TestSplitIndexIsLeftToGit(t *testing.T) {
	t.Parallel()
	w := &world{gitopstest.New(t)}
	w.CommitAll(gitopstest.Files{"a": "1\n"})
	index, changes := filepath.Join(w.GitDir, "index"), []gitops.Change{{Path: "a"}}
	if readIndex(index, "sha1", changes) == nil {
		t.Error("an index was not read")
	}
	w.Run("update-index", "--split-index")
	if readIndex(index, "sha1", changes) != nil {
		t.Errorf("a split index was read: %s", w.Run("ls-files", "--debug"))
	}
}

// The index after a landing has exactly the entries of its commit, and the trees that git remembers in it are right: git writes the tree
// of the commit from it.
func TestEnteredIndex(t *testing.T) {
	t.Parallel()
	seeds := 24
	if testing.Short() {
		seeds = 12 // each combination of the settings once
	}
	for seed := range seeds {
		random := rand.New(rand.NewSource(int64(seed)))
		w := &world{gitopstest.New(t, "--object-format="+[]string{"sha1", "sha256"}[seed%2])}
		w.Run("config", "index.threads", []string{"1", "4"}[seed/2%2]) // with the positions of entries
		name := func() string {
			return strings.Repeat(string(rune('a'+random.Intn(3)))+"/", random.Intn(4)) + strings.Repeat("f.", random.Intn(5)) + "f-" + strconv.Itoa(random.Intn(30))
		}
		files := gitopstest.Files{"kept": "k", ".gitattributes": "*.0 text\n"}
		for range 60 {
			files[name()] = strconv.Itoa(random.Int())
		}
		at, entered, whole := w.CommitAll(files), 0, 0
		for range 5 {
			next, there := gitopstest.Files{}, strings.Fields(w.Run("ls-files", "[abf]*"))
			for range random.Intn(12) {
				next[name()] = strconv.Itoa(random.Int())
			}
			for range random.Intn(6) {
				next[there[random.Intn(len(there))]] = gitopstest.Absent
			}
			before := at
			at = w.Built(before, next)
			if random.Intn(2) == 0 {
				w.Run("write-tree") // with all trees
			}
			changes, err := w.Diff(t.Context(), before, at)
			gitopstest.Check(t, err)
			request, l := w.landing(before, at), &landing{}
			if seed%3 > 0 { // the trees of folders are known
				request.Inspector = quarantine.Inspect(t.Context(), w.Git)
				l = &landing{Landing: request}
				_, err := l.diff(t.Context())
				gitopstest.Check(t, err)
			}
			if x := readIndex(filepath.Join(w.GitDir, "index"), w.Format, changes); x.enter(changes, l.treesOf(t.Context())) {
				entered++
				if x.has(l.trees[1]) {
					whole++
				}
			}
			gitopstest.Check(t, Land(t.Context(), w.Repository, request))
			w.landed(at)
			if got := w.Run("status", "--porcelain"); got != "" {
				t.Fatalf("seed %d: git status says\n%s", seed, got)
			}
			if x := readIndex(filepath.Join(w.GitDir, "index"), w.Format, nil); l.trees[0] != l.trees[1] && x.has(l.trees[0]) {
				t.Fatalf("seed %d: the index has the tree from before", seed)
			}
			if request.Inspector != nil {
				gitopstest.Check(t, request.Inspector.Close())
			}
			if got, want := w.Run("ls-files", "-s"), w.Run("ls-tree", "-r", "--format=%(objectmode) %(objectname) 0%x09%(path)", string(at)); got != want {
				t.Fatalf("seed %d: entries\n%s\nwant\n%s", seed, got, want)
			}
			if got, want := w.Run("write-tree"), w.Run("rev-parse", string(at)+"^{tree}"); got != want {
				t.Fatalf("seed %d: the index has the tree %s, want %s", seed, got, want)
			}
			w.Run("fsck", "--strict")
		}
		if entered < 4 {
			t.Errorf("seed %d: %d of 5 changes could be made in the index", seed, entered)
		}
		if t.Logf("seed %d: with all trees after %d of 5", seed, whole); seed%3 == 0 && whole > 0 {
			t.Errorf("seed %d: trees from nowhere", seed)
		}
	}
}
