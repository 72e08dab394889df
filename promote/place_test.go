package promote_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/ledger"
)

// numbered is a file of ten lines, of which the agent changes one.
func numbered(line int, text string) string {
	lines := strings.Split("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "\n")
	if line > 0 {
		lines[line-1] = text
	}
	return strings.Join(lines, "\n")
}

// TestPlaceHasNoPartOfTheChange lets a commit of the agent wait because of a conflict in k. The branch, or an older commit of it, has another part of
// the change already: the commit before has made it and was amended or taken back, or the user has merged it. The pending commit has the whole change
// all the same, and so has the branch after the user's merge.
func TestPlaceHasNoPartOfTheChange(t *testing.T) {
	notShort(t)
	t.Parallel()
	// landed lets three commits of the agent land, and then the user change k.
	landed := func(w *world) {
		w.commits("A", "g", numbered(5, "AGENT"))
		w.commits("A2", "f", numbered(1, "TWO"))
		w.commits("A3", "z", "z\n")
		w.cycle()
		w.mine("k", numbered(1, "MINE"))
	}
	again := func(w *world, g string) {
		w.agent("reset", "-q", "--hard", "HEAD~3")
		w.commits("X1", "g", numbered(5, g))
		plain(numbered(1, "TWO")).write(t, w.inner+"/f")
		w.commits("X2", "k", numbered(1, "THEIRS"))
		w.commits("A3", "z", "z\n")
		w.cycle()
	}
	merged := func(w *world, keep string) {
		w.mine("k", numbered(1, "MINE"))
		plain(numbered(5, "FIVE")).write(t, w.inner+"/f")
		w.commits("D", "k", numbered(1, "AGENT"))
		w.cycle()
		w.keeps("k", keep)
		w.cycle()
		w.commits("Z", "z", "z\n")
		w.cycle()
		plain(numbered(0, "")).write(t, w.inner+"/f")
	}
	for name, c := range map[string]struct {
		work func(w *world)
		want string // files of the first pending commit
	}{
		"a later commit of a rewritten history":  {func(w *world) { landed(w); again(w, "AGENT") }, "f k"},
		"a later commit of a changed history":    {func(w *world) { landed(w); again(w, "OTHER") }, "f k"},
		"taken back after a merge of both":       {func(w *world) { merged(w, "MINE\nAGENT"); w.commits("R", "k", numbered(0, "")) }, "f k"},
		"taken back after a merge of the user's": {func(w *world) { merged(w, "MINE"); w.commits("R", "k", numbered(0, "")) }, "f k"},
		"taken back after a merge, and more": {func(w *world) {
			merged(w, "MINE\nAGENT")
			plain("x\n").write(t, w.inner+"/x")
			w.commits("R", "k", numbered(0, ""))
		}, "f k x"},
		"taken back with a newer commit": {func(w *world) {
			merged(w, "MINE\nAGENT")
			w.commits("R", "k", numbered(0, ""))
			w.commits("more", "more", "more\n")
		}, "f k"},
		"the user's own, in an older commit": {func(w *world) {
			w.mine("f", numbered(5, "FIVE"))
			w.mine("k", numbered(1, "MINE"))
			plain(numbered(5, "FIVE")).write(t, w.inner+"/f")
			w.commits("D", "k", numbered(1, "AGENT"))
		}, "f k"},
		"the user's own, in the commit that conflicts": {func(w *world) {
			plain(numbered(5, "FIVE")).write(t, w.Top+"/f")
			w.git("add", "f")
			w.mine("k", numbered(1, "MINE"))
			plain(numbered(5, "FIVE")).write(t, w.inner+"/f")
			w.commits("D", "k", numbered(1, "AGENT"))
		}, "f k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"f": plain(numbered(0, "")), "g": plain(numbered(0, "")), "k": plain(numbered(0, ""))})
			c.work(w)
			if o := w.cycle(); !o.Held(ledger.Conflict) {
				t.Fatalf("%+v", o)
			}
			first := strings.Fields(w.git("rev-list", "--reverse", "..."+w.record.Ref("pending"), "--right-only"))[0]
			if got := strings.Fields(w.git("diff-tree", "-r", "--no-commit-id", "--name-only", first)); strings.Join(got, " ") != c.want {
				t.Errorf("the pending commit changes %q", got)
			}
			if got := w.resolves(); got != "k" {
				t.Errorf("the user had to merge %q", got)
			}
			if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
				t.Errorf("%+v", o)
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestMergeNamesWhatItLacks lets a line of the agent land on top of one of the user's commits. The agent takes the line back, in a commit that conflicts with
// the user's. No older commit of the branch has the line, so the hold and the merge name the file. The user makes the rest of the change, and then the
// branch has what the agent has.
func TestMergeNamesWhatItLacks(t *testing.T) {
	notShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		first, back map[int]string // the agent's lines of f in a commit before, if any, and in the one that takes SIX back
		then        func(w *world) // before the merge
		lacks       bool
	}{
		"alone":                         {nil, nil, nil, true},
		"with another line":             {nil, map[int]string{15: "NEW"}, nil, true},
		"and then a commit of the user": {nil, nil, func(w *world) { w.mine("own", "own\n") }, true},
		"and then one of the agent":     {nil, nil, func(w *world) { w.commits("more", "more", "more\n") }, true},
		"in the second commit":          {map[int]string{6: "SIX"}, nil, nil, false}, // it waits, and is built whole
		"as the user does":              {nil, nil, func(w *world) { w.mine("f", list(nil)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"f": plain(list(nil)), "k": plain("k\n")})
			w.mine("k", "mine\n")
			w.commits("M", "f", list(map[int]string{6: "SIX"}))
			w.cycle()
			if c.first != nil {
				plain("first\n").write(t, w.inner+"/k")
				w.commits("first", "f", list(c.first))
			}
			plain("theirs\n").write(t, w.inner+"/k")
			w.commits("back", "f", list(c.back))
			o := w.cycle()
			if c.then != nil {
				c.then(w)
				w.cycle()
				o = w.cycle()
			}
			lacks := false
			for ; o.Held(ledger.Conflict); o = w.cycle() {
				lacks = lacks || strings.Contains(o.Of(ledger.Conflict)[0].Message, "cannot bring all of the agent's change of f,")
				w.resolves(o.Holds...)
			}
			if lacks != c.lacks || o.Pending > 0 || len(o.Holds) > 0 {
				t.Errorf("named: %t, %+v", lacks, o)
			}
			if got := w.git("show", "HEAD:f") + "\n"; got != list(c.back) {
				t.Errorf("the branch has\n%s", got)
			}
			w.nothingLeft()
		})
	}
}

// TestConflictOfAmend lets the agent amend a landed commit so that it conflicts, and commit more. The commit after it lands first and undoes the
// landed one. So the change that the amended commit repeats is in the pending commit, and the user's merge brings it.
func TestConflictOfAmend(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(w *world, more func()){
		"together":   func(w *world, more func()) { more(); w.cycle() },
		"afterwards": func(w *world, more func()) { w.cycle(); more(); w.cycle() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sha1", tree{"g": plain("g\n"), "k": plain("k\n")})
			w.commits("A", "g", "agent\n")
			w.wantLanded("A")
			w.mine("k", "mine\n")
			plain("theirs\n").write(t, w.inner+"/k")
			w.agent("commit", "-q", "-a", "--amend", "-m", "A2")
			work(w, func() { w.commits("B", "b", "b\n") })
			if o := w.wantLanded("B mine: k A"); !o.Held(ledger.Conflict) {
				t.Fatalf("%+v", o)
			}
			if got := w.git("diff-tree", "-r", "--no-commit-id", "--name-only", w.record.Ref("pending")); got != "g\nk" {
				t.Errorf("the pending commit changes %q", got)
			}
			if got := w.resolves(); got != "k" {
				t.Errorf("the user had to merge %q", got)
			}
			if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
				t.Errorf("%+v", o)
			}
			w.wantSameTrees()
			w.nothingLeft()
		})
	}
}

// TestRandomRewritesInConflict lets the agent amend, take back and make again commits that have landed, while the user changes a file that some of them
// change, too. The user merges each conflict. When nothing is left to land, the branch has what the agent has, but for that file.
func TestRandomRewritesInConflict(t *testing.T) {
	t.Parallel()
	eachSeed(t, seeds(t, few(1, 10)), func(t *testing.T, format string, seed uint64) {
		files := tree{"k": plain("k\n")}
		for n := range 4 {
			files[fmt.Sprint("g", n)] = plain("0\n")
		}
		w, r := newWorld(t, format, files), rand.New(rand.NewPCG(seed, 41))
		resolved, whole := 0, 0
		for n := range 30 {
			switch pick := r.IntN(12); {
			case pick < 2:
				w.mine("k", fmt.Sprint("mine ", n, "\n"))
			case pick == 2:
				w.mine("own", fmt.Sprint("own ", n, "\n"))
			default:
				w.rewrites(r, fmt.Sprint(n))
			}
			if r.IntN(3) == 0 {
				continue
			}
			for o := w.cycle(); o.Held(ledger.Conflict); o = w.cycle() {
				if resolved++; resolved > 90 {
					t.Fatalf("%+v\n%s\n%s", o, w.git("log", "--graph", "--stat", "--format=%h %s", w.record.Branch, w.record.Ref("pending")), w.agent("log", "--stat", "--format=%h %s"))
				}
				w.resolves(o.Holds...)
			}
			if s := w.state(); s.Pending > 0 || len(s.Holds) > 0 {
				t.Fatalf("%+v", s)
			}
			whole++
			if got, want := w.git("ls-tree", "HEAD", "g0", "g1", "g2", "g3"), w.agent("ls-tree", "HEAD", "g0", "g1", "g2", "g3"); got != want {
				t.Fatalf("step %d: the branch has\n%s\nwant\n%s\n%s\n%s", n, got, want, w.git("log", "--graph", "-p", "-U0", "--format=%h %s", "HEAD"), w.agent("log", "-p", "-U0", "--format=%h %s"))
			}
		}
		t.Logf("%d conflicts, %d whole branches", resolved, whole)
	})
}

// rewrites lets the agent go back a few commits, or amend the newest one, now and then, and then make some commits. A file has one of three contents,
// so that a commit often takes another one back, or makes it again.
func (w *world) rewrites(r *rand.Rand, name string) {
	w.t.Helper()
	change := func() {
		plain(fmt.Sprint(r.IntN(3), "\n")).write(w.t, fmt.Sprint(w.inner, "/g", r.IntN(4)))
		if r.IntN(4) == 0 {
			plain("theirs "+name+"\n").write(w.t, w.inner+"/k")
		}
	}
	amend := "--allow-empty"
	switch made := len(strings.Fields(w.agent("rev-list", "--first-parent", "HEAD"))) - 1; {
	case made > 0 && r.IntN(4) == 0:
		w.agent("reset", "-q", "--hard", fmt.Sprint("HEAD~", 1+r.IntN(min(made, 3))))
	case made > 0 && r.IntN(4) == 0:
		amend = "--amend"
	}
	for n := range 1 + r.IntN(3) {
		change()
		w.agent("commit", "-q", "-a", "--allow-empty", amend, "-m", fmt.Sprint("agent ", name, ".", n))
		amend = "--allow-empty"
	}
}

// keeps merges the first conflicting commit. The user's form of a file begins with some lines in place of its first one.
func (w *world) keeps(file, first string) {
	w.t.Helper()
	_, merging, err := w.engine.Resolve(w.t.Context())
	if check(w.t, err); !merging {
		w.t.Fatal("there is nothing to merge")
	}
	plain(numbered(1, first)).write(w.t, w.Top+"/"+file)
	w.git("add", file)
	w.git("commit", "-q", "-m", "resolved")
}
