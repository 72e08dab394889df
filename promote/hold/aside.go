package hold

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/land"
)

// pathsNamed bounds the number of paths in a command of a hold. For more paths, the command reads them from a file.
const pathsNamed = 50

// putAside returns the commands that move paths out of the way: git stash for all paths that it can take, preceded by
// the commands that make it take them, and mv for the rest. They do the same in every folder of the work tree. dir is
// the folder for the files with paths.
func putAside(ctx context.Context, repo *gitops.Repository, dir string, paths []string) (next []string) {
	for _, p := range paths {
		if here, err := os.Getwd(); err == nil && strings.HasPrefix(here+"/", filepath.Join(repo.Top, p)+"/") {
			return []string{"cd " + gitops.Pasteable(repo.Top)} // a landing keeps the folder in which its command was typed
		}
	}
	u, _ := land.FindUnstashable(ctx, repo, paths) // the same error comes up again when git runs the next time
	for _, p := range u.Moved {
		move := "mv --"
		if slices.Contains(u.Worktrees, p) {
			move = "git worktree move --"
		}
		next = append(next, move+quoted(absolute(repo.Top, []string{p, land.FreeName(repo.Top, p)})))
	}
	if len(u.Emptied) > 0 {
		next = append(next, "mkdir --"+quoted(absolute(repo.Top, u.Emptied)))
	}
	stash := "git stash push --all"
	if u.Sparse {
		stash = "git -c core.sparseCheckout=false stash push --all"
	}
	update := "git -C " + gitops.Pasteable(repo.Top) + " update-index "  // takes no pathspecs
	if _, err := os.Lstat(filepath.Join(repo.Top, ".git")); err != nil { // core.worktree
		update = "git --git-dir=" + gitops.Pasteable(repo.GitDir) + strings.TrimPrefix(update, "git")
	}
	const fromFile, fromInput = " --pathspec-file-nul --pathspec-from-file=", " -z --stdin <"
	for _, c := range []struct {
		command, from string
		paths         []string
	}{
		{"git reset -q", fromFile, pathspecs(u.Unindexed)},
		{update + "--skip-worktree", fromInput, u.Outside},
		{update + "--no-skip-worktree", fromInput, u.Skipped},
		{update + "--no-assume-unchanged", fromInput, u.Assumed},
		{"git rm -q --cached", fromFile, pathspecs(u.Intended)},
		{"git checkout -q", fromFile, pathspecs(u.Deleted)},
		{stash, fromFile, pathspecs(u.Rest)},
	} {
		if len(c.paths) == 0 {
			continue
		}
		command := c.command + " --" + quoted(c.paths)
		if odd := slices.ContainsFunc(c.paths, unquotable); odd && repo.Dry {
			command = printed(c.paths) + " | " + c.command + strings.TrimSuffix(c.from+"-", " <-")
		} else if odd || len(c.paths) > pathsNamed && !repo.Dry {
			if name, err := list(dir, c.paths); err == nil {
				command = c.command + c.from + gitops.Pasteable(name)
			}
		}
		next = append(next, command)
	}
	return next
}

// list writes paths to a file of their own, so that the command that was printed last is right as long as its file exists.
func list(dir string, paths []string) (name string, err error) {
	content := []byte(strings.Join(paths, "\x00") + "\x00")
	name = filepath.Join(dir, fmt.Sprintf("paths-%.4x", sha256.Sum256(content)))
	return name, durable.WriteFile(name, content, 0o600)
}

// unquotable reports whether a path ends with a newline. [gitops.Pasteable] makes a pattern for it, which the shell compares with the files of
// its current folder.
func unquotable(path string) bool { return strings.HasSuffix(path, "\n") }

// printed returns a command that prints paths, each with a NUL after it.
func printed(paths []string) string {
	command := `printf '%b\0'`
	for _, p := range paths {
		command += " '"
		for _, c := range []byte(p) {
			if c == '\'' || c == '\\' || c < ' ' || c > '~' {
				command += fmt.Sprintf(`\0%03o`, c)
			} else {
				command += string(c)
			}
		}
		command += "'"
	}
	return command
}

// absolute returns the paths below the top as absolute paths.
func absolute(top string, paths []string) []string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = filepath.Join(top, p)
	}
	return all
}

// pathspecs returns pathspecs that match paths from the top of the work tree, and nothing else (gitglossary(7), "pathspec"). The short form
// does not allow for wildcards, or for a character that would be read as further magic.
func pathspecs(paths []string) []string {
	all := make([]string, len(paths))
	for i, p := range paths {
		magic := ":/"
		first, _ := utf8.DecodeRuneInString(p)
		if strings.ContainsAny(p, `*?[\`) || first != '.' && !unicode.IsLetter(first) && !unicode.IsDigit(first) {
			magic = ":(top,literal)"
		}
		all[i] = magic + p
	}
	return all
}

func quoted(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(" " + gitops.Pasteable(p))
	}
	return b.String()
}

// InTheWay returns the paths at which a landing would overwrite changes of the user: known, and those that git finds. Git finds none while
// the commit is not in the repository yet.
func InTheWay(ctx context.Context, r *gitops.Repository, next land.Landing, known []string) []string {
	if collision, found := errors.AsType[*land.CollisionError](land.Check(ctx, r, next)); found {
		known = append(slices.Clone(known), collision.Paths...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// StillInTheWay reports whether the user has changes at one of the escaped paths of a collision. It runs no filter.
func StillInTheWay(ctx context.Context, repo *gitops.Repository, tip gitops.OID, paths []string) bool {
	if len(paths) > gitops.PathspecLimit || slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(p, `\`) }) {
		return true // the changes may still be there
	}
	for _, args := range [][]string{
		{"diff-index", "--name-only", "-z", "--ignore-submodules=all", string(tip)},
		{"ls-files", "-z", "--others"},
	} {
		found, err := repo.Records(ctx, gitops.Call{Args: append(append(args, "--"), paths...)})
		if err != nil || len(found) > 0 {
			return true
		}
	}
	return false
}
