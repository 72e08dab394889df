package inner

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Place is a work tree that git status of the workspace does not report on: another worktree of the inner repository, or the work tree of
// a repository of its own below the workspace, such as a clone.
type Place struct {
	Path       string     // below the workspace; absolute if the worktree is elsewhere; empty for all places that were not searched or counted
	Repository bool       // a repository of its own
	Detached   gitops.OID // the commit that HEAD of a worktree names without a branch
	Changes    int        // changed paths that are not committed
	Commits    int        // commits of a repository of its own that neither the inner repository nor a server has
	Unread     bool       // the work there could not be counted
	Hidden     Hidden     // empty for a work tree; otherwise what else is at Path, where work may be hidden

	git, common string
}

// Hidden is a kind of file or folder that is not a work tree and may hide work that is lost with the workspace.
type Hidden string

// The kinds of hidden work.
const (
	Closed    Hidden = "closed"    // a folder, or a file of git, that the phantom may not read
	Autostash Hidden = "autostash" // the file of an unfinished rebase or merge that names a stash; no ref has that stash
	Submodule Hidden = "submodule" // what is at the path of a submodule without a repository; git neither shows nor commits that
)

// Loses reports whether work is lost with the place, other than commits of the inner repository.
func (p Place) Loses() bool { return p.Changes > 0 || p.Commits > 0 || p.Unread || p.Hidden != "" }

const (
	// placesLimit limits the number of places that are counted.
	placesLimit = 200
	// searchTime limits the time of the search for places, and then the time for counting the work in all of them. The search reads every
	// folder of the workspace, and there may be a hundred thousand.
	searchTime = 30 * time.Second
)

// searchScript prints the workspace's common directory, the entries of its other worktrees, and the paths of all .git below it. A path after "!" is
// a folder that cannot be read, or such a file that names a ref or a worktree: git and find treat what is there as absent. A path after "=" is a file
// that names a stash, which no ref has. Argument: the workspace. Caches of compiled files and the folders of loose objects have no repositories below
// them. The exit status is 1 if find failed for a reason other than a missing permission, and 127 if the image has no find.
const searchScript = `cd "$1/.git" && printf '%s\0' "$(pwd -P)" || exit 0
for e in "$1"/.git/worktrees/*; do
	[ ! -d "$e" ] || printf '%s\0' "$e"
done
LC_ALL=C hidden='` + hiddenScript + `'
export LC_ALL
find "$1" -xdev -type d ! -perm -505 ! -exec sh -c "$hidden" sh {} + \
	-o '(' -name __pycache__ -o -path '*/node_modules/.cache' -o -path '*/objects/[0-9a-f][0-9a-f]' ')' -prune \
	-o -name .git ! -path "$1/.git" '(' -type d -o -type f ')' -print0 \
	-o -path '*/.git/*' -type f '(' -path '*/.git/*refs/*' ! -path '*/logs/refs/*' -o -path '*/.git/*worktrees/*' -o -name '*autostash' -o -name '*AUTOSTASH' ')' \
		-exec sh -c "$hidden" sh {} +
code=$?
[ "$code" = 1 ] || exit "$code"
other=$(find "$1" -xdev -type d 2>&1 >/dev/null | grep -c -v -e ': Permission denied$' -e ': No such file or directory$')
[ "$other" = 0 ]`

// hiddenScript prints those of its arguments that exist and cannot be read, after "!", and the files with a stash, after "=".
const hiddenScript = `for p; do
	if [ -r "$p" ] && { [ ! -d "$p" ] || [ -x "$p" ]; } || [ ! -e "$p" ]; then
		case ${p##*/.git/} in
		rebase-*/autostash | MERGE_AUTOSTASH | worktrees/*/rebase-*/autostash | worktrees/*/MERGE_AUTOSTASH | modules/*/rebase-*/autostash | modules/*/MERGE_AUTOSTASH)
			if [ -f "$p" ] && [ -s "$p" ]; then printf "=%s\0" "$p"; fi ;;
		esac
		continue
	fi
	printf "!%s\0" "$p"
done`

// placesScript prints for each place the path, the git directory, the common directory, the first bytes of HEAD, and "there" if the path has a
// .git. The last four are empty if the git directory cannot be found. The path of a worktree may be relative to its git directory, and that of
// one in the agent's home leads nowhere in this prison. No name is read from a line, since a name may contain line breaks. Arguments: the
// paths that the searchScript printed.
const placesScript = `for e; do
	p=${e%/*} g=$e c= there=there
	case $e in */.git/worktrees/*)
		[ -f "$e/gitdir" ] || continue
		p=$(head -c 4200 "$e/gitdir") p=${p%/.git}
		case $p in /*) ;; *) p=$e/$p ;; esac
		[ -f "$p/.git" ] || there= ;;
	esac
	if [ -f "$e" ]; then
		g=$(head -c 4200 "$e") g=${g#gitdir: }
		case $g in /*) ;; *) g=$p/$g ;; esac
		[ -f "$g/HEAD" ] || { printf '%s\0\0\0\0\0' "$p"; continue; }
	fi
	[ -e "$g/HEAD" ] || continue
	[ -f "$g/HEAD" ] || { printf '%s\0\0\0\0\0' "$p"; continue; }
	g=$(cd "$g" && pwd -P) || continue
	c=$g
	if [ -f "$g/commondir" ]; then
		c=$(head -c 4200 "$g/commondir")
		case $c in /*) ;; *) c=$g/$c ;; esac
		c=$(cd "$c" 2>/dev/null && pwd -P) || continue
	fi
	printf '%s\0%s\0%s\0%s\0%s\0' "$p" "$g" "$c" "$(head -c 80 "$g/HEAD")" "$there"
done`

// Places lists the hidden work, then the places in the order of their paths, and counts the work in those below the workspace. A place elsewhere
// has no count. If not all of the workspace could be searched, the last place is unread and has an empty path. Only the end of ctx is an error.
func (w Workspace) Places(ctx context.Context) ([]Place, error) {
	return w.placesWithin(ctx, searchTime)
}

func (w Workspace) placesWithin(ctx context.Context, search time.Duration) ([]Place, error) {
	main, entries, hidden, whole := w.searchPlaces(ctx, search)
	counting, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var places []Place
	if len(entries) > 0 {
		out, code, err := w.output(counting, placesScript, entries...)
		places, whole = w.parsePlaces(main, out), whole && err == nil && code == 0
	}
	submodules, all := w.submodules(counting, places)
	hidden, whole = append(hidden, submodules...), whole && all
	if len(places) > placesLimit {
		places, whole = places[:placesLimit], false
	}
	w.countPlaces(counting, places)
	places = append(hidden, places...)
	if !whole {
		places = append(places, Place{Repository: true, Unread: true})
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return places, ctx.Err()
	}
	return places, nil
}

// searchPlaces returns the workspace's common directory, and the paths and the hidden work that the searchScript finds in a limited time. whole
// reports whether these are all.
func (w Workspace) searchPlaces(ctx context.Context, atMost time.Duration) (main string, entries []string, hidden []Place, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	out, code, err := w.output(ctx, searchScript, w.Dir)
	found := records(out)
	whole = err == nil && ctx.Err() == nil && code == 0
	if len(found) == 0 {
		return "", nil, nil, whole
	}
	main = found[0]
	seen := map[string]bool{} // each entry costs several processes
	for _, e := range found[1:] {
		switch e[:min(1, len(e))] {
		case "!":
			hidden = append(hidden, w.hiddenAt(e[1:], Closed))
		case "=":
			hidden = append(hidden, w.hiddenAt(e[1:], Autostash))
		default:
			if !seen[e] {
				entries, seen[e] = append(entries, e), true
			}
		}
	}
	slices.SortFunc(hidden, func(a, b Place) int { return cmp.Compare(a.Path, b.Path) })
	hidden = slices.Compact(hidden)
	const limited = 2 * placesLimit // a worktree below the workspace is found twice
	whole = whole && len(entries) <= limited && len(hidden) <= placesLimit
	return main, entries[:min(len(entries), limited)], hidden[:min(len(hidden), placesLimit)], whole
}

// submodulesScript prints the paths of those submodules in the index that have files and no repository. Files of repositories below them do not
// count: these are places. Arguments: the folder and the git directory of each work tree.
const submodulesScript = `LC_ALL=C repository='[ -f "$1/.git" ] || [ -e "$1/.git/HEAD" ]'
export LC_ALL repository
while [ $# -gt 1 ]; do
	w=$1 g=$2
	shift 2
	[ -f "$g/index" ] && cd "$w" || continue
	GIT_DIR=$g GIT_WORK_TREE=$w git -c core.fsmonitor=false ls-files -s -z | sed -z -n '/^160000 /p' | xargs -0 -r sh -c '
		for e; do
			p=$PWD/${e#*	}
			file=$(find "$p" -xdev -type d -exec sh -c "$repository" sh {} \; -prune -o ! -type d -print 2>/dev/null | head -c 1)
			[ -z "$file" ] || printf "%s\0" "$p"
		done' sh || exit
done`

// submodules returns the places of submodules with files, in the workspace and in the other work trees below it. whole reports whether these are
// all.
func (w Workspace) submodules(ctx context.Context, places []Place) (hidden []Place, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	trees := []string{w.Dir, w.gitDir()}
	for _, p := range places[:min(len(places), placesLimit)] {
		if p.git != "" && !path.IsAbs(p.Path) {
			trees = append(trees, path.Join(w.Dir, p.Path), p.git)
		}
	}
	out, code, err := w.output(ctx, submodulesScript, trees...)
	found := records(out)
	for _, f := range found[:min(len(found), placesLimit)] {
		hidden = append(hidden, w.hiddenAt(f, Submodule))
	}
	return hidden, err == nil && code == 0 && len(found) <= placesLimit
}

// hiddenAt returns the place of hidden work.
func (w Workspace) hiddenAt(file string, what Hidden) Place {
	if file = strings.TrimPrefix(file, w.Dir); file == "" {
		file = "/."
	}
	return Place{Path: file[1:], Hidden: what}
}

// countPlaces counts the work in the places that are below the workspace. A place whose work cannot be counted in time is unread.
func (w Workspace) countPlaces(ctx context.Context, places []Place) {
	var have []string
	var unknown error
	if slices.ContainsFunc(places, func(p Place) bool { return p.Repository }) {
		var refs []Ref
		refs, unknown = w.Branches(ctx)
		for _, r := range refs {
			have = append(have, string(r.Commit))
		}
	}
	for i := range places {
		if p := &places[i]; p.git != "" && !path.IsAbs(p.Path) {
			p.Unread = w.count(ctx, p, i, have) != nil || p.Repository && unknown != nil
		}
	}
}

// parsePlaces parses the output of the placesScript. The last place may be incomplete.
func (w Workspace) parsePlaces(main, out string) (places []Place) {
	for fields := records(out); len(fields) >= 5; fields = fields[5:] {
		// An agent may write any path: "/workspace/../x" is not below the workspace.
		p := Place{Path: path.Clean(fields[0]), git: fields[1], common: fields[2], Unread: fields[2] == ""}
		if below, ok := strings.CutPrefix(p.Path, w.Dir+"/"); ok {
			p.Path = below
			if fields[4] == "" { // the folder of a worktree is gone
				p.git = ""
			}
		}
		if p.Repository = p.common != main; !p.Repository {
			p.Detached, _ = gitops.ParseOID(strings.TrimSpace(fields[3])) // not for the name of a branch
		}
		if p.Path != w.Dir && p.git != main {
			places = append(places, p)
		}
	}
	slices.SortStableFunc(places, func(a, b Place) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(places, func(a, b Place) bool { return a.Path == b.Path && a.git == b.git })
}

// count counts the work in a place. have are commits that the inner repository has.
func (w Workspace) count(ctx context.Context, p *Place, n int, have []string) (err error) {
	w.lent = path.Join(w.gitDir(), "objects") // otherwise git does not know what the newer commits of the inner repository reach
	w.Dir, w.own, w.common, w.Scratch = path.Join(w.Dir, p.Path), p.git, p.common, path.Join(w.Scratch, "places", strconv.Itoa(n))
	if p.Changes, err = w.Uncommitted(ctx); err != nil || !p.Repository {
		return err
	}
	if p.Commits, err = w.Count(ctx, "--all", have...); err != nil || p.Commits == 0 {
		return err
	}
	// Commits that came from a server can be fetched again. A remote that is a folder of the prison ends with it.
	urls, err := w.query(ctx, "config", "--get-regexp", `^remote\..*\.url$`)
	own := func(line string) bool { return local(line) && !w.mirrors(ctx, line) }
	if errors.Is(err, errNothing) || err == nil && slices.ContainsFunc(strings.Split(urls, "\n"), own) {
		return nil
	}
	if err == nil {
		p.Commits, err = w.countUnfetched(ctx, have)
	}
	return err
}

// shallowScript prints the commits at which the history of a shallow repository ends. Argument: the common directory.
const shallowScript = `[ ! -f "$1/shallow" ] || head -n 1000 "$1/shallow"`

// countUnfetched counts the commits of a repository that neither have nor a fetch from a server has brought. A tag usually comes from the server:
// its commits count only if another ref has them, too. A shallow clone of a tag or of a commit has no ref in refs/remotes.
func (w Workspace) countUnfetched(ctx context.Context, have []string) (int, error) {
	ends, _, err := w.output(ctx, shallowScript, w.common)
	if err != nil {
		return 0, err
	}
	have = slices.Clone(have)
	for line := range strings.Lines(ends) {
		if id, err := gitops.ParseOID(strings.TrimSpace(line)); err == nil {
			have = append(have, string(id))
		}
	}
	onRefs, err := w.countRevisions(ctx, append([]string{"--ignore-missing", "--exclude=refs/tags/*", "--glob=refs/*", "--not", "--remotes"}, have...)...)
	if err != nil {
		return 0, err
	}
	onHeads, err := w.countRevisions(ctx, append([]string{"--ignore-missing", "--exclude=refs/*", "--all", "--not", "--glob=refs/*"}, have...)...)
	return onRefs + onHeads, err
}

// mirrors reports whether a line with a setting and a folder names a mirror of a server, as tools for dependencies make them. What is in such a
// mirror came from the server, since the next fetch replaces everything else.
func (w Workspace) mirrors(ctx context.Context, line string) bool {
	_, w.own, _ = strings.Cut(line, " ")
	if w.own = strings.TrimPrefix(w.own, "file://"); !path.IsAbs(w.own) {
		return false
	}
	settings, err := w.query(ctx, "config", "--local", "--get-regexp", `^remote\..*\.(url|mirror)$`)
	lines := strings.Split(settings, "\n")
	isMirror := func(line string) bool { return strings.HasSuffix(line, ".mirror true") }
	return err == nil && len(lines) == 2 && slices.ContainsFunc(lines, isMirror) &&
		!slices.ContainsFunc(lines, func(line string) bool { return !isMirror(line) && local(line) })
}

// local reports whether a line with a setting and a URL names a folder, as git does.
func local(line string) bool {
	_, url, _ := strings.Cut(line, " ")
	host, _, colon := strings.Cut(url, ":")
	return !colon || strings.Contains(host, "/") || host == "file"
}

// Below returns the paths of those work trees that are below the workspace.
func Below(places []Place) (paths []string) {
	for _, p := range places {
		if p.Path != "" && !path.IsAbs(p.Path) && p.Hidden == "" {
			paths = append(paths, p.Path)
		}
	}
	return paths
}
