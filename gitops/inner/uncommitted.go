package inner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// statusKeys are the settings that decide which paths have changed, and that name no program. Only these are copied
// from the inner repository for git status, since git status would run the configured filters. A list of all
// settings that run a program would never be complete.
var statusKeys = []string{
	"core.repositoryformatversion", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode",
	"core.autocrlf", "core.eol", "core.checkroundtripencoding", "core.trustctime", "core.checkstat", "core.ignorestat",
	"core.excludesfile", "core.attributesfile", "core.sparsecheckout", "core.sparsecheckoutcone", "core.quotepath",
	"core.bigfilethreshold", "core.usereplacerefs", "index.sparse",
}

// statusScript makes a repository from the inner one, except for its configuration, attributes and hooks, and runs the
// command there. Arguments: the folder for the repository, the git directory, the common directory, where the configuration
// comes from, the largest commit in bytes that git may read, then the command. It starts as few programs as possible,
// because status waits for each. "plain" copies the inner configuration if it contains only lines as the snapshot wrote
// them, none of which names a program, and ends with 77 if not. "given" reads standard input. The script prints the size
// of HEAD's commit and ends with 78 if it is larger.
//
// Git takes the agent's word for files that are marked as assume-unchanged or skip-worktree. With core.sparseCheckout it does so for
// a skipped file only while the file is absent. The other mark is removed from changed files in a copy of the index, which is made as take of
// [advance] does.
const statusScript = `set -e
d=$1 g=$2 c=$3 from=$4 limit=$5
shift 5
plain() {
	while IFS= read -r line; do
		case $line in
		*[\\\"]*) exit 77 ;;
		'[core]' | '[user]' | '	name = '* | '	email = '* | '	repositoryformatversion = 0' | '	bare = false' | '	logallrefupdates = true') ;;
		'	filemode = true' | '	filemode = false') ;;
		*) exit 77 ;;
		esac
		printf '%s\n' "$line"
	done
	[ -z "$line" ] || exit 77
}
given() { while IFS= read -r line; do printf '%s\n' "$line"; done; }
linked() {
	to=$1; shift
	for f; do shift; [ ! -e "$f" ] || set -- "$@" "$f"; done
	[ $# = 0 ] || { [ -d "$to" ] || mkdir "$to"; ln -sf "$@" "$to"; }
}
[ -d "$d" ] || mkdir -p "$d"
linked "$d" "$c/refs" "$c/packed-refs" "$c/objects" "$c/shallow" "$c/reftable" "$g/index" "$g"/sharedindex.*
linked "$d/info" "$c/info/exclude" "$g/info/sparse-checkout"
IFS= read -r head <"$g/HEAD" || [ "$head" ]
[ "$g" = "$c" ] || head=$(GIT_DIR=$g git rev-parse -q --verify 'HEAD^{commit}') || IFS= read -r head <"$g/HEAD"
printf '%s\n' "$head" >"$d/HEAD"
if [ "$from" = plain ]; then plain <"$c/config"; else given; fi >"$d/config"
printf '[core]\n\tsparseCheckout = true\n' >>"$d/config"
export GIT_DIR="$d"
size=$(echo HEAD | git cat-file --batch-check='%(objectsize)')
case $size in '' | *[!0-9]*) ;; *) [ "$size" -le "$limit" ] || { echo "$size" >&2; exit 78; } ;; esac
case "
$(git -c core.fsmonitor=false ls-files -v)" in *"
"[a-z]" "*)
	: >"$d/time"
	touch -r "$g/index" "$d/time"
	cat <"$g/index" >"$d/index.own"
	touch -r "$d/time" "$d/index.own"
	export GIT_INDEX_FILE="$d/index.own"
	git -c core.hooksPath=/dev/null -c core.fsmonitor=false update-index -q --really-refresh >"$d/stale" || [ $? = 1 ] ;;
esac
exec "$@"`

// Uncommitted returns the number of paths that the agent changed and did not commit, except for those in the given places. It runs
// nothing that the agent has configured. It stops counting after a megabyte of names.
func (w Workspace) Uncommitted(ctx context.Context, except ...Place) (int, error) {
	untracked, err := w.untracked(ctx, Below(except))
	if err != nil {
		return 0, err
	}
	paths := []string{"--", ":/"}
	for _, p := range untracked {
		paths = append(paths, ":(top,exclude,literal)"+p)
	}
	n, code, err := w.countChanges(ctx, "plain", "", paths...)
	if code != 77 {
		return n, err
	}
	settings, err := w.query(ctx, "config", "--list", "--includes", "-z")
	if err != nil {
		return 0, err
	}
	n, _, err = w.countChanges(ctx, "given", statusConfig(settings, w.common != ""), paths...)
	return n, err
}

// untracked returns those of the paths at and below which the index has no entry. If a repository is made in a tracked folder, the
// files are still the workspace's. If the index has too many entries there, untracked returns no path.
func (w Workspace) untracked(ctx context.Context, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"--no-literal-pathspecs", "ls-files", "-z", "--"}
	for _, p := range paths {
		args = append(args, ":(top,literal)"+p)
	}
	entries, err := w.query(ctx, args...)
	if errors.Is(err, gitops.ErrOutput) {
		return nil, nil
	}
	tracked := strings.Split(entries, "\x00")
	return slices.DeleteFunc(paths, func(p string) bool {
		return slices.ContainsFunc(tracked, func(e string) bool { return strings.HasPrefix(e, p+"/") })
	}), err
}

// headLimit bounds the commit that git status reads. Git inflates all of a commit, and 400 MB can be 0.4 MB on the disk.
const headLimit = 16 << 20

// countChanges runs the statusScript, and also returns its exit status.
func (w Workspace) countChanges(ctx context.Context, from, config string, paths ...string) (n, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	counter := &nulCounter{left: lookLimit}
	var stderr gitops.Stderr
	argv := append([]string{"sh", "-c", statusScript, "sh", w.Scratch, w.gitDir(), cmp.Or(w.common, w.gitDir()), from, strconv.Itoa(headLimit)},
		w.argv(append([]string{"--no-literal-pathspecs", "status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all"}, paths...)...)...)
	code, err = w.runUnlessIdle(ctx, Process{
		Argv: argv, Env: append(w.innerEnv(), "GIT_OPTIONAL_LOCKS=0"),
		Stdin: strings.NewReader(config), Stdout: counter, Stderr: &stderr,
	})
	switch {
	case counter.left < 0:
		return counter.n, 0, nil
	case errors.Is(err, context.DeadlineExceeded):
		return counter.n, code, &Invalid{Stalled: true, Reason: fmt.Sprintf("git status in the workspace did not answer within %s", lookTime)}
	case err != nil:
		return counter.n, code, fmt.Errorf("git status in the workspace: %w", err)
	case code == 78:
		return 0, 0, Beyondf("the commit of HEAD has %s bytes, too many for git status in the workspace", stderr.String())
	case code != 0:
		return counter.n, code, &gitops.Error{Args: []string{"status"}, Status: code, Lines: stderr.Lines()}
	}
	return counter.n, 0, nil
}

// statusConfig converts the statusKeys in the output of git config --list -z to a configuration file. That of a linked worktree names no storage
// of refs: the script has written the worktree's commit into HEAD, and git would take the main worktree's HEAD from a reftable.
func statusConfig(listed string, linked bool) string {
	var b strings.Builder
	for entry := range strings.SplitSeq(listed, "\x00") {
		key, value, hasValue := strings.Cut(entry, "\n")
		section, name, found := strings.Cut(key, ".")
		if linked && strings.EqualFold(key, refStorage) {
			continue
		}
		if !found || section != "extensions" && !slices.Contains(statusKeys, key) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			continue
		}
		fmt.Fprintf(&b, "[%s]\n\t%s", section, name)
		if hasValue {
			fmt.Fprintf(&b, " = \"%s\"", strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

type nulCounter struct{ n, left int }

func (c *nulCounter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte{0})
	if c.left -= len(p); c.left < 0 {
		return 0, gitops.ErrOutput
	}
	return len(p), nil
}
