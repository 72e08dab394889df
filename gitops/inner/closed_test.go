package inner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// nobody is the user that reads a repository if the test runs as root, which may read everything.
const nobody = 65534

// open reports whether every user may enter a folder.
func open(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&0o001 != 0 && (dir == "/" || open(filepath.Dir(dir)))
}

// asNobody returns a workspace that is read and changed by an ordinary user, and a function that runs a script there as this user.
func asNobody(t *testing.T) (Workspace, func(script string)) {
	t.Helper()
	parent := os.TempDir()
	if os.Getuid() == 0 && !open(parent) {
		parent = "/tmp"
	}
	top, err := os.MkdirTemp(parent, "closed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwX", top).Run()
		_ = os.RemoveAll(top)
	})
	dir := filepath.Join(top, "w")
	var who *syscall.SysProcAttr
	if os.Getuid() == 0 {
		who = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(top, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	run := func(ctx context.Context, p Process) (int, error) {
		cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = top, p.Stdin, p.Stdout, p.Stderr, who
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + top}, p.Env...)
		return gitopstest.ExitStatus(cmd)
	}
	do := func(script string) {
		t.Helper()
		var said strings.Builder
		env := []string{"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@x", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@x", "GIT_CONFIG_NOSYSTEM=1"}
		code, err := run(t.Context(), Process{Argv: []string{"sh", "-euc", script}, Env: env, Stdout: &said, Stderr: &said})
		if err != nil || code != 0 {
			t.Fatalf("%s: %d, %v: %s", script, code, err, said.String())
		}
	}
	do(`git init -q -b main w; cd w; echo ign/ >.git/info/exclude; for d in a a/b c c/d ign ign/e; do mkdir $d; echo x >$d/f; done; git add -A; git commit -qm base
git branch base; git worktree add -q --detach ../home; git worktree add -q a/tree -b tree; git init -q ign/own; cd ign/own; git commit -q --allow-empty -m own; git config remote.origin.url https://example.com/o; git update-ref refs/remotes/origin/main HEAD`)
	return Workspace{Dir: dir, Scratch: filepath.Join(top, "scratch"), Run: run}, do
}

// lost describes the work that a clear would lose, empty if there is none.
func lost(t *testing.T, w Workspace) string {
	t.Helper()
	places, err := w.Places(t.Context())
	var texts []string
	for i := range places {
		if places[i].Path == filepath.Dir(w.Dir)+"/home" && places[i].Hidden == "" {
			err = errors.Join(err, w.CountElsewhere(t.Context(), &places[i], Workspace{Dir: w.Dir, Scratch: w.Scratch + "/home", Run: w.Run}, places[i].Path))
		}
		if places[i].Loses() {
			texts = append(texts, fmt.Sprintf("%+v", places[i]))
		}
	}
	changes, changesErr := w.Uncommitted(t.Context(), places...)
	commits, commitsErr := w.Count(t.Context(), "--all", "refs/heads/base", "refs/heads/main")
	if err := errors.Join(err, changesErr, commitsErr); err != nil {
		texts = append(texts, err.Error())
	}
	if changes+commits > 0 {
		texts = append(texts, fmt.Sprintf("%d changes, %d commits", changes, commits))
	}
	return strings.Join(texts, "\n")
}

// works are scripts each of which makes work that a clear would lose.
var works = []string{
	"echo y >>w/a/b/f", "echo y >w/c/new", "mkdir w/new; echo y >w/new/f", "git -C w commit -q --allow-empty -m new; git -C w branch -f side; git -C w reset -q --hard base",
	"git -C w update-ref refs/heads/x/y/side $(git -C w commit-tree -m new -p base base^{tree})", "echo y >>home/a/f", "echo y >home/c/d/new", "echo y >>w/a/tree/c/f",
	"git -C w/a/tree commit -q --allow-empty -m new", "echo y >w/ign/own/new", "git -C w/ign/own commit -q --allow-empty -m new",
	"echo y >>w/c/f; git -C w/ stash -q", "rm w/c/d/f", "git -C home commit -q --allow-empty -m new",
	"git -C w worktree add -q --detach ign/e/deep; echo y >w/ign/e/deep/new",
}

// TestClosedIsNotGone lets an agent close random folders, refs and files of git to itself. Work that would be lost without that must still be
// reported, and a workspace in which nothing is lost and nothing is unreadable must not be refused.
func TestClosedIsNotGone(t *testing.T) {
	cases := 60
	if testing.Short() {
		cases = 10
	}
	random := rand.New(rand.NewPCG(7, 8))
	for n := range cases {
		w, do := asNobody(t)
		script := ":"
		if n%4 > 0 {
			script = works[random.IntN(len(works))]
		}
		do(script)
		control := lost(t, w)
		if (script == ":") != (control == "") {
			t.Fatalf("case %d: %s: %s", n, script, control)
		}
		const closable = `find w home '(' -type d -o -path '*/.git/*' -type f '(' -path '*/refs/*' ! -path '*/logs/*' -o -path '*/worktrees/*' -o -name packed-refs ')' ')' ! -path 'w/.git/objects*' ! -path w ! -path '*/hooks*'`
		mode := []string{"0", "100", "200", "300", "400", "500", "700", "755", "777"}[random.IntN(9)]
		which := random.IntN(1000)
		do(fmt.Sprintf(`n=$(%s | wc -l); %s | sort | tail -n +$((%d %% n + 1)) | head -n 1 | tr '\n' '\0' | xargs -0 sh -c 'chmod %s "$1"; echo "$1" >chosen' sh`, closable, closable, which, mode))
		chosen, err := os.ReadFile(filepath.Dir(w.Dir) + "/chosen")
		if err != nil {
			t.Fatal(err)
		}
		harmless := mode == "500" || mode == "700" || mode == "755" || mode == "777" || mode == "400" && !isFolder(filepath.Dir(w.Dir)+"/"+strings.TrimSpace(string(chosen)))
		now := lost(t, w)
		if control != "" && now == "" || harmless && control == "" && now != "" {
			t.Errorf("case %d: %s, then chmod %s %s: reported %q, and before %q", n, script, mode, chosen, now, control)
		}
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// TestUnreadableMetadata checks what a broken ref and a stash of an unfinished operation are reported as.
func TestUnreadableMetadata(t *testing.T) {
	for script, want := range map[string]string{
		":": "",
		"git -C w symbolic-ref refs/remotes/origin/HEAD refs/remotes/x":                 "",
		"git -C w symbolic-ref refs/heads/none refs/heads/nothing":                      "",
		"mkdir w/.git/refs/heads/empty; : >w/.git/refs/heads/empty/x.lock":              "",
		"chmod 0 w/.git/hooks w/a/f; chmod 400 w/c/f; chmod 0 w/.git/logs/HEAD":         "{Path:.git/hooks",
		"chmod 0 w/a/f; chmod 400 w/c/f; chmod 0 w/.git/logs/HEAD":                      "1 changes",
		": >w/.git/refs/heads/side":                                                     "bad object refs/heads/side",
		"echo 1111111111111111111111111111111111111111 >w/.git/refs/heads/side":         "bad object refs/heads/side",
		": >w/ign/own/.git/refs/heads/side":                                             "Unread:true",
		"chmod 0 w/.git/objects/??":                                                     "{Path:.git/objects/",
		"cd w; echo y >>a/f; git stash create >.git/MERGE_AUTOSTASH; git checkout -q a": "Hidden:autostash",
		"cd w; for i in 1 2; do echo $i >$i; git add $i; git commit -qm $i; done; git update-ref refs/heads/base HEAD; echo y >>a/f; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i --autostash HEAD~2": "{Path:.git/rebase-merge/autostash",
		"cd home; echo y >>a/f; mkdir ../w/.git/worktrees/home/rebase-apply; git stash create >../w/.git/worktrees/home/rebase-apply/autostash; git checkout -q a":                                             "{Path:.git/worktrees/home/rebase-apply/autostash",
		"git -C w update-ref refs/heads/rebase-merge/autostash base": "",
	} {
		w, do := asNobody(t)
		do(script)
		if got := lost(t, w); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
