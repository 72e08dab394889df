package inner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// pulled is a repository with two commits, of which main is at the first.
type pulled struct {
	t        *testing.T
	dir      string
	old, new gitops.OID
}

func (p pulled) sh(script string) string {
	p.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %s", script, out)
	}
	return strings.TrimSpace(string(out))
}

// workspace runs the scripts, with a shell prelude before them.
func (p pulled) workspace(prelude string) Workspace {
	return Workspace{Dir: p.dir, Run: func(ctx context.Context, r Process) (int, error) {
		argv := slices.Clone(r.Argv)
		if argv[0] == "sh" {
			argv[2] = prelude + argv[2]
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = p.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir}, r.Env...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Stdin, r.Stdout, r.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // as a prison does
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if errors.As(err, &exit) {
			return exit.ExitCode(), nil
		}
		return 0, err
	}}
}

const pulledFirst = `git init -q -b main .
mkdir -p d/e f k; echo k >k/old; echo 1 >mod; echo 1 >gone; echo 1 >d/e/gone; echo 1 >file; echo 1 >f/inner; echo same >same; ln -s same link; echo x >"od\"d é"
echo '*.o' >.gitignore; git add .
mkdir -p s/moved s/tofile s/gone s/deep/in; echo 1 >s/tomodule; git add s/tomodule
for m in moved tofile gone deep/in; do git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,s/$m; done; git commit -qm old`

const pulledSecond = `git rm -q gone d/e/gone file; rm -rf f; echo 2 >mod; mkdir file; echo 2 >file/in; echo 2 >f; mkdir -p n/m; echo new >n/m/new; echo k >k/new; ln -sf mod link; chmod +x mod; echo y >"od\"d é"; echo o >n/x.o
git rm -rq --cached s; rm -rf s; mkdir -p s; echo 2 >s/tofile; echo 2 >s/deep; git add -f .
for m in moved tomodule; do git update-index --add --cacheinfo 160000,2222222222222222222222222222222222222222,s/$m; done; mkdir s/moved s/tomodule; git commit -qm new; git rev-parse HEAD; git reset -q --hard HEAD~; rm -rf n`

func newPulled(t *testing.T) pulled {
	t.Helper()
	p := pulled{t: t, dir: t.TempDir()}
	p.sh(pulledFirst)
	p.old = gitops.OID(p.sh("git rev-parse HEAD"))
	p.new = gitops.OID(p.sh(pulledSecond))
	return p
}

// at checks that everything is at a commit, and nothing is left behind.
func (p pulled) at(id gitops.OID) {
	p.t.Helper()
	p.sh(fmt.Sprintf(`test "$(git rev-parse main)" = %s; git status --porcelain -uno; ls .git/; git diff --quiet HEAD; git diff --cached --quiet; ! ls .git/index.*; git fsck --strict`, id))
}

// TestAdvance moves main with its files, whatever hooks the agent has configured.
func TestAdvance(t *testing.T) {
	t.Parallel()
	p := newPulled(t)
	p.sh("echo o >mine.o; echo loose >loose; echo in >s/gone/in; git config hook.x.event reference-transaction; git config hook.x.command false")
	if err := p.workspace("").Advance(t.Context(), p.old, p.new); err != nil {
		t.Fatal(err)
	}
	p.at(p.new)
	p.sh(`test -x mod; test "$(readlink link)" = mod; test ! -e d; test -f f; cat mine.o loose s/gone/in`)
}

// TestAdvanceKeepsWork moves main beside changes of other files that are not committed, and beside marks in the index.
func TestAdvanceKeepsWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before string }{
		{"edited", "echo edit >>same"},
		{"edited with the same size and time", "touch -r same .git/time; echo emas >same; touch -r .git/time same"},
		{"removed", "rm same"},
		{"a folder in its place", "rm same; mkdir same; echo in >same/in"},
		{"a link in its place", "ln -sf nowhere same"},
		{"a folder that gets a file", "rm -r k"},
		{"another mode", "chmod +x same"},
		{"a folder of the removed files' has more", "echo new >d/e/new; echo new >d/new"},
		{"assumed to be unchanged", "git update-index --assume-unchanged same; echo edit >>same"},
		{"files in a submodule that moves", "echo in >s/moved/in"},
		{"folders in the place of files", "mkdir -p s/tofile/a/b s/deep/in/a s/deep/b n/m/new/a"},
		{"not checked out", "git update-index --skip-worktree same; echo edit >>same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPulled(t)
			p.sh(c.before)
			const kept = `git ls-files -s -v same; git diff HEAD; git status --porcelain -uall; for f in same same/in d/e/new d/new s/moved/in; do ls -dl --time-style=full-iso $f && cat $f || :; done 2>&1`
			before := p.sh(kept)
			if err := p.workspace("").Advance(t.Context(), p.old, p.new); err != nil {
				t.Fatal(err)
			}
			if after := p.sh(kept); after != before {
				t.Errorf("changed:\n%s\n---\n%s", before, after)
			}
			p.sh(fmt.Sprintf(`test "$(git rev-parse main)" = %s; git diff --cached --quiet HEAD; ! ls .git/index.*; test "$(cat mod n/m/new file/in)" = "$(printf '2\nnew\n2')"; test ! -e gone`, p.new))
		})
	}
}

// TestAdvanceSparse moves main in a sparse checkout, and with marks of the same kind on single files. The files that are not there stay away,
// and new ones outside as well.
func TestAdvanceSparse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, before, after string }{
		{"sparse", "git sparse-checkout set --no-cone '/*' '!/d/' '!/k/' '!/mod' '!/od*'", `test ! -e d; test ! -e k; git ls-files -t k/new | grep "^S "; test -e n/m/new; test ! -e mod; test ! -e od*; test "$(cat f)" = 2; git ls-files -t mod k/old | grep -c "^S " | grep 2`},
		{"sparse with folders", "git sparse-checkout set --cone --sparse-index k", `test ! -e d; test ! -e f/inner; test ! -e n; test ! -e file; git ls-files -t n/m/new n/x.o file/in | grep -c "^S " | grep 3; test "$(cat k/new mod)" = "$(printf "k\n2")"`},
		{"without patterns", "git sparse-checkout set k; rm .git/info/sparse-checkout", `test -e n/m/new; test "$(cat k/new)" = k`},
		{"marked", "git update-index --skip-worktree mod gone link same", `test "$(cat mod)" = 2; test ! -e gone; git ls-files -t mod link same | grep -c "^S " | grep 3`},
		{"marked, with another time", "git update-index --skip-worktree mod gone; touch -d 2001-01-01 mod gone", `test "$(cat mod)" = 2; test ! -e gone; git ls-files -t mod | grep "^S "`},
		{"marked and removed", "git update-index --skip-worktree mod gone; rm mod gone", `test ! -e mod; test ! -e gone; git ls-files -t mod | grep "^S "`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPulled(t)
			p.sh(c.before)
			if err := p.workspace("").Advance(t.Context(), p.old, p.new); err != nil {
				t.Fatal(err)
			}
			p.at(p.new)
			p.sh(c.after)
		})
	}
}

// TestAdvanceRefuses checks that nothing changes if something is in the way.
func TestAdvanceRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before string
		want         Obstacle
		path         string
	}{
		{"merge", "echo >.git/MERGE_HEAD", Unfinished, "MERGE_HEAD"},
		{"branch", "git checkout -q -b other", Elsewhere, ""},
		{"detached", "git checkout -q --detach", Elsewhere, ""},
		{"moved", "git commit -q --allow-empty -m more", Moved, ""},
		{"locked", "echo >.git/index.lock", Locked, ""},
		{"edited", "echo edit >>same; echo edit >>mod", Uncommitted, "mod"},
		{"edited, of those that go", "echo edit >>gone", Uncommitted, "gone"},
		{"edited with the same size", "echo 3 >mod", Uncommitted, "mod"},
		{"edited, and assumed to be unchanged", "git update-index --assume-unchanged mod; echo edit >>mod", Uncommitted, "mod"},
		{"another mode", "chmod +x gone", Uncommitted, "gone"},
		{"edited, and not checked out", "git update-index --skip-worktree mod; echo edit >>mod", Uncommitted, "mod"},
		{"edited, of those that go, and not checked out", "git update-index --skip-worktree gone; echo edit >>gone", Uncommitted, "gone"},
		{"removed", "rm mod", Uncommitted, "mod"},
		{"removed with its folder", "rm -r d", Uncommitted, "d/e/gone"},
		{"replaced by a folder", "rm mod; mkdir mod; echo mine >mod/in", Uncommitted, "mod"},
		{"below a link", "mv d .git/d; ln -s .git/d d", Uncommitted, "d/e/gone"},
		{"staged", "echo edit >>same; git add same", Staged, "same"},
		{"staged and reverted", "echo edit >>same; git add same; echo same >same", Staged, "same"},
		{"added", "echo >added; git add added", Staged, "added"},
		{"added where a folder will be", "echo >n; git add n", Staged, "n"},
		{"added without content", "mkdir n; echo >n/a; git add -N n/a", Staged, "n/a"},
		{"unmerged", "printf '0 %040d\\t%s\\n100644 %s 1\\t%s\\n' 0 same $(git rev-parse HEAD:same) same | git update-index --index-info", Staged, "same"},
		{"untracked", "mkdir -p n/m; echo mine >n/m/new", InTheWay, "n/m/new"},
		{"ignored", "mkdir n; echo mine >n/x.o", InTheWay, "n/x.o"},
		{"file for folder", "echo mine >n", InTheWay, "n"},
		{"link for folder", "ln -s d n", InTheWay, "n"},
		{"file for a folder of the commit", "rm -r k; echo mine >k", InTheWay, "k"},
		{"link for a folder of the commit", "mv k .git/k; ln -s .git/k k", InTheWay, "k"},
		{"in a submodule that becomes a file", "echo mine >s/tofile/in", InTheWay, "s/tofile"},
		{"in a submodule whose folder becomes a file", "mkdir s/deep/in/a; echo mine >s/deep/in/a/b", InTheWay, "s/deep/in"},
		{"git in a folder that becomes a file", "mkdir f/.git; echo mine >f/.git/in", InTheWay, "f"},
		{"ignored in a folder that becomes a file", "echo mine >f/x.o", InTheWay, "f/x.o"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPulled(t)
			p.sh(c.before)
			const all = `git rev-parse HEAD main; git ls-files -s -v; find . -path ./.git -prune -o -print | sort; cat mod gone || :; git diff; ls .git | sort`
			before := p.sh(all)
			err := p.workspace("").Advance(t.Context(), p.old, p.new)
			var refused *Refused
			if !errors.As(err, &refused) || refused.Obstacle != c.want || strings.Join(refused.Paths[:min(1, len(refused.Paths))], "") != c.path {
				t.Fatalf("%v %+v", err, refused)
			}
			if after := p.sh(all); after != before {
				t.Errorf("changed:\n%s\n---\n%s", before, after)
			}
		})
	}
}

// TestAdvanceKilled kills the script before each of its commands, beside a changed file, and then completes it.
func TestAdvanceKilled(t *testing.T) {
	t.Parallel()
	const kept = `test "$(cat same)" = edit; git checkout -q same`
	steps, finished, stride := 0, 0, 3
	switch {
	case os.Getenv("AIRLOCK_TEST_LONG") != "":
		stride = 1
	case testing.Short():
		stride = 12
	}
	for n := 0; ; n += stride {
		p := newPulled(t)
		p.sh("echo edit >same")
		// bash runs the trap before each command, also in functions.
		prelude := fmt.Sprintf("left=%d; trap '[ $((left--)) -gt 0 ] || kill -9 -- -$$' DEBUG; set -T\n", n)
		w := p.workspace(prelude)
		run := w.Run
		w.Run = func(ctx context.Context, r Process) (int, error) {
			r.Argv[0] = "bash"
			r.Argv = append([]string{"bash", "-c", prelude + r.Argv[2]}, r.Argv[3:]...)
			return run(ctx, r)
		}
		err := w.Advance(t.Context(), p.old, p.new)
		if err == nil {
			p.sh(kept)
			p.at(p.new)
			break
		}
		steps++
		err = p.workspace("").Finish(t.Context(), p.old, p.new)
		p.sh(kept)
		var refused *Refused
		switch {
		case err == nil:
			finished++
			p.at(p.new)
		case errors.As(err, &refused) && refused.Obstacle == Moved:
			p.at(p.old)
		default:
			t.Fatalf("step %d: %v", n, err)
		}
	}
	if steps*stride < 60 || finished*stride < 12 {
		t.Errorf("%d steps, %d finished", steps, finished)
	}
	t.Logf("%d steps, %d finished", steps, finished)
}

// TestAdvanceEnded ends the script while one of the agent's filters runs that would never end. The next Finish then ends at once, with no file
// changed, or with all of them.
func TestAdvanceEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter string
		done   bool
	}{{"smudge", false}, {"clean", true}} {
		t.Run(c.filter, func(t *testing.T) {
			t.Parallel()
			p := newPulled(t)
			p.sh(`find . -path ./.git -prune -o -exec touch -h -d yesterday {} +; git update-index --refresh; echo "* filter=x" >.git/info/attributes; git config filter.x.` + c.filter + ` "touch $PWD/.git/begun; sleep 600"`)
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- p.workspace("").Advance(ctx, p.old, p.new) }()
			p.sh("until test -e .git/begun; do sleep 0.01; done")
			end()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			err := p.workspace("").Finish(t.Context(), p.old, p.new)
			p.sh("git config --remove-section filter.x; rm .git/info/attributes .git/begun")
			var refused *Refused
			switch {
			case c.done && err == nil:
				p.at(p.new)
			case !c.done && errors.As(err, &refused) && refused.Obstacle == Moved:
				p.at(p.old)
			default:
				t.Error(err)
			}
		})
	}
}

// TestFinishKeepsWork checks that completing an interrupted move never overwrites what the agent wrote since.
func TestFinishKeepsWork(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{"echo edit >mod", "echo edit >gone", "mkdir -p n/m; echo edit >n/m/new", "mkdir -p n/m/new; echo edit >n/m/new/x", "echo edit >f/x.o", "echo edit >n"} {
		p := newPulled(t)
		p.sh(fmt.Sprintf("echo %s 0 >.git/index.lock; echo 2 >mod; %s", p.new, edit))
		before := p.sh("find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 grep -H .")
		var refused *Refused
		if err := p.workspace("").Finish(t.Context(), p.old, p.new); !errors.As(err, &refused) {
			t.Fatalf("%s: %v", edit, err)
		}
		if after := p.sh("find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 grep -H ."); after != before {
			t.Errorf("%s:\n%s\n---\n%s", edit, before, after)
		}
		p.sh("test ! -e .git/index.lock")
	}
}

// TestAdvanceBeside moves main while another process commits.
func TestAdvanceBeside(t *testing.T) {
	t.Parallel()
	won, rounds := 0, 30
	if testing.Short() {
		rounds = 10
	}
	for n := range rounds {
		p := newPulled(t)
		done := make(chan error)
		go func() {
			cmd := exec.Command("sh", "-c", fmt.Sprintf(`sleep 0.0%d; echo work >work; git add work; git commit -qm work`, rand.IntN(40)+10))
			cmd.Dir = p.dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b"}
			done <- cmd.Run()
		}()
		err := p.workspace("").Advance(t.Context(), p.old, p.new)
		committed := <-done == nil
		content, _ := os.ReadFile(filepath.Join(p.dir, "work"))
		if string(content) != "work\n" {
			t.Fatalf("%d: the agent's file is lost: %v", n, err)
		}
		reached := p.sh(fmt.Sprintf("git merge-base --is-ancestor %s main && echo yes || echo no", p.new))
		if (reached == "yes") != (err == nil) {
			t.Fatalf("%d: %v, and main has it: %s", n, err, reached)
		}
		if committed && p.sh("git log -1 --format=%s -- work") != "work" {
			t.Fatalf("%d: the agent's commit is lost", n)
		}
		if err == nil {
			won++
		}
	}
	t.Logf("%d of %d moved", won, rounds)
}

// TestAdvanceLocksLate checks that a move that ends with an obstacle never locks the index, so that the agent's git works beside it.
func TestAdvanceLocksLate(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"echo edit >>mod", "mkdir -p n/m; echo mine >n/m/new"} {
		p := newPulled(t)
		p.sh(before)
		w := p.workspace("")
		ctx, end := context.WithCancel(t.Context())
		moves := make(chan int)
		go func() {
			n := 0
			for ; ctx.Err() == nil; n++ {
				var refused *Refused
				if err := w.Advance(t.Context(), p.old, p.new); !errors.As(err, &refused) || !slices.Contains([]Obstacle{Uncommitted, InTheWay, Staged, Locked}, refused.Obstacle) {
					t.Errorf("%s: %v", before, err)
				}
			}
			moves <- n
		}()
		for range 100 {
			p.sh("echo x >work; git add work; git rm -q --cached work") // fails if the index is locked
		}
		end()
		if n := <-moves; n < 5 {
			t.Errorf("%s: only %d moves", before, n)
		}
	}
}

// TestAdvanceIndexReplaced moves main while the index is replaced all the time, as each command of git that writes it does.
func TestAdvanceIndexReplaced(t *testing.T) {
	t.Parallel()
	p := newPulled(t)
	p.sh("echo edit >>mod; git update-index --assume-unchanged same")
	index := filepath.Join(p.dir, ".git", "index")
	content, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	replaced := make(chan error)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = errors.Join(os.WriteFile(index+".other", content, 0o600), os.Rename(index+".other", index))
		}
		replaced <- err
	}()
	for range 30 {
		w := p.workspace("")
		w.Scratch = filepath.Join(t.TempDir(), "scratch")
		var refused *Refused
		if err := w.Advance(t.Context(), p.old, p.new); !errors.As(err, &refused) || refused.Obstacle != Uncommitted {
			t.Errorf("beside a changing index: %v", err)
		}
		if n, err := w.Uncommitted(t.Context()); n != 1 || err != nil {
			t.Errorf("count beside a changing index: %d, %v", n, err)
		}
	}
	end()
	if err := <-replaced; err != nil {
		t.Error(err)
	}
}

// TestAdvanceSeesChangesOfTheSameSecond changes a file in the second in which git compared it, and leaves its size. Only the time of the index tells
// git to compare it again.
func TestAdvanceSeesChangesOfTheSameSecond(t *testing.T) {
	t.Parallel()
	p := newPulled(t)
	p.sh(`git update-index --assume-unchanged same
second=
while [ "$(date +%s)" != "$second" ]; do
	second=$(date +%s)
	echo 1 >mod; git update-index -q --refresh; echo 3 >mod
done
sleep 1.1`)
	w := p.workspace("")
	w.Scratch = filepath.Join(t.TempDir(), "scratch")
	if n, err := w.Uncommitted(t.Context()); n != 1 || err != nil {
		t.Errorf("%d uncommitted files, %v", n, err)
	}
	var refused *Refused
	if err := w.Advance(t.Context(), p.old, p.new); !errors.As(err, &refused) || refused.Obstacle != Uncommitted || !slices.Equal(refused.Paths, []string{"mod"}) {
		t.Errorf("moved over a change: %v", err)
	}
	p.sh(`test "$(cat mod)" = 3; git status --porcelain | grep -q ' M mod'`)
}
