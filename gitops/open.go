package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

var (
	// ErrNoRepository says that a directory is in no git repository's work tree.
	ErrNoRepository = errors.New("not inside the work tree of a git repository")
	// ErrBare says that the repository has no work tree.
	ErrBare = errors.New("the repository is bare: it has no work tree")
	// ErrTwoRepositories says that git's variables name another repository or work tree than the one around the folder.
	ErrTwoRepositories = errors.New("GIT_DIR or GIT_WORK_TREE names another repository than the one of this folder")
)

// ForeignError says that the repository at Path belongs to another user, and that git therefore refuses it
// (safe.directory in git-config(1)).
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the repository %s belongs to another user", Escape(e.Path))
}

// The variables by which git is told where a repository is.
const (
	gitDirVariable   = "GIT_DIR"
	workTreeVariable = "GIT_WORK_TREE"
)

// Open finds the repository whose work tree holds dir, whatever the environment says.
func Open(ctx context.Context, dir string) (*Repository, error) {
	place, err := locate(ctx, newUserGit(dir), dir)
	if err != nil {
		return nil, err
	}
	hostenv.Add(place.Top)
	place.Git = newUserGit(place.Top)
	return place, nil
}

// OpenCurrent finds the repository that git would work on in dir, in this environment. Hooks and aliases set
// GIT_DIR to what is there anyway, and mean the work tree around dir; together with GIT_WORK_TREE it
// can put the two in different places, which nobody could find by looking around. What else of the variables is of
// the moment, such as GIT_INDEX_FILE, is not obeyed.
func OpenCurrent(ctx context.Context, dir string) (*Repository, error) {
	gitDir, workTree := os.Getenv(gitDirVariable), os.Getenv(workTreeVariable)
	around, err := Open(ctx, dir)
	if gitDir == "" && workTree == "" {
		return around, err
	}
	var env []string
	for _, name := range []string{gitDirVariable, workTreeVariable} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	g := newUserGit(dir).With(env...)
	named, namedErr := locate(ctx, g, dir)
	if namedErr != nil {
		return nil, namedErr
	}
	if workTree == "" {
		// Without either git takes any folder for the work tree.
		workTree, _ = g.Output(ctx, "config", "core.worktree")
	}
	switch {
	case err == nil && sameDir(named.GitDir, around.GitDir) && (workTree == "" || sameDir(named.Top, around.Top)):
		return around, nil
	case err == nil && sameDir(named.GitDir, around.GitDir), workTree == "":
		return nil, ErrTwoRepositories
	}
	hostenv.Add(named.Top)
	named.Place = []string{gitDirVariable + "=" + named.GitDir, workTreeVariable + "=" + named.Top}
	named.Git = newUserGit(named.Top).With(named.Place...)
	return named, nil
}

// Environment is the caller's for a process that is to live longer than the caller's command: without what git
// says for the moment, with what it takes to find this repository from its work tree.
func (r *Repository) Environment() []string {
	var env []string
	for _, v := range callerEnvironment() {
		if !strings.HasPrefix(v, configParameters+"=") {
			env = append(env, v)
		}
	}
	return append(env, r.Place...)
}

// Identity tells the repository from every other, a copy of it among them, wherever it is moved.
func (r *Repository) Identity() string { return r.identity }

// Replaced reports whether there is another repository by now where it was found.
func (r *Repository) Replaced() bool {
	now := identityOf(r.CommonDir)
	return now != "" && now != r.identity
}

// InPlace reports whether the work tree and its git directory are still where they were found.
func (r *Repository) InPlace() bool {
	if r.Replaced() || identityOf(r.Top) != r.top {
		return false
	}
	if _, err := os.Stat(r.GitDir); err != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(r.Top, ".git"))
	return err == nil || len(r.Place) > 0
}

func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// places are the questions whose answers make a Repository, in the order of its fields.
var places = []string{"--absolute-git-dir", "--git-common-dir", "--show-object-format", "--show-toplevel"}

// locate asks git where its repository is. The answers are lines; if there are more than questions, a path has a line
// break in it, and each is asked for by itself.
func locate(ctx context.Context, g *Git, dir string) (*Repository, error) {
	var out bytes.Buffer
	args := append([]string{"rev-parse", "--path-format=absolute", "--is-bare-repository"}, places...)
	err := g.Look(ctx, Call{Stdout: &out, Args: args})
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	switch {
	case lines[0] == "true":
		return nil, ErrBare
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil && lines[0] == "":
		return nil, noRepository(err, dir)
	case err != nil:
		return nil, fmt.Errorf("%w (this is the git directory)", ErrNoRepository)
	}
	answers := lines[1:]
	if len(answers) > len(places) {
		answers = nil
		for _, question := range places {
			answer, err := g.Output(ctx, "rev-parse", "--path-format=absolute", question)
			if err != nil {
				return nil, err
			}
			answers = append(answers, answer)
		}
	}
	if len(answers) != len(places) {
		return nil, fmt.Errorf("git rev-parse answered %q", Escape(out.String()))
	}
	r := &Repository{GitDir: answers[0], CommonDir: answers[1], Format: answers[2], Top: answers[3]}
	r.identity, r.top = identityOf(r.CommonDir), identityOf(r.Top)
	if sameDir(r.Top, r.GitDir) || sameDir(r.Top, r.CommonDir) {
		return nil, fmt.Errorf("%w (this is the git directory)", ErrNoRepository)
	}
	return r, nil
}

// noRepository tells a repository that is none of the caller's from none at all.
func noRepository(cause error, dir string) error {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if _, err := os.Stat(git); err != nil {
			continue
		}
		for _, name := range []string{git, dir} {
			if info, err := os.Stat(name); err == nil && !OwnedByUs(info) {
				return &ForeignError{dir}
			}
		}
		break
	}
	return fmt.Errorf("%w: %s", ErrNoRepository, reason(cause))
}

// OwnedByUs reports whether a file belongs to the user this process runs as.
func OwnedByUs(info os.FileInfo) bool { return OwnedBy(info, os.Geteuid()) }

// OwnedBy reports whether a file belongs to a user.
func OwnedBy(info os.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

func reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return strings.TrimPrefix(e.Stderr, "fatal: ")
	}
	return err.Error()
}
