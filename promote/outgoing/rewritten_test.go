package outgoing_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/outgoing"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestRewritten lets the user amend, rebase, squash and cherry-pick agents' commits that have the same author, date and subject. None of
// them may pass unless its original is approved. If all originals are approved, all pass.
func TestRewritten(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := newRewriter(t, seed)
			r.land()
			r.checkTrees()
			for range 1 + r.IntN(3) {
				r.rewrite()
				r.check()
			}
		})
	}
}

// TestSameChange checks that the change tells which of several commits is the original: an approved commit passes after a rebase, although
// a rejected one has the same author, date and subject. If the rebase changes the file, too, nothing tells.
func TestSameChange(t *testing.T) {
	r := newRewriter(t, 0)
	r.landOne(0, "file", review.Reject)
	r.landOne(1, "file", review.Approve)
	r.landOne(2, "shared", review.Approve)
	r.git("switch", "-q", "-C", "picked", "colleague")
	r.git("cherry-pick", string(r.landed[1]), string(r.landed[2]))
	for i, c := range r.find() {
		if want := i == 0; c.Passes() != want || c.Unsure() == want {
			t.Errorf("commit %d: passes: %v; unsure: %v", i, c.Passes(), c.Unsure())
		}
	}
}

// rewriter is a user with a repository in which an agent's commits have landed. Commit n writes "agent n" into the files.
type rewriter struct {
	*rand.Rand
	t        *testing.T
	repo     *gitops.Repository
	landed   []gitops.OID
	approved []bool
	joined   bool // git keeps the notes of rewritten commits, and joins those of squashed ones
	verdicts bool // unless joined, or if it does so with the verdicts, too
	reworded bool
}

const lines, apart = 120, 12

func newRewriter(t *testing.T, seed uint64) *rewriter {
	r := &rewriter{Rand: rand.New(rand.NewPCG(seed, 1)), t: t}
	top := filepath.Join(t.TempDir(), "r")
	r.run(nil, "git", "init", "-q", "-b", "main", top)
	r.repo = &gitops.Repository{Top: top}
	r.git("config", "user.name", "Ada Example")
	r.git("config", "user.email", "ada@example.com")
	var text strings.Builder
	for n := range lines {
		fmt.Fprintf(&text, "line %d\n", n)
	}
	r.write("shared", text.String())
	r.commit("base")
	r.git("switch", "-q", "-c", "colleague")
	r.write("shared", "colleague\n"+text.String())
	r.commit("colleague")
	r.git("switch", "-q", "main")
	r.joined, r.verdicts = r.IntN(3) == 0, r.IntN(2) == 0
	if r.verdicts = r.verdicts || !r.joined; r.joined {
		r.git("config", "notes.rewriteRef", map[bool]string{false: promote.NotesRef, true: "refs/notes/*"}[r.verdicts])
	}
	var err error
	if r.repo, err = gitops.Open(t.Context(), top); err != nil {
		t.Fatal(err)
	}
	return r
}

// land makes the agent's commits, with notes, and verdicts on some.
func (r *rewriter) land() {
	all := r.IntN(5) == 0 // the user approves all
	for n := range 2 + r.IntN(lines/apart-3) {
		word := []review.Word{review.Reject, review.Approve, review.Approve, ""}[r.IntN(4)]
		if all {
			word = review.Approve
		}
		r.landOne(n, []string{"file", "shared"}[r.IntN(2)], word, []string{"docs: fix a typo", "fix"}[r.IntN(4)/3], fmt.Sprint(r.IntN(4)/3))
		if word != "" && r.verdicts && r.IntN(4) == 0 { // as after an undo; a squash without notes is the user's own
			r.git("notes", "--ref", promote.NotesRef, "remove", "HEAD")
		}
	}
}

// landOne makes a commit of the agent that changes a file of its own or the shared one, with a note and perhaps a verdict. Its subject and the
// second of its date can be given.
func (r *rewriter) landOne(n int, file string, word review.Word, key ...string) {
	key = append(key, "fix", "0")[:2]
	if file == "shared" {
		shared, err := os.ReadFile(filepath.Join(r.repo.Top, file))
		if err != nil {
			r.t.Fatal(err)
		}
		r.write(file, strings.Replace(string(shared), fmt.Sprintf("line %d\n", apart*(n+1)), fmt.Sprintf("agent %d\n", n), 1))
	} else {
		r.write(fmt.Sprint(file, n), fmt.Sprintf("agent %d\n", n))
	}
	r.commit(key[0], "GIT_AUTHOR_DATE=2026-11-28T10:00:0"+key[1]+"+0000")
	id := gitops.OID(r.git("rev-parse", "HEAD"))
	c := outgoing.Commit{ID: id, Tree: gitops.OID(r.git("rev-parse", "HEAD^{tree}")), Note: map[string]string{"Inner-Commit": strings.Repeat(fmt.Sprint(n), 40)}}
	r.git("notes", "--ref", promote.NotesRef, "add", "-m", fmt.Sprintf("Airlock-Version: 1\nAirlock-Commit: %s\nAirlock-Inner-Commit: %s", id, c.Note["Inner-Commit"]))
	if v := (review.Verdict{Word: word, By: "Ada Example <ada@example.com>", At: time.Now().UTC()}); word != "" {
		if err := outgoing.Record(r.t.Context(), r.repo, v, []outgoing.Commit{c}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.landed, r.approved = append(r.landed, id), append(r.approved, word == review.Approve)
}

// rewrite does what a user may do with landed commits.
func (r *rewriter) rewrite() {
	switch r.IntN(6) {
	case 0:
		r.git("commit", "-q", "--amend", "-s", "--no-edit")
	case 1:
		if !r.reworded {
			r.write("mine", fmt.Sprint(r.Uint64()))
			r.git("add", "-A")
			r.git("commit", "-q", "--amend", "--no-edit")
		}
	case 2:
		if r.git("rev-parse", "HEAD") == string(r.landed[len(r.landed)-1]) {
			r.git("commit", "-q", "--amend", "-m", "a better subject")
			r.reworded = true // with other content, it is the user's own from now on
		}
	case 3:
		if !r.reworded {
			r.git("rebase", "-q", "colleague")
		}
	case 4:
		r.git("switch", "-q", "-C", "picked", "colleague")
		r.reworded = false
		for _, n := range r.Perm(len(r.landed))[:1+r.IntN(len(r.landed))] {
			r.git("cherry-pick", string(r.landed[n]))
		}
	case 5:
		if r.joined && !r.reworded && r.git("rev-list", "--count", "colleague..HEAD") > "1" {
			r.run([]string{"GIT_SEQUENCE_EDITOR=sed -i -e '2s/^pick/fixup/'", "GIT_EDITOR=true"}, "git", "rebase", "-q", "-i", "HEAD~2")
		}
	}
}

// find returns the agents' commits of the branch, oldest first.
func (r *rewriter) find() []outgoing.Commit {
	r.t.Helper()
	found, err := outgoing.Find(r.t.Context(), r.repo, airlock.Open(r.repo),
		outgoing.Range{Tips: []gitops.OID{"HEAD"}, Without: []gitops.OID{"colleague"}}, outgoing.Reviewers{User: "ada@example.com"})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// check compares the verdicts on the commits of the branch with those on their originals.
func (r *rewriter) check() {
	r.t.Helper()
	found := r.find()
	for _, id := range strings.Fields(r.git("rev-list", "colleague..HEAD")) {
		c := slices.IndexFunc(found, func(c outgoing.Commit) bool { return string(c.ID) == id })
		if c < 0 {
			r.t.Fatalf("commit %s is not found\n%s", id, r.git("log", "--all", "--graph", "--notes=*", "-p"))
		}
		patch := r.git("show", "--format=", id)
		for n, approved := range r.approved {
			if !strings.Contains(patch+"\n", fmt.Sprintf("\n+agent %d\n", n)) {
				continue
			}
			if found[c].Passes() && !approved || !found[c].Passes() && !slices.Contains(r.approved, false) {
				r.t.Fatalf("%s, of %s, passes: %v; approved: %v\n%s", id, r.landed[n], found[c].Passes(), approved, r.git("log", "--all", "--graph", "--notes=*", "-p"))
			}
		}
	}
}

// checkTrees compares which trees of landed commits may be pushed, also by a tag on a tag, with the verdicts on the commits. All trees differ.
func (r *rewriter) checkTrees() {
	r.t.Helper()
	for n, id := range r.landed {
		tip := r.git("rev-parse", string(id)+"^{tree}")
		for range r.IntN(3) {
			r.git("tag", "-f", "-a", "-m", "tag", "tree", tip)
			tip = r.git("rev-parse", "refs/tags/tree")
		}
		found, err := outgoing.FindTrees(r.t.Context(), r.repo, airlock.Open(r.repo),
			outgoing.Range{Tips: []gitops.OID{gitops.OID(r.git("rev-parse", "colleague^{tree}")), gitops.OID(tip)}}, outgoing.Reviewers{User: "ada@example.com"})
		if err != nil || r.approved[n] != (len(found) == 0) || len(found) > 0 && (len(found) > 1 || found[0].ID != id) {
			r.t.Fatalf("tree of %s: %v %v; approved: %v", id, found, err, r.approved[n])
		}
	}
}

func (r *rewriter) write(name, text string) {
	if err := os.WriteFile(filepath.Join(r.repo.Top, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rewriter) commit(subject string, env ...string) {
	r.git("add", "-A")
	r.run(env, "git", "commit", "-q", "-m", subject)
}

func (r *rewriter) git(args ...string) string {
	r.t.Helper()
	return r.run(nil, append([]string{"git"}, args...)...)
}

func (r *rewriter) run(env []string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if cmd.Env = append(os.Environ(), append(env, "GIT_CONFIG_GLOBAL="+os.DevNull)...); r.repo != nil {
		cmd.Dir = r.repo.Top
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %s: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
