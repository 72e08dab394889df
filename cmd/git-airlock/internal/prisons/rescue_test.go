package prisons

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/prison"
)

// host runs programs in a folder of this machine. As in a prison, a program that is ended takes its children with it.
type host struct {
	prison.Prison
	dir string
}

func (h host) Exec(ctx context.Context, p prison.Process) (int, error) {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = h.dir, p.Stdin, p.Stdout, p.Stderr, time.Second
	cmd.Env = append(os.Environ(), "HOME="+h.dir, "GIT_CONFIG_NOSYSTEM=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return gitopstest.ExitStatus(cmd)
}

func (h host) sh(t *testing.T, script string) string {
	t.Helper()
	out, said := prison.Capped{Max: maxSaid}, prison.Capped{Max: maxSaid}
	if code, err := h.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-euc", script}, Stdout: &out, Stderr: &said}); code != 0 || err != nil {
		t.Fatalf("%s: %d, %v: %s", script, code, err, said.String())
	}
	return strings.TrimSpace(out.String())
}

// TestRescueScriptsAreNeutral looks for the tool's name in all that the agent can see of a rescue: the scripts hold the name of each file too.
func TestRescueScriptsAreNeutral(t *testing.T) {
	for _, script := range [][]string{rescueScript, cleanScript} {
		if text := strings.Join(script, " "); strings.Contains(strings.ToLower(text), "airlock") {
			t.Errorf("the tool's name is in a script for the inside: %s", text)
		}
	}
}

// TestRescueThatIsEnded ends a rescue while git reads a file that is too large. Git of the agent must work as before, and nothing is left.
func TestRescueThatIsEnded(t *testing.T) {
	h := host{dir: t.TempDir()}
	h.sh(t, `git init -q -b main; git config user.name n; git config user.email n@x; git commit -q --allow-empty -m base
echo work >work.txt; truncate -s 300G 'disk image'`)
	_, err := rescueIn(t.Context(), h, nil, 2*time.Second)
	if err == nil || !strings.Contains(err.Error(), "did not end within 2s; the largest files: disk image (322122547200 bytes), work.txt (5 bytes)") {
		t.Fatal(err)
	}
	// Git adds a large file to a pack that stays open, so a git that went on would read all of the file.
	if running := h.sh(t, `for p in /proc/[0-9]*; do [ ! "$p/cwd" -ef . ] || [ "${p##*/}" = $$ ] || cat "$p/comm"; done`); running != "" {
		t.Errorf("still running: %s", running)
	}
	if left := h.sh(t, "find .git -name '*.lock' -o -name 'tmp_*' -o -name 'index-next*'"); left != "" {
		t.Errorf("left: %s", left)
	}
	h.sh(t, "echo '/disk image' >>.git/info/exclude")
	if ref, err := rescueIn(t.Context(), h, nil, time.Minute); err != nil || ref != "refs/heads/main" {
		t.Errorf("%q, %v", ref, err)
	}
	if names := h.sh(t, "git fsck --strict; git ls-tree -r --name-only HEAD; git status --porcelain"); names != "work.txt" {
		t.Errorf("committed: %q", names)
	}
}

// TestRescue commits all changes of an index, however many objects they need, and leaves out a repository whose name looks like a pathspec.
func TestRescue(t *testing.T) {
	h := host{dir: t.TempDir()}
	h.sh(t, `git init -q -b main; git config user.name n; git config user.email n@x; git config core.splitIndex true; git config core.bigFileThreshold 10k
for i in 1 2 3; do echo $i >$i; done; git add -A; git commit -q -m base
echo y >>1; rm 2; echo staged >3; git add 3; echo 3 >3; mkdir d; i=0; while [ $i -lt 300 ]; do echo $i >d/$i; i=$((i + 1)); done; head -c 50000 /dev/urandom >large
for d in ':!sub' ':(top)x' '*' ign/own; do git init -q "$d"; git -C "$d" -c user.name=n -c user.email=n@x commit -q --allow-empty -m own; done; echo ign/ >.git/info/exclude`)
	if ref, err := rescueIn(t.Context(), h, []string{":!sub", ":(top)x", "*", "ign/own"}, time.Minute); err != nil || ref != "refs/heads/main" {
		t.Fatalf("%q, %v", ref, err)
	}
	h.sh(t, "git fsck --strict; git diff --quiet HEAD")
	if got := h.sh(t, "git ls-tree -r --name-only HEAD | grep -v ^d/ | tr '\\n' ' '; git ls-tree HEAD:d | wc -l; git status --porcelain | sort"); got !=
		"1 3 large 300\n?? */\n?? :!sub/\n?? :(top)x/" {
		t.Errorf("committed: %q", got)
	}
	if left := h.sh(t, "find .git -maxdepth 1 -name '*.lock' -o -maxdepth 1 -name 'index-next*'"); left != "" {
		t.Errorf("left: %s", left)
	}
	if ref, err := rescueIn(t.Context(), h, []string{":!sub", ":(top)x", "*", "ign/own"}, time.Minute); err != nil || ref != "" {
		t.Errorf("again: %q, %v", ref, err)
	}
}

// TestRescueFindsALock removes what a killed rescue has left, and names the lock of any other git before the work begins.
func TestRescueFindsALock(t *testing.T) {
	h := host{dir: t.TempDir()}
	h.sh(t, `git init -q -b main; git config user.name n; git config user.email n@x; git commit -q --allow-empty -m base
echo 1 >work.txt; mkdir -p .git/index-next/objects; : >.git/index-next/index; echo index-next >.git/index.lock`)
	if ref, err := rescueIn(t.Context(), h, nil, time.Minute); err != nil || ref != "refs/heads/main" {
		t.Fatalf("%q, %v", ref, err)
	}
	h.sh(t, "git fsck --strict; git diff --quiet HEAD; test ! -e .git/index.lock; test ! -e .git/index-next; echo 2 >work.txt; echo DIRC >.git/index.lock")
	_, err := rescueIn(t.Context(), h, nil, time.Minute)
	lock := h.sh(t, "git rev-parse --absolute-git-dir") + "/index.lock"
	if err == nil || !strings.HasSuffix(err.Error(), "a git process has locked the index with "+lock) {
		t.Fatal(err)
	}
	advised, ok := errors.AsType[*environment.Advised](err)
	if !ok || !strings.Contains(strings.Join(advised.Next, "\n"), "rm -- "+lock+"  #") {
		t.Errorf("hint: %v", advised)
	}
	if left := h.sh(t, "cat .git/index.lock; git cat-file -e $(git hash-object work.txt) 2>&1 || echo unwritten; ls .git | grep next || :"); left != "DIRC\nunwritten" {
		t.Errorf("left: %q", left)
	}
	h.sh(t, "rm .git/index.lock; (sleep 0.5; rm .git/index.lock) >/dev/null 2>&1 & : >.git/index.lock")
	if ref, err := rescueIn(t.Context(), h, nil, time.Minute); err != nil || ref != "refs/heads/main" {
		t.Errorf("beside a git that ends: %q, %v", ref, err)
	}
}
