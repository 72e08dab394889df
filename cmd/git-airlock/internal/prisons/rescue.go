package prisons

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// rescueScript commits all changes except those below the paths in its arguments, without running a hook of the workspace, and prints the
// ref of the commit. Git add ends with an error if it must exclude a path that is ignored, or a path below a submodule or a link, so the
// script does not name such a path. Check-ignore takes no literal pathspecs, but none with "./" has any magic. The script does not exclude a path if
// the index has files below it.
//
// Git add may take long and be ended, so it writes into a folder of its own. The objects and the index come from there in an instant. The index is
// locked meanwhile, with a lock that the next rescue and the cleanScript recognise. If another git has locked the index, the script prints the
// path of the lock and ends with lockedStatus, before the work begins where that is possible. The agent can read the scripts and what they write, so
// the tool's name is not in them.
var rescueScript = []string{"sh", "-c", `dir=$(git rev-parse --absolute-git-dir) || exit
own=$dir/index-next lock=$dir/index.lock
locked() { printf '%s\n' "$lock"; exit 75; }
` + removeLock + `
[ ! -e "$lock" ] || sleep 1 # a git that is at work may end
[ ! -e "$lock" ] || locked
rm -rf "$own" && mkdir -p "$own/objects" || exit
trap 'rm -rf "$own"' EXIT
for p; do
	shift
	git check-ignore -q -- "./$p"
	[ $? = 1 ] && [ -z "$(git ls-files -- ":(top,literal)$p/" | head -c 1)" ] && set -- "$@" ":(top,exclude,literal)$p"
done
before=none
if [ -e "$dir/index" ]; then
	# Git compares the content of files that are not older than the index, so the copy must not be newer than the index.
	: >"$own/time" && touch -r "$dir/index" "$own/time" && cat <"$dir/index" >"$own/index" && touch -r "$own/time" "$own/index" || exit
	before=$(cksum <"$own/index")
fi
GIT_INDEX_FILE=$own/index GIT_OBJECT_DIRECTORY=$own/objects GIT_ALTERNATE_OBJECT_DIRECTORIES=$dir/objects \
	git -c core.hooksPath=/dev/null -c core.splitIndex=false add -A -- :/ "$@" >&2 || exit
for f in "$own"/objects/?? "$own/objects/pack"; do
	to=$dir/objects/${f##*/}
	set -- "$f"/*.pack "$f"/*.idx # git reads a pack when it has an index
	case $f in */pack) ;; *) set -- "$f"/* ;; esac
	[ ! -e "$1" ] || { mkdir -p "$to" && mv -f -- "$@" "$to"; } || exit
done
if [ -e "$own/index" ]; then
	(set -C; echo index-next >"$lock") 2>/dev/null || locked
	now=none
	[ ! -e "$dir/index" ] || now=$(cksum <"$dir/index")
	if [ "$now" != "$before" ]; then rm -f "$lock"; echo "the agent's git has changed the index" >&2; exit 1; fi
	mv -f "$own/index" "$dir/index"
	rm -f "$lock"
fi
if ! git diff --cached --quiet; then
	git -c core.hooksPath=/dev/null commit -q --no-verify -m 'Uncommitted work' >&2 && { git symbolic-ref -q HEAD || echo HEAD; }
fi`, "sh"}

// removeLock is the part of both scripts that removes the lock of a rescue that was ended. No other lock begins with this word.
const removeLock = `if [ -f "$lock" ] && [ "$(head -c 11 "$lock" 2>/dev/null)" = index-next ]; then rm -f "$lock"; fi`

// cleanScript removes what a rescueScript has left that was ended, and prints the sizes and names of the largest files that are not committed.
var cleanScript = []string{"sh", "-c", `dir=$(git rev-parse --absolute-git-dir) || exit
lock=$dir/index.lock
` + removeLock + `
rm -rf "$dir/index-next"
git ls-files -z --others --modified --exclude-standard | xargs -0 -r stat -c '%s %n' -- 2>/dev/null | sort -rn | head -n 3`}

const (
	// maxSaid bounds the output that is kept of a short command inside.
	maxSaid = 4096
	// rescueTime bounds the time of the commit in the workspace, whose content may make git slow.
	rescueTime = time.Minute
	// cleanTime bounds the time of removing what an ended commit has left.
	cleanTime = 10 * time.Second
	// lockedStatus is the exit status of a rescueScript that has found the index locked.
	lockedStatus = 75
)

// Rescue commits the agent's uncommitted changes, and returns the ref of the commit. The workspace reports the ref, so it is not
// trusted. Rescue also returns the agent's other work trees, whose changes it does not commit: git would commit only the ids of their HEADs.
func (p Prisons) Rescue(ctx context.Context, r airlock.Record) (ref string, places []inner.Place, err error) {
	box, err := p.Attach(ctx, r)
	if err != nil {
		return "", nil, err
	}
	defer box.Close()
	exporter, err := p.OpenExporter(ctx, r)
	if err != nil {
		return "", nil, err
	}
	defer exporter.Close()
	if places, err = exporter.Places(ctx); err != nil {
		return "", nil, err
	}
	ref, err = rescueIn(ctx, box, inner.Below(places), rescueTime)
	return ref, places, err
}

// rescueIn commits the changes in a prison in a limited time, except for those below paths.
func rescueIn(ctx context.Context, box prison.Prison, except []string, atMost time.Duration) (ref string, err error) {
	said, where := prison.Capped{Max: maxSaid}, prison.Capped{Max: maxSaid}
	bounded, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	status, err := box.Exec(bounded, prison.Process{Argv: append(slices.Clip(rescueScript), except...), Env: []string{gitops.NoHooks}, Stdout: &where, Stderr: &said})
	if bounded.Err() != nil {
		largest := clean(ctx, box)
		if ctx.Err() == nil {
			return "", tooSlow(atMost, largest)
		}
	}
	if err != nil {
		return "", err
	}
	if status == lockedStatus {
		return "", locked(strings.TrimSuffix(where.String(), "\n"))
	}
	if status != 0 {
		return "", fmt.Errorf("commit the agent's uncommitted changes: %s", gitops.Text(said.String()))
	}
	return strings.TrimSpace(where.String()), nil
}

// clean removes what an ended commit has left in a prison. It returns lines with the sizes and names of the largest files that are not committed,
// empty if they are unknown.
func clean(ctx context.Context, box prison.Prison) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	largest, said := prison.Capped{Max: maxSaid}, prison.Capped{}
	if _, err := box.Exec(ctx, prison.Process{Argv: cleanScript, Stdout: &largest, Stderr: &said}); err != nil {
		return ""
	}
	return largest.String()
}

// locked returns the error for a commit that found the index locked. It names the lock, which stays if a git was ended.
func locked(lock string) error {
	return environment.Advise(fmt.Errorf("commit the agent's uncommitted changes: a git process has locked the index with %s", gitops.Text(lock)),
		"git airlock visit -- rm -- "+gitops.Pasteable(lock)+"  # if no git runs inside", "git airlock promote --rescue")
}

// tooSlow returns the error for a commit that did not end in time, with the largest files.
func tooSlow(atMost time.Duration, largest string) error {
	text, next := fmt.Sprintf("commit the agent's uncommitted changes: git in the workspace did not end within %s", atMost), []string{"git airlock visit -- git status"}
	var files []string
	for line := range strings.Lines(largest) {
		size, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := strconv.ParseInt(size, 10, 64); err != nil || !found {
			continue // the rest of a name with a line break
		}
		if files == nil {
			next = []string{"git airlock visit -- ls -l -- " + gitops.Pasteable(name) + "  # remove it, or add it to .git/info/exclude", "git airlock promote --rescue"}
		}
		files = append(files, fmt.Sprintf("%s (%s bytes)", gitops.Text(name), size))
	}
	if files != nil {
		text += "; the largest files: " + strings.Join(files, ", ")
	}
	return environment.Advise(errors.New(text), next...)
}
