package promote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/review"
)

// TestUndoneDoesNotComeBackAsAnAncestor lets the user remove or rewrite a landed commit, and prune it. A side branch
// of the agent that forked from that commit must land without it.
func TestUndoneDoesNotComeBackAsAnAncestor(t *testing.T) {
	for name, how := range map[string]struct {
		rebase string // the editor of the todo list
		gone   bool   // the commit is also pruned
	}{
		"dropped":  {"sed -i /secret/d", false},
		"pruned":   {"sed -i /secret/d", true},
		"reworded": {"sed -i 's/^pick .* later/edit &/;s/edit pick/edit/'", false},
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+" "+format, func(t *testing.T) {
				w := newWorld(t, format, tree{"a": plain("a\n")})
				add := func(file string) {
					check(t, os.WriteFile(filepath.Join(w.inner, file), []byte(file+"\n"), 0o644))
					git(t, w.inner, "add", file)
					git(t, w.inner, "commit", "-q", "-m", file)
				}
				add("first")
				add("secret")
				add("later")
				git(t, w.inner, "branch", "side")
				add("last")
				w.cycle()
				undone := []string{w.git("rev-parse", "main~2"), w.git("rev-parse", "main~1")}
				t.Setenv("GIT_SEQUENCE_EDITOR", how.rebase)
				w.git("rebase", "-q", "-i", string(w.record.Base))
				if name == "reworded" {
					w.git("commit", "-q", "--amend", "--reset-author", "--no-edit", "--date=@1700000000 +0000")
					w.git("rebase", "--continue")
					undone = undone[1:]
				}
				before := w.git("rev-parse", "main")
				if how.gone {
					w.cycle()
					add("more") // moves the airlock's ref past the commit that the user has undone
					w.cycle()
					before = w.git("rev-parse", "main")
					w.git("reflog", "expire", "--expire=now", "--all")
					w.git("gc", "-q", "--prune=now")
				}
				git(t, w.inner, "switch", "-q", "side")
				add("beside")
				git(t, w.inner, "switch", "-q", "main")
				git(t, w.inner, "merge", "-q", "--no-ff", "-m", "merge", "side")
				o := w.cycle()
				if len(o.Holds) > 0 || o.Pending > 0 {
					t.Fatalf("%+v", o)
				}
				reached := w.git("rev-list", "main")
				for _, id := range undone {
					if strings.Contains(reached, id) {
						t.Errorf("%s is an ancestor again\n%s", id, w.git("log", "--graph", "--oneline", "main"))
					}
				}
				if name != "reworded" {
					if got := w.git("log", "--format=%s", "main", "--", "secret"); got != "" {
						t.Errorf("the secret is in the history again, by %q", got)
					}
				}
				if got := w.git("rev-parse", "main^1"); got != before {
					t.Errorf("main^1 is %s, want %s", got, before)
				}
				w.git("cat-file", "-e", "main:beside")
				w.nothingLeft()
			})
		}
	}
}

// TestUndoneBelowALeftOutCommit lets the user remove a landed commit. A side branch of the agent begins at a commit that was rejected after
// the removed one, or waits, and lands without either.
func TestUndoneBelowALeftOutCommit(t *testing.T) {
	t.Parallel()
	for format, rejected := range map[string]bool{"sha1": true, "sha256": false} {
		w := newWorld(t, format, tree{"a": plain("a\n")})
		w.git("config", "airlock.review", "land")
		for _, name := range []string{"first", "secret", "left"} {
			w.commits(name, name, name+"\n")
		}
		w.agent("branch", "side")
		w.commits("last", "last", "last\n")
		w.cycle()
		if rejected {
			w.verdict(review.Reject, "no", "left")
		}
		w.verdict(review.Approve, "", "first", "secret", "last")
		w.cycle()
		if got := w.subjects(); got != "last secret first" {
			t.Fatalf("landed %q", got)
		}
		removed := w.git("rev-parse", "main~1")
		w.git("rebase", "-q", "--onto", "main~2", "main~1", "main")
		w.agent("switch", "-q", "side")
		w.commits("beside", "beside", "beside\n")
		w.agent("switch", "-q", "main")
		w.agent("merge", "-q", "--no-ff", "-m", "merge", "side")
		w.cycle()
		w.verdict(review.Approve, "", "beside", "merge")
		if o := w.cycle(); o.Pending > 0 && rejected {
			t.Fatalf("%s: %+v, states %q", format, o, w.states())
		}
		log := w.git("log", "--format=%H %s", "main")
		if strings.Contains(log, removed) || strings.Contains(log, " secret") || !strings.Contains(log, " merge") || !strings.Contains(log, " beside") {
			t.Errorf("%s: %s\n%s", format, removed, w.git("log", "--graph", "--oneline", "main"))
		}
		if got := w.git("ls-tree", "--name-only", "main"); got != "a\nbeside\nfirst\nlast" {
			t.Errorf("%s: files %q", format, got)
		}
	}
}
