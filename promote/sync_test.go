package promote_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/incoming"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// sync brings the user's commits to the agent, or returns the reason why not.
func (w *world) sync(out ...string) (*incoming.Change, error) {
	w.t.Helper()
	patterns, _, ok := ignore.ParseAll(out)
	if !ok {
		w.t.Fatal("patterns")
	}
	w.cycle()
	s, err := w.engine.Standing(w.t.Context())
	check(w.t, err)
	defer s.Close()
	change, err := incoming.Find(w.t.Context(), w.engine, s, gitops.OID(strings.TrimSpace(w.agent("rev-parse", "main"))), patterns)
	if err != nil {
		return nil, err
	}
	made, err := change.Make(w.t.Context(), w.engine, s)
	check(w.t, err)
	pack, err := os.Open(made.Pack)
	check(w.t, err)
	defer pack.Close()
	inside := workspace(w.inner)
	check(w.t, inside.Unpack(w.t.Context(), pack))
	err = inside.Advance(w.t.Context(), made.From, made.To)
	check(w.t, incoming.Close(w.engine.Dir(), err == nil))
	return change, err
}

// lands makes a cycle and compares the agent's commits on the branch, oldest first.
func (w *world) lands(want string) {
	w.t.Helper()
	o := w.cycle()
	var got []string
	for line := range strings.Lines(w.git("log", "--topo-order", "--reverse", "--format=%s", string(w.record.Base)+".."+w.record.Branch) + "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "mine: ") {
			got = append(got, line)
		}
	}
	if strings.Join(got, " ") != want {
		w.t.Fatalf("%q has landed, want %q: %+v", got, want, o)
	}
}

// mine makes a commit of the user.
func (w *world) mine(name, content string) {
	w.t.Helper()
	check(w.t, os.MkdirAll(filepath.Dir(filepath.Join(w.Top, name)), 0o755))
	check(w.t, os.WriteFile(filepath.Join(w.Top, name), []byte(content), 0o644))
	w.git("add", "-f", name)
	w.git("commit", "-q", "-m", "mine: "+name)
}

// wantExact checks the note of the branch's tip, and that both trees are equal.
func (w *world) wantExact(t *testing.T) {
	t.Helper()
	if got := noteValue(w.notes()[w.tip()], "Tree"); got != "exact" {
		t.Fatalf("tree: %q", got)
	}
	w.wantSameTrees()
}

// TestSyncIsExact brings a commit in, and lands the agent's next one.
func TestSyncIsExact(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		w := newWorld(t, format, tree{"a": plain("a\n"), "b": plain("b\n")})
		if _, err := w.sync(); !errors.Is(err, incoming.ErrNothing) {
			t.Fatal(err)
		}
		w.commits("one", "one", "1\n")
		w.cycle()
		w.mine("a", "a of mine\n")
		w.mine("new/file", "new\n")
		change, err := w.sync()
		if err != nil || change.Commits != 2 || len(change.Paths) != 2 {
			t.Fatalf("%+v %v", change, err)
		}
		log := w.agent("log", "--format=%an %ae %cn %B", "-1")
		if strings.Contains(log, "mine") || strings.Contains(log, "Ursula") || strings.Contains(log, w.record.Ghost.Name) || !strings.Contains(log, "Update from upstream") {
			t.Errorf("the agent reads %s", log)
		}
		w.lands("one")
		if o := w.cycle(); o.Pending != 0 || o.Waits != 0 || len(o.Holds) != 0 {
			t.Fatalf("%+v", o)
		}
		if _, err := w.sync(); !errors.Is(err, incoming.ErrNothing) {
			t.Fatal(err)
		}
		w.commits("two", "a", "a of the agent's, who has read mine\n")
		w.lands("one two")
		w.wantExact(t)
		w.nothingLeft()
	}
}

// TestSyncWaits checks what keeps a commit from coming in.
func TestSyncWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "a", "1\n")
	w.commits("two", "two", "2\n")
	w.cycle()
	w.mine("a", "mine\n")
	w.commits("three", "a", "3\n")
	var waiting *incoming.Waiting
	if _, err := w.sync(); !errors.As(err, &waiting) || waiting.Commits != 1 {
		t.Fatal(err)
	}
	w.agent("reset", "-q", "--hard", "HEAD~2")
	if _, err := w.sync(); !errors.Is(err, incoming.ErrBehind) {
		t.Fatal(err)
	}
	w.agent("reset", "-q", "--hard", "ORIG_HEAD~1")
	check(t, os.WriteFile(filepath.Join(w.inner, "a"), []byte("edit\n"), 0o644))
	var refused *inner.Refused
	if _, err := w.sync(); !errors.As(err, &refused) || refused.Obstacle != inner.Uncommitted {
		t.Fatal(err)
	}
	record, err := ledger.ReadSynced(w.engine.Dir())
	if err != nil || len(record.Commits) != 0 {
		t.Fatalf("%+v %v", record, err)
	}
}

// TestSyncAfterRejection takes a rejected change out of the agent's files, and lets it land when it is approved after all.
func TestSyncAfterRejection(t *testing.T) {
	t.Parallel()
	w := newReviewed(t)
	w.verdict(review.Approve, "", "one")
	w.verdict(review.Reject, "no", "two")
	w.lands("one")
	w.mine("three", "3\n")
	change, err := w.sync()
	if err != nil || change.Left != 1 {
		t.Fatalf("%+v %v", change, err)
	}
	if _, err := os.Lstat(filepath.Join(w.inner, "two")); err == nil {
		t.Error("the agent still has what was rejected")
	}
	w.cycle()
	w.wantStates("two:rejected")
	w.commits("four", "four", "4\n")
	w.cycle()
	w.verdict(review.Approve, "", "four")
	w.lands("one four")
	w.wantExact(t)
	w.wantStates("two:rejected")
	w.verdict(review.Approve, "", "two")
	w.lands("one four two")
	if got := w.git("show", "HEAD:two") + w.git("show", "HEAD:three"); got != "23" {
		t.Errorf("%q", got)
	}
	w.nothingLeft()
}

// TestSyncLost lands commits of an agent that has rewritten its history without the user's commits, which stay.
func TestSyncLost(t *testing.T) {
	notShort(t)
	t.Parallel()
	for name, rewrite := range map[string]string{
		"reset":           "reset -q --hard HEAD~2",
		"reset to before": "reset -q --hard HEAD~3",
		"rebase":          "rebase -q --onto HEAD~2 HEAD~1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"a": plain("a\n"), "gone": plain("gone\n")})
			w.commits("one", "one", "1\n")
			w.cycle()
			w.mine("a", "a of mine\n")
			w.mine("new", "new\n")
			w.git("rm", "-q", "gone")
			w.git("commit", "-q", "-m", "mine: gone")
			_, err := w.sync()
			check(t, err)
			w.commits("two", "two", "2\n")
			w.lands("one two")
			w.wantExact(t)
			w.agent(strings.Fields(rewrite)...)
			w.commits("three", "three", "3\n")
			w.cycle()
			if got := w.git("show", "HEAD:a") + w.git("show", "HEAD:new") + w.git("ls-tree", "--name-only", "HEAD", "gone"); got != "a of minenew" {
				t.Errorf("the user's files: %q", got)
			}
			has := w.git("ls-tree", "--name-only", "HEAD", "two")
			if (name == "rebase") != (has == "two") {
				t.Errorf("two: %q", has)
			}
			for _, s := range noteValues(w.notes()[w.tip()], "Supersedes") {
				if !strings.Contains(w.notes()[gitops.OID(s)], "Airlock-Commit") {
					t.Errorf("%s was not landed, and is superseded", s)
				}
			}
			_, err = w.sync()
			check(t, err)
			w.commits("four", "four", "4\n")
			w.cycle()
			w.wantExact(t)
			w.nothingLeft()
		})
	}
}

// TestSyncLostConflicts checks that a commit which lost the user's changes, and conflicts with them, waits, also for a user who
// merges it by hand.
func TestSyncLostConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "one", "1\n")
	w.cycle()
	w.mine("a", "a of mine\n")
	w.mine("new", "new\n")
	_, err := w.sync()
	check(t, err)
	w.commits("two", "two", "2\n")
	w.lands("one two")
	w.agent("reset", "-q", "--hard", "HEAD~2")
	w.commits("three", "a", "a of the agent's\n")
	o := w.cycle()
	if o.Pending != 1 || !o.Held(ledger.Conflict) || w.git("show", "HEAD:a") != "a of mine" {
		t.Fatalf("%+v", o)
	}
	if _, err := tryGit(w.Top, "", "merge", "-q", string(w.ref(w.record.Ref("pending")))); err == nil {
		t.Error("a merge of the pending commit does not conflict")
	}
	if got := w.git("show", ":2:a") + w.git("show", ":3:a") + w.git("show", ":0:new"); got != "a of minea of the agent'snew" {
		t.Errorf("the merge: %q", got)
	}
	check(t, os.WriteFile(filepath.Join(w.Top, "a"), []byte("both\n"), 0o644))
	w.git("commit", "-q", "-a", "-m", "merged")
	if o := w.cycle(); o.Pending != 0 || len(o.Holds) != 0 {
		t.Fatalf("%+v", o)
	}
	if _, err := w.sync(); err != nil {
		t.Fatal(err)
	}
	w.commits("four", "four", "4\n")
	w.cycle()
	w.wantExact(t)
}

// TestSyncExcludes checks that excluded files never come in, and stay as the user has them.
func TestSyncExcludes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.mine("secret/key", "1\n")
	w.mine("b", "b\n")
	_, err := w.sync("secret/")
	check(t, err)
	if _, err := os.Lstat(filepath.Join(w.inner, "secret")); err == nil {
		t.Error("an excluded file came in")
	}
	if got := w.agent("log", "--all", "--format=%H", "--", "secret"); got != "" {
		t.Error("an excluded file is in the history")
	}
	w.commits("one", "one", "1\n")
	w.lands("one")
	w.mine("secret/key", "2\n")
	if _, err := w.sync("secret/"); !errors.Is(err, incoming.ErrNothing) {
		t.Fatal(err)
	}
	w.commits("two", "two", "2\n")
	w.lands("one two")
	if got := w.git("show", "HEAD:secret/key"); got != "2" {
		t.Errorf("%q", got)
	}
}

// TestSyncKilled checks that the record of a commit that the agent never got changes nothing.
func TestSyncKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.commits("one", "one", "1\n")
	w.cycle()
	w.mine("a", "mine\n")
	s, err := w.engine.Standing(t.Context())
	check(t, err)
	change, err := incoming.Find(t.Context(), w.engine, s, gitops.OID(strings.TrimSpace(w.agent("rev-parse", "main"))), nil)
	check(t, err)
	made, err := change.Make(t.Context(), w.engine, s)
	check(t, err)
	s.Close()
	w.commits("two", "two", "2\n")
	w.lands("one two")
	if got := w.git("show", "HEAD:a"); got != "mine" || noteValue(w.notes()[w.tip()], "Tree") != "merged" {
		t.Errorf("%q", got)
	}
	var refused *inner.Refused
	if err := workspace(w.inner).Finish(t.Context(), made.From, made.To); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	check(t, incoming.Close(w.engine.Dir(), false))
	_, err = w.sync()
	check(t, err)
	w.commits("three", "three", "3\n")
	w.lands("one two three")
	w.wantExact(t)
}

const sharedLines = 12

// syncModel holds the expected content: who edits which files, and which lines of the shared file, is fixed.
type syncModel struct {
	*world
	r    *rand.Rand
	n    int
	mine map[string]string // the user's files
	top  [3]string         // the user's lines
	log  []string
}

func (m *syncModel) next(what string) string {
	m.n++
	return fmt.Sprintf("%s %d", what, m.n)
}

func linesOf(t testing.TB, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	check(t, err)
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

func (m *syncModel) edit(top string, from int, name, text string) {
	check(m.t, os.WriteFile(filepath.Join(top, name), []byte(text+"\n"), 0o644))
	lines := linesOf(m.t, filepath.Join(top, "shared"))
	lines[from+m.r.IntN(3)] = text
	check(m.t, os.WriteFile(filepath.Join(top, "shared"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

// user commits as the user.
func (m *syncModel) user() {
	name, text := fmt.Sprintf("u%d", m.r.IntN(4)), m.next("user")
	m.edit(m.Top, 0, name, text)
	m.mine[name] = text
	copy(m.top[:], linesOf(m.t, filepath.Join(m.Top, "shared")))
	m.git("add", "-A", "--", name, "shared")
	m.git("commit", "-q", "-m", text)
}

// works commits as the agent, after it has perhaps rewritten its history.
func (m *syncModel) works() {
	depth := strings.Count(m.agent("rev-list", "--first-parent", "main"), "\n")
	text := m.next("agent")
	commit := []string{"commit", "-q", "-m", text}
	switch back := 1 + m.r.IntN(4); {
	case m.r.IntN(3) > 0 || depth <= back:
	case m.r.IntN(3) == 0:
		commit = append(commit, "--amend")
	case m.r.IntN(2) == 0:
		if _, err := tryGit(m.inner, "", "-c", "user.name=x", "-c", "user.email=x@y", "rebase", "-q", "--onto", fmt.Sprintf("HEAD~%d", back), fmt.Sprintf("HEAD~%d", back-1)); err != nil {
			m.agent("rebase", "--abort")
		}
	default:
		m.agent("reset", "-q", "--hard", fmt.Sprintf("HEAD~%d", back))
	}
	m.edit(m.inner, sharedLines-3, fmt.Sprintf("a%d", m.r.IntN(4)), text)
	m.agent("add", "-A")
	m.agent(commit...)
}

// wants compares the branch with the model: the user's files are the user's, and the others the agent's.
func (m *syncModel) wants(what string) {
	m.t.Helper()
	fail := func(format string, args ...any) {
		m.t.Helper()
		m.t.Fatalf("%s: %s\n%s\n%s\n%s", what, fmt.Sprintf(format, args...), strings.Join(m.log, " "), m.git("log", "--stat", "-3"), m.agent("log", "--stat", "-3"))
	}
	for name, text := range m.mine {
		if got := m.git("show", "HEAD:"+name); got != text {
			fail("%s is %q, not %q", name, got, text)
		}
	}
	lines := strings.Split(m.git("show", "HEAD:shared"), "\n")
	inside := strings.Split(strings.TrimSpace(m.agent("show", "main:shared")), "\n")
	for i := range 3 {
		if lines[i] != m.top[i] {
			fail("line %d is %q, not %q", i, lines[i], m.top[i])
		}
		if at := sharedLines - 3 + i; lines[at] != inside[at] {
			fail("line %d is %q, not %q", at, lines[at], inside[at])
		}
	}
	for i := range 4 {
		name := fmt.Sprintf("a%d", i)
		if out, in := m.git("ls-tree", "HEAD", name), strings.TrimSpace(m.agent("ls-tree", "main", name)); out != in {
			fail("%s is %q, not %q", name, out, in)
		}
	}
	if dirty := m.git("status", "--porcelain", "-uno"); dirty != "" {
		fail("the user's work tree: %s", dirty)
	}
}

// TestSyncOfAnyHistory makes random histories on both sides, with syncs at random moments.
func TestSyncOfAnyHistory(t *testing.T) {
	t.Parallel()
	seedsBelow(t, 12, 300, func(t *testing.T, seed int) {
		base := "1" + strings.Repeat("\nline", sharedLines-1) + "\n"
		m := &syncModel{world: newWorld(t, []string{"sha1", "sha256"}[seed%2], tree{"shared": plain(base), "u0": plain("u\n")}), r: rand.New(rand.NewPCG(uint64(seed), 7)), mine: map[string]string{}}
		copy(m.top[:], linesOf(t, filepath.Join(m.Top, "shared")))
		synced, exact := 0, false
		for range 14 {
			switch m.r.IntN(5) {
			case 0, 1:
				m.log = append(m.log, "user")
				m.user()
				exact = false
			case 2, 3:
				before := strings.TrimSpace(m.agent("rev-parse", "main"))
				m.works()
				went := strings.TrimSpace(m.agent("rev-list", "main", "^"+before)) != "" && strings.TrimSpace(m.agent("merge-base", "main", before)) == before
				m.log = append(m.log, fmt.Sprintf("agent(%v)", went))
				exact = exact && went // after a rewrite, both sides differ until the next sync
				if m.r.IntN(3) == 0 {
					continue // several commits before a cycle
				}
				o := m.cycle()
				if o.Pending != 0 || len(o.Holds) != 0 {
					t.Fatalf("%s: %+v", m.log, o)
				}
				m.wants("landed")
				if exact {
					m.wantExact(t)
				}
			default:
				_, err := m.sync()
				m.log = append(m.log, fmt.Sprintf("sync(%v)", err))
				if err != nil && !errors.Is(err, incoming.ErrNothing) && !errors.Is(err, incoming.ErrBehind) {
					t.Fatalf("%s: %v", m.log, err)
				}
				if err == nil {
					synced++
					if in, out := strings.TrimSpace(m.agent("rev-parse", "main^{tree}")), m.git("rev-parse", "HEAD^{tree}"); in != out {
						t.Fatalf("%s: %s inside, %s outside", m.log, in, out)
					}
					exact = true
				}
				m.wants("synced")
			}
		}
		m.nothingLeft()
		t.Logf("%d syncs", synced)
	})
}
