package hold

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/words"
)

// placesNamed bounds the number of places that a message names.
const placesNamed = 5

// Losing returns the places with work that would be lost with them.
func Losing(places []inner.Place) []inner.Place {
	return slices.DeleteFunc(slices.Clone(places), func(p inner.Place) bool { return !p.Loses() })
}

// Works describes the work that would be lost with places, one text for each of the first places.
func Works(places []inner.Place) (texts []string) {
	losing := Losing(places)
	for _, p := range losing[:min(len(losing), placesNamed)] {
		texts = append(texts, work(p))
	}
	if more := len(losing) - placesNamed; more > 0 {
		texts = append(texts, "work in "+words.Count(more, "more place"))
	}
	return texts
}

func work(p inner.Place) string {
	switch {
	case p.Hidden == inner.Closed:
		return "possible work in the unreadable path " + gitops.Text(p.Path).String()
	case p.Hidden == inner.Autostash:
		return "a stash of an unfinished operation in " + gitops.Text(p.Path).String()
	case p.Hidden == inner.Submodule:
		return "files at the path of the submodule " + gitops.Text(p.Path).String()
	case p.Path == "":
		return "work in places that were not searched or counted"
	}
	var parts []string
	if p.Changes > 0 {
		parts = append(parts, words.Count(p.Changes, "uncommitted change"))
	}
	if p.Commits > 0 {
		parts = append(parts, words.Count(p.Commits, "commit"))
	}
	if p.Unread {
		parts = []string{"work that cannot be counted"}
	}
	what := "worktree"
	if p.Repository {
		what = "repository"
	}
	return fmt.Sprintf("%s in the %s %s", strings.Join(parts, " and "), what, gitops.Text(p.Path))
}

// KeepFirst returns commands that show and keep the work that would be lost with the first place. top is the path of the workspace inside, and
// id the airlock's.
func KeepFirst(places []inner.Place, top, id string) []string {
	losing := Losing(places)
	switch {
	case len(losing) == 0:
		return nil
	case losing[0].Path == "", losing[0].Hidden == inner.Closed:
		return []string{See(losing[0], top)}
	case losing[0].Hidden == inner.Autostash:
		return []string{See(losing[0], top), unfinished(losing[0], top) + "  # continue or abort the operation"}
	}
	return []string{See(losing[0], top), keep(losing[0], top, id)}
}

// See returns the command that shows the work in a place, or that lets airlock read it. top is the path of the workspace inside.
func See(p inner.Place, top string) string {
	switch {
	case p.Path == "":
		return "git airlock visit -- find . -name .git"
	case p.Hidden == inner.Closed:
		return "git airlock visit -- chmod -R u+rwX -- " + gitops.Pasteable(folder(p, top))
	case p.Hidden == inner.Autostash:
		git, file := stashed(p, top)
		return "git airlock visit -- sh -c 'git --git-dir=\"$1\" stash show -p \"$(cat \"$1/$2\")\"' sh " + gitops.Pasteable(git) + " " + file
	case p.Hidden == inner.Submodule:
		return "git airlock visit -- find " + gitops.Pasteable(folder(p, top))
	}
	return "git airlock visit -- git -C " + gitops.Pasteable(folder(p, top)) + " status"
}

// stashed returns the git directory of a stash of an unfinished operation, and the file there that names the stash.
func stashed(p inner.Place, top string) (git, file string) {
	git, file = path.Split(folder(p, top))
	if file == "autostash" { // of a rebase, whose files have a folder of their own
		file = path.Base(git) + "/" + file
		git = path.Dir(path.Clean(git))
	}
	return path.Clean(git), file
}

// unfinished returns the command that shows an unfinished operation with a stash in its own work tree. A worktree's git directory has the path of
// the work tree in a file, and a submodule's has it in the settings.
func unfinished(p inner.Place, top string) string {
	git, _ := stashed(p, top)
	switch {
	case path.Base(git) == ".git":
		return "git airlock visit -- git -C " + gitops.Pasteable(path.Dir(git)) + " status"
	case path.Base(path.Dir(git)) == "worktrees":
		return "git airlock visit -- sh -c 'cd \"$1\" && cd \"$(dirname \"$(cat gitdir)\")\" && git status' sh " + gitops.Pasteable(git)
	}
	return "git airlock visit -- git --git-dir=" + gitops.Pasteable(git) + " status"
}

// keep returns the command that keeps the work in a place: as a commit that the inner repository then has, or as an archive. Files of a
// repository of its own cannot land, since git would commit only the id of its HEAD. Git commits no files of a submodule.
func keep(p inner.Place, top, id string) string {
	dir := gitops.Pasteable(folder(p, top))
	files := dir + " -cf - ."
	if p.Hidden == inner.Submodule { // there can be a file in place of the folder
		files = gitops.Pasteable(top) + " -cf - " + gitops.Pasteable("./"+p.Path)
	}
	if p.Repository || p.Unread || p.Hidden == inner.Submodule {
		return "git airlock visit -- tar -C " + files + " >airlock-" + id + ".tar  # keeps a copy, then discard"
	}
	return "git airlock visit -- sh -c 'cd \"$1\" && git add -A && git commit -m \"Uncommitted work\"' sh " + dir + "  # keeps it, as a commit"
}

// folder returns the path of a place inside.
func folder(p inner.Place, top string) string {
	if path.IsAbs(p.Path) {
		return p.Path
	}
	return path.Join(top, p.Path)
}
