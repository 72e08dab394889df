package checks_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/policy"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

// TestChoose lets a check of random commits go on until nothing is left to check. The landing ends at a good commit, the next one of
// a failed list fails, and no more commits are checked than a binary search needs.
func TestChoose(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		truth := make([]checks.State, 1+r.IntN(40))
		known := make([]checks.State, len(truth))
		for i := range truth {
			truth[i] = []checks.State{checks.Free, checks.Passed, checks.Failed}[r.IntN(3)]
			if truth[i] == checks.Free {
				known[i] = checks.Free
			}
		}
		runs := 0
		lands, next := checks.Choose(known)
		for ; next >= 0; lands, next = checks.Choose(known) {
			if known[next] != checks.Unknown {
				t.Fatalf("seed %d: commit %d is checked twice: %v", seed, next, known)
			}
			known[next] = truth[next]
			runs++
		}
		newest := len(truth) - 1
		switch {
		case lands >= 0 && truth[lands] == checks.Failed:
			t.Fatalf("seed %d: lands at %d, which fails: %v", seed, lands, truth)
		case lands < newest && (known[lands+1] != checks.Failed || known[newest] != checks.Failed):
			t.Fatalf("seed %d: lands at %d, and the next one has not failed: %v", seed, lands, known)
		case truth[newest] != checks.Failed && lands != newest:
			t.Fatalf("seed %d: the newest is good, and %d lands", seed, lands)
		case runs > 8:
			t.Fatalf("seed %d: %d checks of %d commits", seed, runs, len(truth))
		}
	}
}

// TestRecord writes results from several processes' worth of goroutines, beside notes that git itself has written in folders.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		repo := gitopstest.New(t, "--object-format="+format)
		repo.CommitAll(gitopstest.Files{"f": "1"})
		opened, err := gitops.Open(t.Context(), repo.Top)
		gitopstest.Check(t, err)
		tree := gitops.OID(strings.TrimSpace(repo.Run("rev-parse", "HEAD^{tree}")))
		for i := range 60 { // so that git makes folders
			repo.Run("notes", "--ref=airlock-check", "add", "-m", "theirs", string(repo.Blob(fmt.Sprint(i))))
		}
		repo.Run("notes", "--ref=airlock-check", "add", "-m", "not a result", string(tree))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for _, exit := range []int{1, 0} {
					gitopstest.Check(t, checks.Record(t.Context(), opened, "A U Thor <a@example.com>", checks.Result{Tree: tree, Command: checks.Digest(fmt.Sprint("make ", i)), System: "s", Exit: exit, At: time.Now()}))
				}
			})
		}
		all.Wait()
		for i := range 4 {
			list := checks.Parse(repo.Run("notes", "--ref=airlock-check", "show", string(tree)), tree)
			if found := checks.In(list, checks.Check{Command: fmt.Sprint("make ", i)}, "s"); found == nil || !found.Passed() {
				t.Errorf("%s: make %d: %+v", format, i, found)
			}
			if other := checks.In(list, checks.Check{Command: fmt.Sprint("make ", i)}, "t"); other != nil {
				t.Errorf("%s: found in another system: %+v", format, other)
			}
		}
		note := repo.Run("notes", "--ref=airlock-check", "show", string(tree))
		if n := strings.Count(note, "command_sha256"); n != 4 || !strings.Contains(note, "not a result") {
			t.Errorf("%s: the note is %q", format, note)
		}
		if theirs := repo.Run("notes", "--ref=airlock-check", "show", string(repo.Blob("0"))); strings.TrimSpace(theirs) != "theirs" {
			t.Errorf("%s: another note is now %q", format, theirs)
		}
		if none := checks.Parse(note, gitops.OID(strings.TrimSpace(repo.Run("rev-parse", "HEAD")))); len(none) > 0 {
			t.Errorf("%s: found for another object: %+v", format, none)
		}
		repo.Run("fsck", "--strict")
	}
}

// TestHere keeps random results from several goroutines. For each tree, command and system the last one is found, also after the file was
// shortened, and only the user can read the file, which stays bounded.
func TestHere(t *testing.T) {
	t.Parallel()
	repo := gitopstest.New(t)
	opened, err := gitops.Open(t.Context(), repo.Top)
	gitopstest.Check(t, err)
	id := func(n int) gitops.OID { return gitops.OID(fmt.Sprintf("%040x", n)) }
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 1000 {
				for _, exit := range []int{0, i % 3} {
					gitopstest.Check(t, checks.Keep(opened, checks.Result{Tree: id(worker*1000 + i), Command: checks.Digest("make"), System: "s", Exit: exit, At: time.Now()}))
				}
			}
		})
	}
	all.Wait()
	here, err := checks.Here(opened)
	gitopstest.Check(t, err)
	for worker := range 4 {
		for i := 900; i < 1000; i++ {
			list := here[id(worker*1000+i)]
			if len(list) > 1 || len(list) == 1 && list[0].Exit != i%3 {
				t.Errorf("tree %d: %+v", worker*1000+i, list)
			}
		}
		if len(here[id(worker*1000+999)]) == 0 && len(here) < 300 {
			t.Errorf("the newest results are gone: %d are left", len(here))
		}
	}
	files := gitops.Glob(opened.CommonDir, "airlock-checks-*")
	if len(files) != 1 {
		t.Fatalf("files: %q", files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 512<<10 {
		t.Errorf("the file: %v, %v", info, err)
	}
	gitopstest.Check(t, os.WriteFile(files[0], []byte("{\"v\":1,\"tr"), 0o600)) // cut short
	gitopstest.Check(t, checks.Keep(opened, checks.Result{Tree: id(1), At: time.Now()}))
	if here, err = checks.Here(opened); err != nil || len(here) != 1 {
		t.Errorf("after a line that is cut short: %+v, %v", here, err)
	}
}

// TestOf checks the settings, and that a policy only makes them stricter.
func TestOf(t *testing.T) {
	t.Parallel()
	team, err := policy.ParseTeam([]byte("version = 1\n[check]\ncommand = \"make test\"\ngate = \"hold\"\n"))
	gitopstest.Check(t, err)
	for _, x := range []struct {
		config gitops.Config
		rules  policy.Settings
		want   checks.Check
	}{
		{nil, policy.Settings{}, checks.Check{Time: 30 * time.Minute}},
		{gitops.Config{"airlock.check": " go vet ", "airlock.check.time": "5"}, policy.Settings{}, checks.Check{Command: "go vet", Time: 5 * time.Second}},
		{gitops.Config{"airlock.check": "true", "airlock.check.gate": "hold"}, policy.Settings{}, checks.Check{Command: "true", Hold: true, Time: 30 * time.Minute}},
		{gitops.Config{"airlock.check": "true", "airlock.check.gate": "off"}, policy.Settings{}.With(team), checks.Check{Command: "make test", Hold: true, Time: 30 * time.Minute}},
	} {
		if got, err := checks.Of(x.config, x.rules); err != nil || got != x.want {
			t.Errorf("%v: %+v, %v, want %+v", x.config, got, err, x.want)
		}
	}
	if _, err := checks.Of(gitops.Config{"airlock.check.gate": "yes"}, policy.Settings{}); err == nil {
		t.Error("an unknown gate is not an error")
	}
	if _, err := policy.ParseTeam([]byte("version = 1\n[check]\ngate = \"off\"\n")); err == nil {
		t.Error("a policy can turn the gate off")
	}
}

// TestShortTime checks that a result of a check that was ended counts until the user gives checks more time.
func TestShortTime(t *testing.T) {
	t.Parallel()
	list := []checks.Result{{Command: checks.Digest("make"), System: "s", Exit: checks.TimeOver, Took: 60_010}}
	for allowed, counts := range map[time.Duration]bool{time.Minute: true, 30 * time.Second: true, 2 * time.Minute: false} {
		if found := checks.In(list, checks.Check{Command: "make", Time: allowed}, "s"); (found != nil) != counts {
			t.Errorf("%s: %+v", allowed, found)
		}
	}
}

// FuzzParse checks that any note is read without an error, and that a result says which tree it is about.
func FuzzParse(f *testing.F) {
	tree := gitops.OID(strings.Repeat("a1", 20))
	f.Add(`{"v":1,"tree":"` + string(tree) + `","command_sha256":"x","system":"s","exit":0}` + "\n")
	f.Add("\n{}\n{\"v\":1}")
	f.Fuzz(func(t *testing.T, note string) {
		for _, r := range checks.Parse(note, tree) {
			if r.Tree != tree || r.Version != 1 {
				t.Errorf("%q: %+v", note, r)
			}
		}
	})
}
