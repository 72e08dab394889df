package promote_test

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestPlaceOfMerge lets a merge of the agent conflict by its own change with a commit of the user. The side branch of
// that merge begins at the user's commit, or at a commit that landed on top of it. The merge waits on an older commit of the branch. When the user
// merges it, no file is removed.
func TestPlaceOfMerge(t *testing.T) {
	notShort(t)
	t.Parallel()
	side := func(w *world, name, at string) {
		w.agent("switch", "-q", "-c", name, at)
		w.commits(name, name, name+"\n")
		w.agent("switch", "-q", "main")
	}
	for name, sides := range map[string]func(w *world) []string{
		"side":    func(w *world) []string { side(w, "side", "main"); return []string{"side"} },
		"octopus": func(w *world) []string { side(w, "one", "main"); side(w, "two", "main"); return []string{"one", "two"} },
		"older": func(w *world) []string {
			side(w, "one", "main")
			side(w, "two", "main~1")
			return []string{"two", "one"}
		},
		"brought": func(w *world) []string {
			w.agent("fetch", "-q", w.Top, "main")
			side(w, "side", "FETCH_HEAD")
			return []string{"side"}
		},
		"user's": func(w *world) []string {
			w.agent("fetch", "-q", w.Top, "main")
			return []string{"FETCH_HEAD"}
		},
	} {
		for _, more := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " and more"}[more], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "sha1", tree{"k": plain("k\n")})
				w.commits("older", "older", "older\n")
				w.cycle()
				w.mine("precious", "mine\n")
				w.mine("k", "mine\n")
				w.commits("landed", "landed", "landed\n")
				w.cycle()
				files := sides(w)
				w.agent(append([]string{"merge", "-q", "--no-ff", "--no-commit", "--allow-unrelated-histories", "-X", "ours"}, files...)...)
				w.commits("merge", "k", "theirs\n")
				if more {
					w.commits("more", "more", "more\n")
				}
				if o := w.cycle(); !o.Held(ledger.Conflict) || w.ref(w.record.Ref("pending")) == "" {
					t.Fatalf("%+v", o)
				}
				if got := w.resolves(); got != "k" {
					t.Errorf("the user had to merge %q", got)
				}
				if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
					t.Errorf("%+v", o)
				}
				has := " " + strings.ReplaceAll(w.git("ls-tree", "--name-only", "HEAD"), "\n", " ") + " "
				for _, file := range append(strings.Fields(w.agent("ls-tree", "--name-only", "HEAD")), "precious") {
					if !strings.Contains(has, " "+file+" ") {
						t.Errorf("the branch has%sand not %s", has, file)
					}
				}
				w.nothingLeft()
			})
		}
	}
}
