package inner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Obstacle is a reason why a workspace cannot take a commit now.
type Obstacle int

// The obstacles. Their numbers are the exit statuses of the scripts in this file.
const (
	Unfinished  Obstacle = 40 + iota // a merge, rebase or similar operation
	Elsewhere                        // HEAD is not on main
	Moved                            // main has moved
	Locked                           // the agent's git is changing the index
	Uncommitted                      // changed files, not committed, that the new commit changes, too
	InTheWay                         // untracked files at the paths of new ones
	Staged                           // changes in the index that are not committed
	lastObstacle
)

// Refused reports that a workspace cannot take a commit now. Nothing has changed.
type Refused struct {
	Obstacle
	Paths []string // of the files, not escaped; at most obstaclePaths bytes of them
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("the workspace does not take a commit (%d)", r.Obstacle)
}

const (
	// advanceTime limits the time of moving main, which checks files out, if the caller does not limit it further.
	advanceTime = 10 * time.Minute
	// obstaclePaths limits the bytes of the paths in a [Refused].
	obstaclePaths = 8 << 10
)

// Unpack stores a pack in the inner repository.
func (w Workspace) Unpack(ctx context.Context, pack io.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
	return w.git(ctx, pack, io.Discard, "index-pack", "--stdin")
}

// advance is the common part of the scripts for sh that move main, as git pull does. The arguments are the commit before, and the new commit. The
// scripts lock the index as git does, so that the agent's git waits or fails. The lock contains the id of the new commit and of the script's
// process, by which [finish] recognises it, and "staging" until the first file is changed. The scripts write the files first, then the index, and
// move main last. So an agent that commits in between commits the new content, and never takes it back.
//
// Git runs the agent's filters, which may never end. The smudge filters run before the first change, and the clean filters that the new files
// need run after the last one. So a script that is ended has usually changed nothing, or everything.
const advance = `old=$1 new=$2 WRITTEN=
dir=$GIT_DIR
lock=$dir/index.lock next=$dir/index.$$ held=
export old new WRITTEN STAGE=$next.stage
g() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.untrackedCache=false -c core.splitIndex=false -c core.quotePath=true --literal-pathspecs "$@"; }
end() { rm -rf "$next" "$next".* ${held:+"$lock"}; exit "$1"; }
# hold locks the index. It fails if the index is locked.
hold() { echo "$new $$ staging" >"$next.lock" && ln "$next.lock" "$lock" 2>/dev/null && held=1 && rm -f "$next.lock"; }
# take copies the index, which the agent's git may replace at any time: cp fails for a file that is replaced while it is opened. Git compares the
# content of files that are not older than the index, so the copy must not be newer than the index.
take() { : >"$next.time" && touch -r "$dir/index" "$next.time" && cat <"$dir/index" >"$1" && touch -r "$next.time" "$1"; }
cd "$GIT_WORK_TREE" || exit 1
changed() { g diff-tree -r --no-renames --no-ext-diff --ignore-submodules=none --name-only "$@" "$old" "$new"; }
# skipped lists the files of an index with the mark skip-worktree, such as those outside a sparse checkout, in lines as git quotes them.
skipped() { GIT_INDEX_FILE=$1 g ls-files -t | sed -n 's/^S //p'; }
# unmark removes that mark from the changed files that exist. Git does not compare nor write files with the mark.
unmark() {
	skipped "$1" >"$next.skipped"
	: >"$next.marked"
	[ -s "$next.skipped" ] || return 0
	changed | grep -xFf "$next.skipped" >"$next.marked"
	GIT_INDEX_FILE=$1 g update-index --no-skip-worktree --stdin <"$next.marked" || return 1
	GIT_INDEX_FILE=$1 g ls-files --deleted | grep -xFf "$next.marked" | GIT_INDEX_FILE=$1 g update-index --skip-worktree --stdin
}
# mark gives the mark back to the files that the new index has.
mark() {
	[ ! -s "$next.marked" ] || GIT_INDEX_FILE=$next g ls-files | grep -xFf "$next.marked" | GIT_INDEX_FILE=$next g update-index --skip-worktree --stdin
}
# leave marks the new files outside a sparse checkout in the new index: without -u, git read-tree does not. Git does it here in an index of
# these files alone, and in an empty folder, so that it changes nothing else.
leave() {
	# Without a file of patterns, git merge leaves no file out.
	[ -f "$dir/info/sparse-checkout" ] && [ "$(g config --type=bool core.sparseCheckout)" = true ] || return 0
	rm -rf "$next.sparse" && mkdir -p "$next.tree" || return 1
	g diff-tree -r --no-renames --diff-filter=A "$old" "$new" | sed -n 's/^:000000 \([0-7]*\) 0* \([0-9a-f]*\) A/\1 \2/p' |
		GIT_INDEX_FILE=$next.sparse g update-index --index-info || return 1
	[ -e "$next.sparse" ] || return 0
	(cd "$next.tree" && GIT_INDEX_FILE=$next.sparse GIT_WORK_TREE=$next.tree g sparse-checkout reapply >/dev/null 2>&1) || return 0
	skipped "$next.sparse" | GIT_INDEX_FILE=$next g update-index --skip-worktree --stdin
}
` + operation + `
onmain() { [ "$(g symbolic-ref -q HEAD)" = refs/heads/main ]; }
at() { [ "$(g rev-parse -q --verify refs/heads/main)" = "$1" ]; }
# obstacles lists the files at the paths of new files, and those in the place of their folders, which the old commit may have as a folder. Git lists
# no files in the folder of a submodule, nor anything named .git, so a folder with such files is listed itself.
obstacles() {
	changed -z --diff-filter=DT | xargs -0 -r sh -c 'for p; do
		[ -d "$p" ] && [ ! -L "$p" ] && [ "$(git cat-file -t "$old:$p" 2>/dev/null)" != blob ] || continue
		to=$p
		until git rev-parse -q --verify "$new:$to" >/dev/null; do case $to in */*) to=${to%/*} ;; *) continue 2 ;; esac; done
		[ "$(git cat-file -t "$new:$to" 2>/dev/null)" = tree ] || [ -z "$(find "./$p" ! -type d 2>&1 | head -c 1)" ] || printf "%s\0" "$p"
	done' sh
	changed -z --diff-filter=A | xargs -0 -r sh -c 'for p; do
		if [ -d "$p" ] && [ ! -L "$p" ]; then
			git --literal-pathspecs ls-files -z --others -- "$p"
			[ -z "$(find "./$p" -name .git 2>&1 | head -c 1)" ] || printf "%s\0" "$p"
			continue
		fi
		if [ -e "$p" ] || [ -L "$p" ]; then [ "$WRITTEN" ] || printf "%s\0" "$p"; continue; fi
		while case $p in */*) p=${p%/*} ;; *) false ;; esac; do
			if [ -L "$p" ] || { [ -e "$p" ] && [ ! -d "$p" ]; }; then
				[ "$(git cat-file -t "$old:$p" 2>/dev/null)" = blob ] || printf "%s\0" "$p"
			fi
		done
	done' sh
}
# stage writes the new files elsewhere, to be renamed, so that none is ever there in part. It leaves out those that stay outside a sparse checkout.
stage() {
	skipped "$next" >"$next.skipped"
	if [ -s "$next.skipped" ]; then changed --diff-filter=d | grep -vxFf "$next.skipped"; else changed --diff-filter=d; fi |
		GIT_INDEX_FILE=$next g checkout-index -q --stdin --prefix="$STAGE/"
}
# write changes the files, the index and main. A submodule is a folder, which stays if there is one. The folder that a file replaces has no files:
# see obstacles.
write() {
	echo "$new $$" >"$next.lock" && mv -f "$next.lock" "$lock" || return 1
	changed -z --diff-filter=D | xargs -0 -r sh -c 'for p; do
		if [ -d "$p" ] && [ ! -L "$p" ]; then rmdir -- "$p" 2>/dev/null; else rm -f -- "$p"; fi
		while case $p in */*) p=${p%/*} ;; *) false ;; esac; do rmdir -- "$p" 2>/dev/null || break; done
	done' sh
	changed -z --diff-filter=d | xargs -0 -r sh -c 'for p; do
		[ -e "$STAGE/$p" ] || [ -L "$STAGE/$p" ] || continue
		case $p in */*) [ -d "${p%/*}" ] || mkdir -p -- "${p%/*}" ;; esac
		[ -d "$STAGE/$p" ] && [ ! -L "$STAGE/$p" ] && module=1 || module=
		if [ -d "$p" ] && [ ! -L "$p" ]; then
			[ ! "$module" ] || continue
			find "./$p" -depth -type d -exec rmdir {} +
		elif [ "$module" ] || [ -L "$p" ]; then rm -f -- "$p"; fi && mv -f -- "$STAGE/$p" "$p" || exit 255
	done' sh || return 1
	mark && cp -p "$next" "$next.done" && mv -f "$next.done" "$dir/index" && g update-ref -m 'pull: Fast-forward' refs/heads/main "$new" "$old" || return 1
	# A refreshed index only saves the agent's git time.
	GIT_INDEX_FILE=$next g update-index -q --refresh >/dev/null
	mv -f "$next" "$dir/index"
}
`

// move is the script of [Workspace.Advance]. It compares the files and writes the new ones elsewhere before it locks the index, which takes long
// in a large workspace, and often ends with an obstacle: the agent's git does not wait for a lock. With the lock, it compares again what has
// changed since.
const move = advance + `
operation && exit 40
onmain || exit 41
at "$old" || exit 42
[ -e "$lock" ] && exit 43
trap 'end 1' HUP INT TERM
seen=
# ready compares the index, and the files that the new commit changes, with the old commit, and leaves the new index in "$next". It ends with the
# obstacle if there is one. If the index is the same as the last time, only files with other times are read. Files that are marked as assumed to be
# unchanged are compared as well, and keep the mark.
ready() {
	take "$next.now" && now=$(g hash-object --no-filters -- "$next.now") || end 1
	[ "$now" = "$seen" ] || { mv -f "$next.now" "$next.taken" && unmark "$next.taken" && seen=$now; } || end 1
	GIT_INDEX_FILE=$next.taken g update-index -q --refresh >/dev/null
	GIT_INDEX_FILE=$next.taken g diff-index -z --cached --name-only "$old" >"$next.files" || end 1
	none 46
	cp -p "$next.taken" "$next.fresh" || end 1
	GIT_INDEX_FILE=$next.fresh g update-index -q --really-refresh >/dev/null
	GIT_INDEX_FILE=$next.fresh g diff-index -z --name-only --ignore-submodules=none "$old" >"$next.edited" || end 1
	xargs -0 -r git --literal-pathspecs diff-tree -r -z --no-renames --no-ext-diff --ignore-submodules=none --name-only "$old" "$new" -- \
		<"$next.edited" >"$next.files" || end 1
	none 44
	obstacles >"$next.files" || end 1
	none 45
	cp -p "$next.taken" "$next" && GIT_INDEX_FILE=$next g read-tree -m "$new" && leave || end 1
}
# none prints the beginning of the files that were found, and ends with the given status, if there are any.
none() { if [ -s "$next.files" ]; then head -c 8000 "$next.files"; end "$1"; fi; }
ready
stage || end 1
hold || end 43
# Without that file, another script has taken this one for dead, and has removed its files.
[ -e "$next.taken" ] && at "$old" && onmain && ! operation >/dev/null || end 42
ready
write && end 0
at "$new" && end 0
at "$old" && end 1
end 42
`

// finish is the script of [Workspace.Finish]. It removes the lock if no file was changed yet. It continues if each changed file is as before or
// as after.
const finish = advance + `
if ! [ -e "$lock" ]; then
	at "$new" && exit 0
	hold && { rm -rf "$dir"/index.[0-9]*; end 42; }
	end 43
fi
name= pid= state=
read -r name pid state <"$lock"
[ "$name" = "$new" ] || { at "$new" && exit 0; exit 43; }
# The caller may have been killed, and not the script.
if [ "$pid" != $$ ]; then
	case $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") in *"$new"*) exit 43 ;; esac
fi
held=1
rm -rf "$dir"/index.[0-9]*
at "$new" && end 0
[ "$state" = staging ] && end 42
if operation >/dev/null || ! onmain || ! at "$old"; then end 42; fi
WRITTEN=1
# own lists the existing files at the given paths that differ from a commit.
own() {
	GIT_INDEX_FILE=$next.own g read-tree "$1" && GIT_INDEX_FILE=$next.own g update-index -q --refresh >/dev/null
	changed -z --diff-filter="$2" | GIT_INDEX_FILE=$next.own xargs -0 -r git -c core.fsmonitor=false --literal-pathspecs diff-files --name-only --diff-filter=d --
	rm -f "$next.own"
}
own "$old" MT >"$next.old"
own "$new" MT >"$next.new"
{ obstacles; own "$new" A; own "$old" D; grep -Fxf "$next.new" "$next.old"; } >"$next.files"
if [ -s "$next.files" ]; then end 42; fi
take "$next" && unmark "$next" && GIT_INDEX_FILE=$next g read-tree --reset "$new" && leave && stage && write && end 0
at "$new" && end 0
end 42
`

// Advance moves main from a commit to a new one that was made on it, with the index and the files, as git pull would. It keeps changes of
// other files that are not committed. It returns a [Refused] if the agent's files, staged changes or operations are in the way, or if main has
// moved.
func (w Workspace) Advance(ctx context.Context, from, to gitops.OID) error {
	return w.script(ctx, move, from, to)
}

// Finish completes or takes back an interrupted [Workspace.Advance]. It returns a [Refused] if main does not have the new commit
// after it.
func (w Workspace) Finish(ctx context.Context, from, to gitops.OID) error {
	return w.script(ctx, finish, from, to)
}

func (w Workspace) script(ctx context.Context, script string, args ...gitops.OID) error {
	ctx, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
	var out bytes.Buffer
	var stderr gitops.Stderr
	code, err := w.Run(ctx, Process{Argv: append([]string{"sh", "-c", script, "sh"}, gitops.Names(args)...), Env: w.innerEnv(),
		Stdout: gitops.CapOutput(&out, obstaclePaths), Stderr: &stderr})
	if o := Obstacle(code); err == nil && o >= Unfinished && o < lastObstacle {
		return &Refused{o, pathsIn(out.String())}
	}
	return failure("change the workspace", code, stderr.String(), err)
}

// pathsIn returns the paths that a script has printed, each with a NUL after it. The last one may have been cut. Programs of the agent may have
// printed more NULs.
func pathsIn(out string) []string {
	if whole := strings.LastIndexByte(out, 0); whole >= 0 {
		out = out[:whole]
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
}
