package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

var (
	// ErrNoRepository means that a directory is not in the work tree of a git repository.
	ErrNoRepository = errors.New("not inside the work tree of a git repository")
	// ErrBare means that the repository has no work tree.
	ErrBare = errors.New("the repository is bare: it has no work tree")
	// ErrTwoRepositories means that git's variables name a repository or work tree other than the one around the folder.
	ErrTwoRepositories = errors.New("GIT_DIR or GIT_WORK_TREE names another repository than the one of this folder")
)

// ForeignError means that the repository at Path belongs to another user, so that git refuses it (safe.directory in git-config(1)).
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the repository %s belongs to another user", Text(e.Path))
}

// The variables that tell git where a repository is.
const (
	gitDirVariable   = "GIT_DIR"
	workTreeVariable = "GIT_WORK_TREE"
)

// Open finds the repository whose work tree contains dir, and ignores git's variables in the environment.
func Open(ctx context.Context, dir string) (*Repository, error) {
	return locate(ctx, newUserGit(dir), dir)
}

// OpenCurrent finds the repository that git would use in dir, in this environment. Hooks and aliases set GIT_DIR to the repository that git
// would find anyway, and mean the work tree around dir. Together with GIT_WORK_TREE, GIT_DIR can also name a repository that cannot be found
// from dir. Other variables, such as GIT_INDEX_FILE, are only for the current command, and are ignored.
func OpenCurrent(ctx context.Context, dir string) (*Repository, error) {
	gitDir, workTree := os.Getenv(gitDirVariable), os.Getenv(workTreeVariable)
	around, err := Open(ctx, dir)
	if gitDir == "" && workTree == "" {
		return around, err
	}
	g := CurrentGit(dir)
	if workTree != "" {
		g = g.With(workTreeVariable + "=" + workTree)
	}
	named, namedErr := locate(ctx, g, dir)
	if namedErr != nil {
		return nil, namedErr
	}
	if workTree == "" {
		// Without GIT_WORK_TREE and core.worktree, git uses any folder as the work tree.
		workTree, _ = g.Output(ctx, "config", "core.worktree")
	}
	switch {
	case err == nil && sameDir(named.GitDir, around.GitDir) && (workTree == "" || sameDir(named.Top, around.Top)):
		return around, nil
	case err == nil && sameDir(named.GitDir, around.GitDir), workTree == "":
		return nil, ErrTwoRepositories
	}
	return named.named(), nil
}

// named sets the variables with which git finds the repository from its work tree, if that is not around a folder or file .git.
func (r *Repository) named() *Repository {
	r.Place = []string{gitDirVariable + "=" + r.GitDir, workTreeVariable + "=" + r.Top}
	r.Git = newUserGit(r.Top).With(r.Place...)
	return r
}

// OpenBare finds the bare repository that git would use in dir, in this environment, for commands that need no work tree. Its Top is its own
// folder.
func OpenBare(ctx context.Context, dir string) (*Repository, error) {
	answers, err := ask(ctx, CurrentGit(dir), places[:3])
	if err != nil {
		return nil, noRepository(err, dir)
	}
	r := &Repository{GitDir: answers[0], CommonDir: answers[1], Format: answers[2], Top: answers[0]}
	r.Place = []string{gitDirVariable + "=" + r.GitDir}
	r.identity, r.top, r.Git = identityOf(r.CommonDir), identityOf(r.Top), newUserGit(r.GitDir).With(r.Place...)
	return r, nil
}

// OpenWithSettings is like [OpenCurrent] and [Git.Settings], and starts git for both at the same time.
func OpenWithSettings(ctx context.Context, dir string) (r *Repository, settings []Setting, err error) {
	var read error
	err = Together(
		func() (err error) { r, err = OpenCurrent(ctx, dir); return },
		func() error { settings, read = newUserGit(dir).Settings(ctx); return nil })
	if err == nil && (read != nil || len(r.Place) > 0) { // not the repository that git finds from the folder
		settings, err = r.Settings(ctx)
	}
	return r, settings, err
}

// Environment returns the caller's environment for a process that outlives the caller's command. It leaves out git's variables for the current
// command, and adds those that git needs to find this repository from its work tree.
func (r *Repository) Environment() []string {
	forCommand := func(v string) bool { return strings.HasPrefix(v, configParameters+"=") }
	return append(slices.DeleteFunc(callerEnvironment(), forCommand), r.Place...)
}

// CheckLater returns the error with which git would refuse the repository in [Repository.Environment], as when only "git -c safe.directory" allows it.
func (r *Repository) CheckLater(ctx context.Context) error {
	_, err := locate(ctx, r.With(configParameters+"="), r.Top)
	return err
}

// Identity returns a string that distinguishes the repository from every other, including its copies, and that
// stays the same when the repository is moved.
func (r *Repository) Identity() string { return r.identity }

// Replaced reports whether the path of the repository now contains another repository.
func (r *Repository) Replaced() bool {
	now := identityOf(r.CommonDir)
	return now != "" && now != r.identity
}

// InPlace reports whether the work tree and its git directory are still at their paths.
func (r *Repository) InPlace() bool {
	if r.Replaced() || identityOf(r.Top) != r.top {
		return false
	}
	if _, err := os.Stat(r.GitDir); err != nil {
		return false
	}
	return r.There(".git") || len(r.Place) > 0
}

func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// places are the options of git rev-parse for the fields of a Repository, in the order of the fields.
var places = []string{"--absolute-git-dir", "--git-common-dir", "--show-object-format", "--show-toplevel"}

// sinceOldest is an option without effect that git knows since the oldest supported version, 2.39. An older rev-parse prints it.
const sinceOldest = "--exclude-hidden=receive"

// locate uses git to find the repository. Each answer is a line. If there are more lines than options, a path
// contains a line break, and locate runs git separately for each option.
func locate(ctx context.Context, g *Git, dir string) (*Repository, error) {
	var out bytes.Buffer
	args := append([]string{"rev-parse", "--path-format=absolute", "--is-bare-repository", sinceOldest}, places...)
	err := g.Look(ctx, Call{Stdout: &out, Args: args})
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if err != nil || slices.Contains(lines, sinceOldest) {
		if old := CheckVersion(ctx); old != nil {
			return nil, old
		}
	}
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
		if answers, err = ask(ctx, g, places); err != nil {
			return nil, err
		}
	}
	if len(answers) != len(places) {
		return nil, fmt.Errorf("git rev-parse answered %q", Text(out.String()))
	}
	r := &Repository{GitDir: answers[0], CommonDir: answers[1], Format: answers[2], Top: answers[3]}
	r.identity, r.top = identityOf(r.CommonDir), identityOf(r.Top)
	if sameDir(r.Top, r.GitDir) || sameDir(r.Top, r.CommonDir) {
		return nil, fmt.Errorf("%w (this is the git directory)", ErrNoRepository)
	}
	hostenv.Add(r.Top)
	if r.Git = newUserGit(r.Top); !r.There(".git") { // core.worktree names a work tree without one
		r.named()
	}
	return r, nil
}

// ask runs git rev-parse for each question.
func ask(ctx context.Context, g *Git, questions []string) (answers []string, err error) {
	for _, question := range questions {
		answer, err := g.Output(ctx, "rev-parse", "--path-format=absolute", question)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// noRepository returns the error for a folder without a repository, or for a repository of another user.
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

// OwnedByUs reports whether a file belongs to the user of this process.
func OwnedByUs(info os.FileInfo) bool { return OwnedBy(info, os.Geteuid()) }

// OwnedBy reports whether a file belongs to a user.
func OwnedBy(info os.FileInfo, uid int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}

func reason(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return strings.TrimPrefix(e.Said(), "fatal: ")
	}
	return err.Error()
}
