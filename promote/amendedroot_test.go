package promote_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/hold"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestResolveAboveRewrittenRoot lets the user rewrite the root commit of the branch, so that the branch and the conflicting commit have no commit in
// common. The merge shows the conflict, and nothing else: it keeps what landed, what the user has rewritten, and what the user has removed.
func TestResolveAboveRewrittenRoot(t *testing.T) {
	t.Parallel()
	lines := func(first, last string) string { return first + "\n" + strings.Repeat("line\n", 8) + last + "\n" }
	for name, c := range map[string]struct{ landed, after bool }{"amends": {true, false}, "rewrites what landed": {true, true}, "nothing landed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"f": plain(lines("1", "9")), "k": plain(lines("1", "9")), "gone": plain("gone\n"), "moved": plain(lines("moved", "9"))})
			write := func(name, content string) { check(t, os.WriteFile(filepath.Join(w.Top, name), []byte(content), 0o644)) }
			rewrite := func() {
				write("k", lines("MINE", "9"))
				w.git("rm", "-q", "gone")
				w.git("mv", "moved", "there")
				w.git("commit", "-q", "-a", "--amend", "-m", "base")
			}
			if !c.after {
				rewrite()
			}
			if c.landed {
				w.commits("T", "f", lines("1", "T"))
				w.cycle()
			}
			if landed := w.git("rev-parse", "HEAD"); c.after {
				w.git("reset", "-q", "--hard", string(w.record.Base))
				rewrite()
				w.git("cherry-pick", landed)
			}
			plain(lines("moved", "AGENT")).write(t, w.inner+"/moved")
			w.commits("A", "k", lines("AGENT", "AGENT"))
			if o := w.cycle(); !o.Held(ledger.Conflict) || o.Pending != 1 || !strings.Contains(o.Holds[0].Next[0], "may bring back") {
				t.Fatalf("%+v", o)
			}
			write("there", "not committed\n")
			before := w.everything()
			if _, _, err := w.engine.Resolve(t.Context()); w.everything() != before {
				t.Fatalf("%v, and the repository has changed:\n%s", err, w.everything())
			} else if held, ok := errors.AsType[*hold.Error](err); !ok || !slices.Equal(held.Hold.Paths, []string{"there"}) {
				t.Fatalf("%v", err)
			}
			w.git("checkout", "-q", "there")
			if _, merging, err := w.engine.Resolve(t.Context()); err != nil || !merging {
				t.Fatalf("%t, %v", merging, err)
			}
			if got := w.git("status", "--porcelain", "--untracked-files=no"); got != "UU k\nM  there" {
				t.Errorf("the merge has %q", got)
			}
			if got := w.git("show", ":2:k", ":3:k") + "\n"; got != lines("MINE", "9")+lines("AGENT", "AGENT") {
				t.Errorf("the sides have %q", got)
			}
			write("k", lines("BOTH", "AGENT"))
			w.git("commit", "-q", "-a", "-m", "merged")
			w.commits("next", "next", "next\n")
			if o := w.cycle(); len(o.Holds) > 0 || o.Pending > 0 || w.git("log", "-1", "--format=%s") != "next" {
				t.Errorf("%+v", o)
			}
			want := lines("1", "9")
			if c.landed {
				want = lines("1", "T")
			}
			if got := w.git("show", "HEAD:f") + "\n"; got != want || w.files() != "f k next there" {
				t.Errorf("f has %q, and the branch has %q", got, w.files())
			}
			_, err := w.sync()
			check(t, err)
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}
