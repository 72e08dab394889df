package inner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Place is a work tree that git status of the workspace does not report on: another worktree of the inner repository, or the work tree of
// a repository of its own below the workspace, such as a clone.
type Place struct {
	Path     string     // below the workspace; absolute if the worktree is elsewhere; empty for all places after the first placesLimit
	Own      bool       // a repository of its own
	Detached gitops.OID // the commit that HEAD of a worktree names without a branch
	Changes  int        // changed paths that are not committed
	Commits  int        // commits of a repository of its own that neither the inner repository nor a server has
	Unread   bool       // the work there could not be counted

	git, common string
}

// Loses reports whether work is lost with the place, other than commits of the inner repository.
func (p Place) Loses() bool { return p.Changes > 0 || p.Commits > 0 || p.Unread }

// placesLimit limits the number of places that are counted.
const placesLimit = 200

// placesScript lists the other worktrees of a workspace and the repositories below it. Its argument is the workspace. It prints the workspace's
// common directory, and for each place the path, the git directory, the common directory, and the first bytes of HEAD. The last three are
// empty if the git directory cannot be found, and the git directory is empty if the folder of a worktree is gone. It reads no name from a line,
// since a name may contain line breaks.
const placesScript = `list='for e; do
	p=${e%/*} g=$e c=
	case $e in */.git/worktrees/*)
		[ -f "$e/gitdir" ] || continue
		p=$(head -c 4200 "$e/gitdir") p=${p%/.git}
		case $p in /*) ;; *) p=$(cd "$e/$p" 2>/dev/null && pwd -P) || continue ;; esac
		case $p in "$top"/*) [ -f "$p/.git" ] || { [ -f "$e/HEAD" ] && printf "%s\0\0%s\0%s\0" "$p" "$top/.git" "$(head -c 80 "$e/HEAD")"; continue; } ;; esac ;;
	esac
	if [ -f "$e" ]; then
		g=$(head -c 4200 "$e") g=${g#gitdir: }
		case $g in /*) ;; *) g=$p/$g ;; esac
		[ -f "$g/HEAD" ] || { printf "%s\0\0\0\0" "$p"; continue; }
	fi
	[ -e "$g/HEAD" ] || continue
	[ -f "$g/HEAD" ] || { printf "%s\0\0\0\0" "$p"; continue; }
	g=$(cd "$g" && pwd -P) || continue
	c=$g
	if [ -f "$g/commondir" ]; then
		c=$(head -c 4200 "$g/commondir")
		case $c in /*) ;; *) c=$g/$c ;; esac
		c=$(cd "$c" 2>/dev/null && pwd -P) || continue
	fi
	printf "%s\0%s\0%s\0%s\0" "$p" "$g" "$c" "$(head -c 80 "$g/HEAD")"
done'
top=$1
export top
cd "$1/.git" && printf '%s\0' "$(pwd -P)" || exit 0
sh -c "$list" sh "$1"/.git/worktrees/*
find "$1" -xdev -path "$1/.git" -prune -o -name .git '(' -type d -o -type f ')' -prune -exec sh -c "$list" sh {} + 2>/dev/null
:`

// Places lists the places, in the order of their paths, and counts the work in those below the workspace. A place elsewhere has no
// count.
func (w Workspace) Places(ctx context.Context) ([]Place, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var out bytes.Buffer
	_, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", placesScript, "sh", w.Dir}, Env: w.innerEnv(), Stdout: gitops.CapOutput(&out, lookLimit)})
	if err != nil && !errors.Is(err, gitops.ErrOutput) {
		return nil, Invalidf("look for repositories in the workspace: %s", err)
	}
	places := w.parsePlaces(out.String())
	if len(places) > placesLimit {
		places = append(places[:placesLimit], Place{Own: true, Unread: true})
	}
	var have []string
	if slices.ContainsFunc(places, func(p Place) bool { return p.Own }) {
		refs, err := w.Branches(ctx)
		if err != nil {
			return places, err
		}
		for _, r := range refs {
			have = append(have, string(r.Commit))
		}
	}
	for i := range places {
		if p := &places[i]; p.git != "" && !path.IsAbs(p.Path) {
			p.Unread = w.count(ctx, p, i, have) != nil
		}
	}
	return places, nil
}

// parsePlaces parses the output of the placesScript. The last place may be incomplete.
func (w Workspace) parsePlaces(out string) (places []Place) {
	main, rest, _ := strings.Cut(out, "\x00")
	fields := strings.Split(rest, "\x00")
	for ; len(fields) > 4; fields = fields[4:] {
		p := Place{Path: fields[0], git: fields[1], common: fields[2], Unread: fields[2] == ""}
		if below, ok := strings.CutPrefix(p.Path, w.Dir+"/"); ok {
			p.Path = below
		}
		if p.Own = p.common != main; !p.Own {
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
	if p.Changes, err = w.Uncommitted(ctx); err != nil || !p.Own {
		return err
	}
	if p.Commits, err = w.Count(ctx, "--all", have...); err != nil || p.Commits == 0 {
		return err
	}
	// Commits that came from a server can be fetched again. A remote that is a folder of the prison ends with it.
	urls, err := w.query(ctx, "config", "--get-regexp", `^remote\..*\.url$`)
	if errors.Is(err, errNothing) || err == nil && slices.ContainsFunc(strings.Split(urls, "\n"), local) {
		return nil
	}
	if err == nil {
		p.Commits, err = w.Count(ctx, "--all", append(slices.Clip(have), "--remotes")...)
	}
	return err
}

// local reports whether a line with a setting and a URL names a folder, as git does.
func local(line string) bool {
	_, url, _ := strings.Cut(line, " ")
	host, _, colon := strings.Cut(url, ":")
	return !colon || strings.Contains(host, "/") || host == "file"
}

// Below returns the paths of those places that are below the workspace.
func Below(places []Place) (paths []string) {
	for _, p := range places {
		if p.Path != "" && !path.IsAbs(p.Path) {
			paths = append(paths, p.Path)
		}
	}
	return paths
}
