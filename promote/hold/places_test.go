package hold

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/inner"
)

// TestAutostashHints runs the hints for a stash of an unfinished rebase in the workspace, in a worktree, in a submodule and in another repository.
// Each must show that stash and that rebase.
func TestAutostashHints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir = filepath.Join(dir, "w")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
		return string(out)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "main", filepath.Join(dir, "w")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sh(`export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@x GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@x
commits() { for i in 1 2 3; do echo $i >"$1/f"; git -C "$1" add f; git -C "$1" commit -qm $i; done; }
git init -q ../from; git init -q 'x y'; commits ../from; commits 'x y'; commits .
git -c protocol.file.allow=always submodule --quiet add ../from s/m; git commit -qm sub; git worktree add -q -b linked '../l k' HEAD~1
for d in . '../l k' s/m 'x y'; do
	echo "stash of $d" >>"$d/f"; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git -C "$d" rebase -q -i --autostash HEAD~1
done`)
	top := filepath.Join(dir, "w")
	for file, work := range map[string]string{
		".git/rebase-merge/autostash":               ".",
		".git/worktrees/l-k/rebase-merge/autostash": "../l k",
		".git/modules/s/m/rebase-merge/autostash":   "s/m",
		"x y/.git/rebase-merge/autostash":           "x y",
	} {
		next := KeepFirst([]inner.Place{{Path: file, Hidden: inner.Autostash}}, top, "id")
		var said strings.Builder
		for _, command := range next {
			said.WriteString(sh(strings.TrimPrefix(command, "git airlock visit -- ")))
		}
		if got := said.String(); !strings.Contains(got, "\n+stash of "+work+"\n") || !strings.Contains(got, "interactive rebase in progress") {
			t.Errorf("%s: %q print %s", file, next, got)
		}
	}
}
