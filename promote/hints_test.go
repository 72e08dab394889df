package promote_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// userChanges are changes of the user, each a shell script. MINE stands for a content that must not get lost.
var userChanges = map[string]string{
	"edits":               "echo MINE >b",
	"stages":              "echo MINE >b; git add b",
	"stages twice":        "echo MINE >b; git add b; echo MINE >b",
	"removes":             "git rm -q b",
	"deletes":             "rm b",
	"renames":             "git mv b bb; echo MINE >>bb",
	"forgets":             "git rm -q --cached b",
	"forgets and edits":   "git rm -q --cached b; echo MINE >b",
	"means to add":        "echo MINE >new; git add -N new",
	"means to add again":  "git rm -q --cached b; echo MINE >b; git add -N b",
	"adds":                "echo MINE >new; git add new",
	"adds and deletes":    "echo MINE >new; git add new; rm new",
	"stages and deletes":  "echo MINE >b; git add b; rm b",
	"means, and deletes":  "echo x >new; git add -N new; rm new",
	"pipe for added":      "echo MINE >new; git add new; rm new; mkfifo new",
	"link for folder":     "ln -s /tmp new; git add new",
	"leaves untracked":    "echo MINE >new",
	"assumes":             "git update-index --assume-unchanged b; echo MINE >b",
	"skips":               "git update-index --skip-worktree b; echo MINE >b",
	"ignores":             "echo MINE >ignored",
	"ignores many":        "for i in $(seq 60); do echo MINE >build/$i; done",
	"links":               "rm -r d; ln -s /tmp d",
	"links and stages":    "rm -r d; ln -s /tmp d; git add -A d",
	"file for folder":     "rm -r d; echo MINE >d",
	"staged for folder":   "git rm -rq d; echo MINE >d; git add d",
	"folder for file":     "rm b; mkdir b; echo MINE >b/x",
	"staged for file":     "git rm -q b; mkdir b; echo MINE >b/x; git add b/x",
	"empty for file":      "rm b; mkdir b",
	"pipe for file":       "rm b; mkfifo b",
	"pipe":                "mkfifo new",
	"link for file":       "rm b; ln -s a b",
	"repository":          "git init -q r; echo MINE >r/x; git -C r add x; git -C r commit -qm x",
	"repository, empty":   "git init -q r",
	"repository, bare":    "git init -q --bare r",
	"repository, deep":    "git init -q n/e/w/r; echo MINE >n/e/w/r/x",
	"repository for file": "rm b; git init -q b; echo MINE >b/x",
	"worktree":            "git worktree add -q --detach r; echo MINE >r/a",
	"executable":          "chmod +x b",
	"odd name":            "echo MINE >'-o *d'; git add ./-o*; git rm -q --cached ./-o*",
	"newline":             "echo MINE >'n.\n'; git add n*",
	"newline, skipped":    "echo x >'n.\n'; git add n*; git update-index --skip-worktree 'n.\n'; echo MINE >'n.\n'",
	"conflict":            "echo MINE >b; git stash -q; echo x >b; git commit -qam b; git stash pop -q || true",
	"sparse":              "git sparse-checkout set d; mkdir -p q; echo MINE >q/f",
	"sparse, refreshed":   "git sparse-checkout set d; mkdir -p q; echo MINE >q/f; git status -s >/dev/null; git add a",
	"sparse, staged":      "git sparse-checkout set d; mkdir -p q; echo MINE >q/f; git add --sparse q/f",
	"sparse, removed":     "git sparse-checkout set d; git rm -q --sparse q/f",
	"sparse, forgotten":   "git sparse-checkout set d; mkdir -p q; echo MINE >q/f; git rm -q --cached --sparse q/f",
	"sparse, untracked":   "git sparse-checkout set d; mkdir -p q; echo MINE >q/new",
	"sparse, index":       "git sparse-checkout set --sparse-index d; mkdir -p q; echo MINE >q/f",
	"sparse, patterns":    "git sparse-checkout set --no-cone a b d; mkdir -p q; echo MINE >q/f; echo MINE >q/new",
	"sparse inside":       "git sparse-checkout set d; echo MINE >d/c; echo MINE >d/new; git rm -q d/e",
}

// agentChanges are changes of the agent, each a shell script.
var agentChanges = []string{
	"echo 1 >b", "git rm -q b", "git rm -q b; mkdir b; echo 1 >b/x", "echo 1 >new", "echo 1 >d/c", "git rm -q d/c", "echo 1 >d/new", "echo 1 >d/e",
	"git rm -rq d; echo 1 >d", "echo 1 >q/f", "echo 1 >q/new", "echo 1 >r", "mkdir r; echo 1 >r/x", "mkdir r; echo 1 >r/y", "mkdir -p n/e/w; echo 1 >n/e/w/r",
	"mkdir -p n/e/w/r; echo 1 >n/e/w/r/y", "echo 1 >ignored", "for i in $(seq 60); do echo 1 >build/$i; done", "echo 1 >'-o *d'", "echo 1 >bb", "git mv b bb",
	"echo 1 >a", "echo 1 >'n.\n'",
}

// TestHintsWork makes random changes of the user and of the agent, and types the commands that the holds print, in their order, in a subfolder.
// Each command succeeds, all commits land, and no content of the user is lost. A dry run writes no file with paths, so that its commands name a path
// that ends with a newline in another way.
func TestHintsWork(t *testing.T) {
	t.Parallel()
	for user, change := range userChanges {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			rounds := 1
			if os.Getenv("AIRLOCK_TEST_LONG") != "" {
				rounds = 10
			}
			collided := 0
			for seed := range rounds {
				collided += pasteHints(t, rand.New(rand.NewPCG(uint64(seed), 5)), change, false)
				if strings.Contains(user, "newline") {
					collided += pasteHints(t, rand.New(rand.NewPCG(uint64(seed), 5)), change, true)
				}
			}
			t.Logf("%d of %d collided", collided, rounds)
		})
	}
}

// pasteHints returns 1 if there was a collision. If dry is true, it types the commands of a dry run, and the agent adds the name of the user.
func pasteHints(t *testing.T, r *rand.Rand, change string, dry bool) int {
	w := newWorld(t, "sha1", tree{"a": plain("a\n"), "b": plain("b\n"), "d/c": plain("c\n"), "d/e": plain("e\n"), "q/f": plain("f\n"), "build/keep": plain("keep\n")})
	w.git("config", "airlock.policy.ignored-path", "off")
	w.git("config", "airlock.policy.user-driver", "off")
	check(t, os.WriteFile(filepath.Join(w.CommonDir, "info/exclude"), []byte("/.work-*\nignored\nbuild/*\n"), 0o600))
	theirs := "{ " + at(r, slices.DeleteFunc(slices.Clone(agentChanges), func(c string) bool { return !shareName(c, change) })) + "; } 2>/dev/null"
	for range r.IntN(3) {
		theirs += " && { " + at(r, agentChanges) + "; } 2>/dev/null"
	}
	if dry {
		theirs += "; echo 1 >'n.\n'"
	}
	theirs += "; git add -A -f . ':!.git' && git commit -q --allow-empty -m theirs"
	contents := 0
	for strings.Contains(change, "MINE") {
		contents++
		change = strings.Replace(change, "MINE", fmt.Sprintf("mine-%d.", contents), 1)
	}
	paste(t, w.inner, theirs)
	paste(t, w.Top, change)
	overwritten := strings.Contains(change, "git add b; echo mine") // staged and overwritten
	o, before := w.cycle(), ""
	below := filepath.Join(w.Top, "below")
	check(t, os.Mkdir(below, 0o700))
	typed := []string{}
	for n := 0; o.Held(ledger.Collision); n++ {
		if n == 4 {
			t.Fatalf("user: %s\nagent: %s\nstill held after %q: %+v", change, theirs, typed, o.Holds)
		}
		commands := o.Holds[0].Next
		if dry {
			repo, git := *w.Repository, *w.Git
			repo.Git, git.Dry = &git, true
			commands = hold.Collision(t.Context(), &repo, t.TempDir(), o.Holds[0].Places).Next
		}
		for _, next := range commands {
			typed = append(typed, next)
			if out, err := shell(below, next); err != nil {
				t.Fatalf("user: %s\nagent: %s\n%q: %v\n%s\n%s", change, theirs, typed, err, out, before)
			}
		}
		o = w.cycle()
	}
	if o.Held(ledger.Conflict) { // with the user's own commit
		return 0
	}
	if o.Pending != 0 || len(o.Holds) > 0 {
		t.Fatalf("user: %s\nagent: %s\n%q: %+v", change, theirs, typed, o)
	}
	have := w.everything()
	for n := range contents {
		if want := fmt.Sprintf("mine-%d.", n+1); !strings.Contains(have, want) && !overwritten {
			t.Errorf("user: %s\nagent: %s\n%q: %s is lost", change, theirs, typed, want)
		}
	}
	return min(1, len(typed))
}

func at(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

var anyName = regexp.MustCompile(`\b(b|new|d|q|r|n|ignored|build)\b`)

// shareName reports whether two scripts change something of the same name.
func shareName(one, other string) bool {
	names := anyName.FindAllString(other, -1)
	return slices.ContainsFunc(anyName.FindAllString(one, -1), func(n string) bool { return slices.Contains(names, n) })
}

// everything returns the contents of all files of the user, of the index, and of all stashes.
func (w *world) everything() string {
	w.t.Helper()
	var all strings.Builder
	check(w.t, filepath.WalkDir(w.Top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == w.inner || name == w.CommonDir {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			content, _ := os.ReadFile(name)
			all.Write(content)
		}
		return nil
	}))
	out, err := shell(w.Top, "git ls-files -s | cut -d' ' -f2 | git cat-file --batch; for s in $(git reflog --format=%H refs/stash 2>/dev/null); do for p in $s $s^2 $s^3; do "+
		"git rev-parse -q --verify $p >/dev/null && git ls-tree -r $p | cut -c13-52 | git cat-file --batch; done; done; true")
	check(w.t, err)
	return all.String() + out
}

func paste(t testing.TB, dir, script string) {
	t.Helper()
	if out, err := shell(dir, script); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func shell(dir, script string) (string, error) {
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestResolveOfSideBehindOthers lets a side branch of the agent conflict with one of the user's commits while other commits wait for a review, so that it
// cannot be merged yet. The next commands are those for these others.
func TestResolveOfSideBehindOthers(t *testing.T) {
	t.Parallel()
	w := newWithReview(t)
	w.commits("other", "other", "1\n")
	w.commits("one", "one", "1\n")
	w.cycle()
	w.verdict(review.Approve, "", "one")
	w.wantLanded("one")
	w.mine("a", "mine\n")
	w.agent("checkout", "-q", "-b", "s")
	w.commits("side", "a", "agent\n")
	w.agent("checkout", "-q", "main")
	w.commits("two", "two", "2\n")
	w.agent("merge", "-q", "-m", "merge", "s")
	if o := w.cycle(); !o.Held(ledger.Conflict) || slices.Contains(o.Of(ledger.Conflict)[0].Next, hold.Resolve) {
		t.Errorf("%+v", o)
	}
	_, _, err := w.engine.Resolve(t.Context())
	if held, ok := errors.AsType[*hold.Error](err); !ok || !slices.Contains(held.Hold.Next, "git airlock review -p") {
		t.Errorf("%+v", err)
	}
	w.verdict(review.Reject, "no", "other", "two")
	w.cycle()
	w.verdict(review.Approve, "", "side", "merge")
	w.cycle()
	if _, merging, err := w.engine.Resolve(t.Context()); err != nil || !merging {
		t.Errorf("%t, %v, %s", merging, err, w.states())
	}
}
