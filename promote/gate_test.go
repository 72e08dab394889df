package promote_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// recipe is a file that a rule of these tests holds.
const recipe = "coding-environment.toml"

// agent runs git inside.
func (w *world) agent(args ...string) string {
	w.t.Helper()
	return git(w.t, w.inner, append([]string{"-c", "user.name=Ghost", "-c", "user.email=g@x"}, args...)...)
}

// commits makes an inner commit that writes one file.
func (w *world) commits(message, name, content string) {
	w.t.Helper()
	plain(content).write(w.t, w.inner+"/"+name)
	w.agent("add", "-A")
	w.agent("commit", "-q", "-m", message)
}

// subjects returns the subjects of the branch's commits since the base, newest first.
func (w *world) subjects() string {
	w.t.Helper()
	return strings.ReplaceAll(w.git("log", "--topo-order", "--format=%s", string(w.record.Base)+".."+w.record.Branch), "\n", " ")
}

func (w *world) state() promote.State {
	w.t.Helper()
	s, err := w.engine.State(w.t.Context())
	check(w.t, err)
	return s
}

// heldOnASide makes a history in which a commit on a side branch is held. The commit is older than the commits that
// follow on main.
func heldOnASide(t *testing.T) *world {
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "one", "1")
	w.agent("checkout", "-q", "-b", "side")
	w.commits("held", recipe, "x")
	w.agent("checkout", "-q", "main")
	w.commits("two", "two", "2")
	w.agent("merge", "-q", "-m", "merge", "side")
	w.commits("three", "three", "3")
	return w
}

func TestHeldOnASideBranch(t *testing.T) {
	t.Parallel()
	w := heldOnASide(t)
	o := w.cycle()
	if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.Policy || o.Landed != 3 || o.Pending != 2 || w.subjects() != "three two one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	if s := w.state(); s.Landed != 3 || s.Pending != 2 {
		t.Errorf("%d have landed, %d wait", s.Landed, s.Pending)
	}
	// Another process gets the same result, and a user commit in between does not change it.
	w.engine = newEngine(w.Repository, w.record, w.inner)
	w.git("commit", "-q", "--allow-empty", "-m", "mine")
	if o := w.cycle(); len(o.Holds) != 1 || o.Pending != 2 || w.subjects() != "mine three two one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	accepted, err := w.engine.Accept(t.Context(), []policy.Acceptance{{Rule: "recipe", Path: recipe}})
	check(t, err)
	if len(accepted) != 2 || accepted[0].Subject != "held" || accepted[1].Subject != "merge" {
		t.Errorf("accepted %+v: want the commit, and the merge that brings it to the branch", accepted)
	}
	if o := w.cycle(); len(o.Holds) != 0 || o.Pending != 0 || w.state().Landed != 5 {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	for commit, note := range w.notes() {
		want := "clean"
		if subject := w.git("log", "-1", "--format=%s", string(commit)); subject == "held" || subject == "merge" {
			want = "accepted recipe"
		}
		if got := noteValue(note, "Policy"); got != want {
			t.Errorf("%s: policy %q, want %q", commit, got, want)
		}
	}
	w.nothingLeft()
}

func TestDroppedOnASideBranch(t *testing.T) {
	t.Parallel()
	w := heldOnASide(t)
	w.cycle()
	pending := w.ref(w.record.Ref("pending"))
	dropped, err := w.leaveOut(string(pending) + "^2")
	check(t, err)
	if len(dropped) != 1 || dropped[0].Subject != "held" {
		t.Fatalf("%+v", dropped)
	}
	// The merge would bring the dropped commit's changes in, so that the merge waits.
	if o := w.cycle(); len(o.Holds) != 1 || o.Holds[0].Reason != ledger.Conflict || !strings.Contains(o.Holds[0].Message, "(merge)") {
		t.Fatalf("%+v", o)
	}
	_, err = w.leaveOut(strings.TrimSpace(git(t, w.inner, "log", "-1", "--format=%H", "--grep=^merge$", "main")))
	check(t, err)
	if o := w.cycle(); len(o.Holds) != 0 || o.Pending != 0 || w.subjects() != "three two one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	if out, err := tryGit(w.Top, "", "log", "--exclude=refs/airlock/*/rejected/*", "--all", "--format=%s", "--", recipe); err != nil || out != "" {
		t.Errorf("%q has it, %v", out, err)
	}
	if s := w.state(); s.Landed != 3 || s.Pending != 0 {
		t.Errorf("%d have landed, %d wait", s.Landed, s.Pending)
	}
	if _, err := w.leaveOut("HEAD"); !errors.Is(err, history.ErrNotPending) {
		t.Errorf("dropped a landed commit: %v", err)
	}
	// The agent's later commits land.
	w.commits("four", "four", "4")
	w.cycle()
	w.commits("five", "five", "5")
	if o := w.cycle(); len(o.Holds) != 0 || w.subjects() != "five four three two one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	w.nothingLeft()
}

// TestRulesChange changes the rules. Pending commits get new results, in their notes too, and landed commits keep
// their notes.
func TestRulesChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha256", tree{"a": plain("a\n")})
	w.git("config", "airlock.autoLand", "false")
	w.commits("one", recipe, "x")
	said := func() string {
		w.cycle()
		return noteValue(w.notes()[w.ref(w.record.Ref("pending"))], "Policy")
	}
	for _, c := range []struct{ setting, want string }{{"hold", "held recipe"}, {"flag", "flagged recipe"}, {"off", "clean"}, {"hold", "held recipe"}} {
		before := w.ref(w.record.Ref("pending"))
		w.git("config", "airlock.policy.recipe", c.setting)
		if got := said(); got != c.want {
			t.Errorf("%s: %q, want %q", c.setting, got, c.want)
		}
		if now := w.ref(w.record.Ref("pending")); before != "" && now != before {
			t.Errorf("%s: the pending commit is another one", c.setting)
		}
	}
	// A landing cannot reach past a hold.
	pending := w.ref(w.record.Ref("pending"))
	for _, options := range []promote.Options{{Land: true}, {Land: true, UpTo: string(pending)}} {
		o, err := w.engine.Drain(t.Context(), options)
		check(t, err)
		if o.Landed != 0 || o.Pending != 1 {
			t.Errorf("%+v: %+v", options, o)
		}
	}
	if _, err := w.engine.Drain(t.Context(), promote.Options{Land: true, UpTo: strings.Repeat("ab", 32)}); !errors.Is(err, history.ErrNotPending) {
		t.Errorf("up to a commit that does not exist: %v", err)
	}
}

// TestInvalidOnASideBranch puts an invalid commit anywhere. The commits before it land, and no commit that reaches
// it.
func TestInvalidOnASideBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "one", "1")
	w.agent("checkout", "-q", "-b", "side")
	blob := w.agent("rev-parse", "HEAD:one")
	raw, err := tryGit(w.inner, "100600 key\x00"+bytesOf(t, blob), "hash-object", "-w", "-t", "tree", "--stdin", "--literally")
	check(t, err)
	bad := w.agent("commit-tree", "-p", "HEAD", "-m", "bad", strings.TrimSpace(raw))
	w.agent("checkout", "-q", "main")
	w.commits("two", "two", "2")
	merge := w.agent("commit-tree", "-p", "HEAD", "-p", bad, "-m", "merge", "HEAD^{tree}")
	w.agent("reset", "-q", "--hard", merge)
	w.commits("three", "three", "3")
	for range 2 {
		o := w.cycle()
		if len(o.Holds) != 1 || o.Holds[0].Reason != ledger.InnerInvalid || o.Pending != 0 || w.subjects() != "two one" ||
			!strings.Contains(o.Holds[0].Message, bad) || !strings.Contains(o.Holds[0].Message, "100600") {
			t.Fatalf("%q, %+v", w.subjects(), o)
		}
	}
	w.agent("reset", "-q", "--hard", "HEAD~2")
	w.commits("four", "four", "4")
	if o := w.cycle(); len(o.Holds) != 0 || w.subjects() != "four two one" {
		t.Fatalf("%q, %+v", w.subjects(), o)
	}
	if _, err := tryGit(w.Top, "", "cat-file", "-e", bad+"^{tree}"); err == nil {
		t.Error("the tree that was refused is in the user's repository")
	}
	w.nothingLeft()
}

// bytesOf returns the binary form of an object name.
func bytesOf(t *testing.T, id string) string {
	t.Helper()
	b, err := hex.DecodeString(id)
	check(t, err)
	return string(b)
}
