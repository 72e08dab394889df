package inner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// indexLimit limits the bytes of a listed index.
	indexLimit = 64 << 20
	// notThere and notRead are the exit statuses of the elsewhereScript for a folder that does not exist, and for one that cannot be read.
	notThere, notRead = 70, 71
)

// elsewhereScript compares a work tree with an index that it reads from standard input, and prints the paths of changed and of new files. The
// repository's objects are in another prison, and comparing needs none. If a folder above or in the work tree cannot be read, the script prints the path
// that it tried and that of the folder. Arguments: a folder for a repository, the object format, and the paths of the work tree to try.
const elsewhereScript = `d=$1 format=$2 hidden='` + hiddenScript + `'
shift 2
for w; do
	[ ! -f "$w/.git" ] || break
	up=$w
	while [ ! -d "${up:-/}" ]; do up=${up%/*}; done
	[ -x "${up:-/}" ] || { printf '%s\0!%s\0' "$w" "$up"; exit 71; }
done
[ -f "$w/.git" ] || exit 70
closed=$(find "$w" -xdev -type d -exec sh -c "$hidden" sh {} + 2>/dev/null | head -c 1)
[ -z "$closed" ] || { printf '%s\0' "$w"; find "$w" -xdev -type d -exec sh -c "$hidden" sh {} + 2>/dev/null; exit 71; }
unset GIT_DIR GIT_WORK_TREE
set -e
git init -q --bare --template= --object-format="$format" "$d"
export GIT_DIR="$d" GIT_WORK_TREE="$w"
g() { git -c core.bare=false -c core.fsmonitor=false "$@"; }
cd "$w"
g update-index -z --index-info
g update-index -q --refresh >/dev/null || :
g diff-files --name-only -z --ignore-submodules=all
g ls-files -z --others --exclude-standard --directory --no-empty-directory`

// CountElsewhere counts the changes in a worktree that is not below the workspace. home is another prison that has its files, at one of the
// paths. A worktree whose files are gone has no changes.
func (w Workspace) CountElsewhere(ctx context.Context, p *Place, home Workspace, paths ...string) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	w.own, w.common = p.git, p.common
	var index, names bytes.Buffer
	if err := w.git(ctx, nil, gitops.CapOutput(&index, indexLimit), "ls-files", "-s", "-z"); err != nil {
		return err
	}
	format, err := w.query(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	var stderr gitops.Stderr
	argv := append([]string{"sh", "-c", elsewhereScript, "sh", path.Join(home.Scratch, path.Base(p.git)), format}, paths...)
	code, err := home.runUnlessIdle(ctx, Process{Argv: argv, Env: home.innerEnv(), Stdin: &index, Stdout: gitops.CapOutput(&names, lookLimit), Stderr: &stderr})
	switch {
	case errors.Is(err, gitops.ErrOutput): // all names that are kept count
	case err != nil:
		return fmt.Errorf("git in the agent's home: %w", err)
	case code == notThere:
		return nil
	case code == notRead:
		tried, closed, _ := strings.Cut(names.String(), "\x00!")
		p.hide(tried, closed)
		return nil
	case code != 0:
		return &gitops.Error{Args: []string{"status"}, Status: code, Lines: stderr.Lines()}
	}

	if err := w.git(ctx, nil, gitops.CapOutput(&names, lookLimit), "diff-index", "--cached", "--name-only", "-z", "--no-renames", "HEAD", "--"); err != nil {
		return err
	}
	p.Changes = len(gitops.SetOf(records(names.String())...))
	return nil
}

// hide turns p into the place of the closed folder above or below it that was found for the tried path. The same files have another path in p.
func (p *Place) hide(tried, found string) {
	found, _, _ = strings.Cut(found, "\x00")
	p.Hidden = Closed
	if below, ok := strings.CutPrefix(found, tried); ok {
		p.Path += below
		return
	}
	p.Path = strings.TrimSuffix(p.Path, strings.TrimPrefix(tried, found))
}
