package promote_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestConflictWithUserNeedsNoRejectedCommit rejects random commits and approves the others, while the user's commits conflict with some. Each
// commit rewrites one of a few files, so that it needs exactly the commits before it that rewrite the same file. Only those that follow a rejected
// commit of their file are blocked. The user can merge the others, whichever commits are rejected.
func TestConflictWithUserNeedsNoRejectedCommit(t *testing.T) {
	notShort(t)
	t.Parallel()
	for _, seed := range seeds(t, few(3, 8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 11))
			base, files := tree{}, []string{"f0", "f1", "f2", "f3"}
			for _, name := range files {
				base[name] = plain(name + "\n")
			}
			w := newWorld(t, "sha1", base)
			w.git("config", "airlock.review", "land")
			mine, rejected, of := map[string]bool{}, map[string]bool{}, map[string]string{}
			var names []string
			for i := range 5 + r.IntN(5) {
				name := fmt.Sprint("c", i)
				names, of[name] = append(names, name), files[r.IntN(len(files))]
				w.commits(name, of[name], name+"\n")
			}
			for _, name := range files[:1+r.IntN(2)] {
				mine[name] = true
				w.mine(name, "mine\n")
			}
			w.cycle()
			say := func(word review.Word, name string) {
				w.verdict(word, "because", name)
				if r.IntN(2) == 0 {
					w.cycle()
				}
			}
			for _, i := range r.Perm(len(names)) {
				if rejected[names[i]] = r.IntN(3) == 0; rejected[names[i]] {
					say(review.Reject, names[i])
				} else {
					say(review.Approve, names[i])
				}
			}
			w.cycle()
			w.cycle() // the one after a landing builds what conflicts
			var want, blocked, conflicting []string
			for i, name := range names {
				switch refused := func(n string) bool { return rejected[n] && of[n] == of[name] }; {
				case rejected[name]:
					want = append(want, name+":rejected")
				case slices.ContainsFunc(names[:i], refused):
					want, blocked = append(want, name+":blocked"), append(blocked, name)
				case mine[of[name]]:
					want, conflicting = append(want, name+":approved"), append(conflicting, name)
				}
			}
			got := strings.Fields(w.states())
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Fatalf("states %q, want %q\nof %v, mine %v, %+v", got, want, of, mine, w.state())
			}
			for _, name := range blocked {
				w.verdict(review.Reject, "needs another", name)
			}
			o := w.cycle()
			if o.Held(ledger.Conflict) != (len(conflicting) > 0) {
				t.Fatalf("%+v", o)
			}
			if len(conflicting) == 0 {
				return
			}
			step, merging, err := w.engine.Resolve(t.Context())
			if err != nil || !merging || w.git("log", "-1", "--format=%s", string(step)) != conflicting[0] {
				t.Errorf("resolving %q: %s, %t, %v; %+v", conflicting, step, merging, err, o)
			}
		})
	}
}

// TestConflictBesideRejectedCommit rejects a commit of another file, and lands a change on which a conflicting commit is built. The conflicting
// commit applies neither to what has landed nor to the base, and the user can merge it all the same.
func TestConflictBesideRejectedCommit(t *testing.T) {
	t.Parallel()
	lines := func(first, last string) string { return first + "\n2\n3\n4\n5\n6\n" + last + "\n" }
	w := newWorld(t, "sha1", tree{"f": plain(lines("1", "7"))})
	w.git("config", "airlock.review", "land")
	w.commits("d", "d", "d\n")
	w.commits("a", "f", lines("A", "7"))
	w.mine("f", lines("1", "mine"))
	w.cycle()
	w.verdict(review.Reject, "because", "d")
	w.verdict(review.Approve, "", "a")
	w.cycle()
	w.commits("c", "f", lines("A2", "theirs"))
	w.commits("x", "x", "x\n")
	w.cycle()
	w.verdict(review.Approve, "", "c", "x")
	w.cycle()
	o := w.cycle()
	if got := w.subjects(); !strings.HasPrefix(got, "x a ") || !o.Held(ledger.Conflict) {
		t.Fatalf("landed %q, %+v", got, o)
	}
	step, merging, err := w.engine.Resolve(t.Context())
	if err != nil || !merging || w.git("log", "-1", "--format=%s", string(step)) != "c" {
		t.Fatalf("%s, %t, %v; %+v", step, merging, err, o)
	}
	if _, err := os.Stat(filepath.Join(w.Top, "d")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the merge has the rejected file: %v", err)
	}
}

// TestNeedsAreBounded rejects so many commits that only the first of the commits which conflict with the user are examined for a need of these.
// The others count as blocked, so that a list of the review makes a bounded number of merges.
func TestNeedsAreBounded(t *testing.T) {
	notShort(t)
	t.Parallel()
	const refused, conflicting = 60, 5 // more than 200 together, in commits times commits
	w := newWorld(t, "sha1", tree{"u": plain("u\n")})
	w.git("config", "airlock.review", "land")
	var names []string
	for i := range refused {
		names = append(names, fmt.Sprint("d", i))
		w.commits(names[i], names[i], "d\n")
	}
	w.mine("u", "mine\n")
	w.cycle()
	w.verdict(review.Reject, "because", names...)
	names = nil
	for i := range conflicting {
		names = append(names, fmt.Sprint("c", i))
		w.commits(names[i], "u", names[i]+"\n")
	}
	w.commits("x", "x", "x\n")
	w.cycle()
	w.verdict(review.Approve, "", append(names, "x")...)
	w.cycle()
	got := w.states()
	if !strings.Contains(got, "c0:approved") || !strings.Contains(got, "c2:approved") || !strings.Contains(got, "c4:blocked") {
		t.Errorf("%q", got)
	}
}
