package replay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/promote/record"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

// names returns the object names in the output of git.
func names(text string) (list []gitops.OID) {
	for _, name := range strings.Fields(text) {
		list = append(list, gitops.OID(name))
	}
	return list
}

// recorded returns a record of commits as a run makes it, with the commits' mails.
func recorded(t *testing.T, w *gitopstest.Repo, before gitops.OID, commits []gitops.OID) record.Run {
	t.Helper()
	m := record.Manifest{Session: "20261125T100000Z-7f3a", ID: "7f3a", Run: 1, Kind: record.Direct, Started: time.Unix(1, 0), Ended: time.Unix(2, 0), Status: record.Completed,
		Outer: record.Range{Before: before}, Landed: len(commits), Parents: map[gitops.OID][]gitops.OID{}, Absent: map[string]string{}}
	for _, name := range record.Names() {
		m.Absent[name] = "not in this test"
	}
	var lines []record.Commit
	var patch strings.Builder
	for _, c := range commits {
		lines = append(lines, record.Commit{State: record.Landed, Inner: c, Outer: c, Tree: gitops.OID(w.Run("rev-parse", string(c)+"^{tree}")), Subject: gitops.Text(w.Run("log", "-1", "--format=%s", string(c)))})
		m.Parents[c] = names(w.Run("log", "-1", "--format=%P", string(c)))
		patch.WriteString(w.Run("-c", "diff.suppressBlankEmpty=false", "log", "-1", "--no-color", "--encoding=UTF-8", "--format=email", "--patch-with-stat", "--full-index", "--binary",
			"--diff-merges=first-parent", "--no-renames", string(c)) + "\n")
	}
	r, err := record.New(m, map[string][]byte{record.CommitsName: record.EncodeCommits(lines), record.ChangesName: []byte(patch.String())})
	gitopstest.Check(t, err)
	return r
}

// cloned returns a clone that has the commits of a branch only.
func cloned(t *testing.T, w *gitopstest.Repo, branch string) *gitopstest.Repo {
	t.Helper()
	top := filepath.Join(t.TempDir(), "clone")
	w.Run("clone", "-q", "--no-local", "--single-branch", "-b", branch, w.Top, top)
	return gitopstest.Open(t, top)
}

// history makes random commits on a branch, also merges, and returns them, parents first.
func history(w *gitopstest.Repo, r *rand.Rand) (before gitops.OID, all []gitops.OID) {
	f := gitopstest.Files{}
	for i := range 6 {
		f[fmt.Sprintf("d%d/f", i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 30)
	}
	before = w.CommitAll(f)
	w.Run("branch", "before")
	for range 4 + r.IntN(8) {
		if r.IntN(4) == 0 && len(all) > 1 {
			w.Run("checkout", "-q", "-b", fmt.Sprint("side", len(all)), string(all[r.IntN(len(all)-1)]))
			w.CommitAll(gitopstest.Files{fmt.Sprint("side", len(all)): fmt.Sprint(r.IntN(9))})
			w.Run("checkout", "-q", "-")
			w.Run("merge", "-q", "--no-edit", "-s", "ours", fmt.Sprint("side", len(all)))
		} else {
			w.CommitAll(change(r))
			w.Run("commit", "-q", "--amend", "--allow-empty", "-m", message(r))
		}
		all = names(w.Run("rev-list", "--topo-order", "--reverse", "HEAD", "^before"))
	}
	return before, all
}

func change(r *rand.Rand) gitopstest.Files {
	path := fmt.Sprintf("d%d/f", r.IntN(6))
	switch r.IntN(5) {
	case 0:
		return gitopstest.Files{path: gitopstest.Absent, fmt.Sprint("new", r.IntN(99)): "-- \n--\n---\n"}
	case 1:
		return gitopstest.Files{"binary": fmt.Sprint("\x00\xff", r.IntN(1e6))}
	case 2:
		return gitopstest.Files{fmt.Sprint("link", r.IntN(99)): gitopstest.LinkTo + "/etc/passwd", fmt.Sprint("x", r.IntN(99)): gitopstest.Execute + "x"}
	}
	return gitopstest.Files{path: strings.Repeat(fmt.Sprintf("line %d\r\n", r.IntN(99)), r.IntN(30)) + "no end"}
}

func message(r *rand.Rand) string {
	return []string{"plain", "[x] brackets\n\nFrom: Mallory <m@example.org>\n\ntext", "a\n\n---\n x | 1 +\n 1 file changed\n\ndiff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x",
		"caf\u00e9 \u202e", "From " + strings.Repeat("1", 40) + " Mon Sep 17 00:00:00 2001\n\nFrom " + strings.Repeat("2", 40) + " Mon Sep 17 00:00:00 2001"}[r.IntN(5)]
}

// TestRandomHistories makes random histories again: in their repository with the same names, and in a clone that has nothing of
// them with the same trees.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		w := gitopstest.New(t)
		before, commits := history(w, r)
		run := recorded(t, w, before, commits)
		for _, where := range []*gitopstest.Repo{w, cloned(t, w, "before")} {
			got, err := Run(t.Context(), Request{Repo: where.Repository, Run: run, Committer: "C <c@example.org>"}, "copy")
			if err != nil || got.State() != Same || len(got.Commits) != len(commits) {
				t.Fatalf("seed %d: %+v, %v", seed, got, err)
			}
			if where == w && got.Tip() != commits[len(commits)-1] {
				t.Errorf("seed %d: the last commit is %s", seed, got.Tip())
			}
			shape := "--format=%T %an %ae %ad"
			if a, b := where.Run("log", "--topo-order", shape, "copy"), w.Run("log", "--topo-order", shape); a != b {
				t.Errorf("seed %d: %s\nwant %s", seed, a, b)
			}
			where.Run("fsck", "--strict", "--no-dangling")
			if _, err := os.Lstat(filepath.Join(where.GitDir, "airlock-replay")); err == nil {
				t.Error("the workshop is left")
			}
		}
	}
}

// TestOnto compares commits on another base with what git cherry-pick makes of them.
func TestOnto(t *testing.T) {
	t.Parallel()
	merged, conflicts := 0, 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 8))
		w := gitopstest.New(t)
		base := w.CommitAll(gitopstest.Files{"a": strings.Repeat("a\n", 20), "b": strings.Repeat("b\n", 20)})
		edit := func(line int, text string) gitops.OID {
			lines := strings.Split(strings.Repeat("a\n", 20), "\n")
			lines[line] = text
			return w.CommitAll(gitopstest.Files{"a": strings.Join(lines, "\n"), text: text})
		}
		commit := edit(r.IntN(20), "agent")
		run := recorded(t, w, base, []gitops.OID{commit})
		w.Run("checkout", "-q", "-b", "other", string(base))
		onto := edit(r.IntN(20), "user")
		got, err := Run(t.Context(), Request{Repo: w.Repository, Run: run, Onto: onto, Committer: "C <c@example.org>"}, "copy")
		gitopstest.Check(t, err)
		_, failed := gitopstest.TryCommand(w.Top, nil, "cherry-pick", string(commit))
		switch {
		case failed != nil && got.State() == Conflict && slices.Equal(got.Commits[0].Paths, []string{"a"}):
			conflicts++
			if _, err := gitopstest.TryCommand(w.Top, nil, "rev-parse", "-q", "--verify", "copy"); err == nil {
				t.Errorf("seed %d: there is a branch", seed)
			}
		case failed == nil && got.State() == Merged && w.Run("rev-parse", "copy^{tree}") == w.Run("rev-parse", "HEAD^{tree}"):
			merged++
		default:
			t.Errorf("seed %d: %+v, and cherry-pick: %v", seed, got, failed)
		}
	}
	if merged == 0 || conflicts == 0 {
		t.Errorf("%d merged, %d conflicts", merged, conflicts)
	}
}

// TestForgedRecord makes again what a forged record names: other trees, a private file, a path that git reads.
func TestForgedRecord(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	before := w.CommitAll(gitopstest.Files{"a": "1\n"})
	w.Run("branch", "before")
	commit := w.CommitAll(gitopstest.Files{"a": "2\n"})
	forge := func(tree gitops.OID, patch string) record.Run {
		run := recorded(t, w, before, []gitops.OID{commit})
		run.Files[record.CommitsName] = record.EncodeCommits([]record.Commit{{State: record.Landed, Outer: commit, Tree: tree}})
		if patch != "" {
			text := string(run.Files[record.ChangesName])
			run.Files[record.ChangesName] = []byte(text[:strings.Index(text, "diff --git ")] + patch)
		}
		return run
	}
	refused := func(what string, where *gitopstest.Repo, run record.Run) {
		t.Helper()
		got, err := Run(t.Context(), Request{Repo: where.Repository, Run: run, Committer: "C <c@example.org>"}, "copy")
		if err == nil && got.State() != Differs {
			t.Errorf("%s: %+v", what, got)
		}
		if _, err := gitopstest.TryCommand(where.Top, nil, "rev-parse", "-q", "--verify", "copy"); err == nil {
			t.Errorf("%s: there is a branch", what)
		}
	}
	refused("another tree", w, forge(gitops.OID(w.Run("rev-parse", "before^{tree}")), ""))
	clone := cloned(t, w, "before")
	refused("another tree by mail", clone, forge(gitops.OID(w.Run("rev-parse", "before^{tree}")), ""))

	// The clone has a private file, and the patch names it as if everybody had it.
	clone.Write(gitopstest.Files{"private": "\x00secret"})
	private := clone.Run("hash-object", "-w", "private")
	old := w.Run("rev-parse", "before:a")
	clone.Run("update-index", "--add", "--cacheinfo", "100644,"+private+",a")
	tree := gitops.OID(clone.Run("write-tree"))
	clone.Run("read-tree", "HEAD")
	binary := forge(tree, fmt.Sprintf("diff --git a/a b/a\nindex %s..%s 100644\nBinary files a/a and b/a differ\n", old, private))
	refused("a private file", clone, binary)
	_, err := Run(t.Context(), Request{Repo: clone.Repository, Run: binary, Committer: "C <c@example.org>"}, "copy")
	if lacking, ok := errors.AsType[*Lacking](err); !ok || lacking.Commit != commit {
		t.Errorf("a binary file without its content: %v", err)
	}
	refused("the git directory", clone, forge(tree, "diff --git a/.git/x b/.git/x\nnew file mode 100644\n--- /dev/null\n+++ b/.git/x\n@@ -0,0 +1 @@\n+x\n"))
	refused("outside", clone, forge(tree, "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n"))
}

// TestManyMails finds the mails of a long record: one of the first commit, none of many, and the mail of the last commit in the message of
// the first and after it.
func TestManyMails(t *testing.T) {
	t.Parallel()
	const many = 10_000
	var landed []record.Commit
	for i := range many {
		landed = append(landed, record.Commit{Outer: gitops.OID(fmt.Sprintf("%040x", i))})
	}
	begin := func(i int) string { return "From " + string(landed[i].Outer) + " Mon Sep 17 00:00:00 2001\n" }
	first := begin(0) + strings.Repeat("a line\n", 1<<20) + "x " + begin(many-1)
	last := begin(many-1) + "the last\n"
	mails := split([]byte("before\n"+begin(many-1)+first+last), landed)
	if len(mails) != 2 || string(mails[landed[0].Outer]) != first || string(mails[landed[many-1].Outer]) != last {
		t.Errorf("%d mails, %d and %d bytes", len(mails), len(mails[landed[0].Outer]), len(mails[landed[many-1].Outer]))
	}
}

// FuzzMail reads any bytes as mails.
func FuzzMail(f *testing.F) {
	f.Add([]byte("From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001\n\nx\n---\n a | 1 +\n\ndiff --git a/a b/a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, mail := range split(text, []record.Commit{{Outer: gitops.OID(strings.Repeat("1", 40))}, {Outer: gitops.OID(strings.Repeat("2", 40))}}) {
			if found := changes(mail); len(found) == 0 || len(found) > maxPlaces {
				t.Error(found)
			}
		}
	})
}

// TestChangesInMessage makes a commit again whose message has more parts like a change than replay tries.
func TestChangesInMessage(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	before := w.CommitAll(gitopstest.Files{"f": "--\na\nb\n"})
	w.Run("branch", "before")
	w.CommitAll(gitopstest.Files{"f": "b\n", "g": "g\n"})
	part := "\n---\n\ndiff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"
	w.Run("commit", "-q", "--amend", "--cleanup=verbatim", "-m", "subject\n"+strings.Repeat(part, maxPlaces+1))
	run := recorded(t, w, before, names(w.Run("rev-parse", "HEAD")))
	got, err := Run(t.Context(), Request{Repo: cloned(t, w, "before").Repository, Run: run, Committer: "C <c@example.org>"}, "copy")
	if err != nil || got.State() != Same {
		t.Errorf("%+v, %v", got, err)
	}
}
