package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var (
	// ErrDetached means that HEAD does not name a branch.
	ErrDetached = errors.New("HEAD is detached")
	// ErrUnborn means that the checked-out branch has no commit yet.
	ErrUnborn = errors.New("the branch has no commit yet")
)

// Repository is the user's outer repository, seen from one of its worktrees.
type Repository struct {
	Top       string // top of the work tree
	GitDir    string // this worktree's git directory
	CommonDir string // the repository's own git directory
	Format    string // object format: sha1 or sha256
	*Git
	Place []string // variables that git needs to find the repository from Top

	identity string // of CommonDir at the time of opening
	top      string // of Top
}

// Version returns the version of the git on PATH.
func Version(ctx context.Context) (string, error) {
	text, err := newUserGit("/").Output(ctx, "version")
	return strings.TrimPrefix(strings.TrimSpace(text), "git version "), err
}

// CheckVersion returns an error if the git on PATH is older than the oldest supported version (2.39), or cannot be run.
func CheckVersion(ctx context.Context) error {
	major, minor, err := release(ctx)
	if err == nil && (major < 2 || major == 2 && minor < 39) {
		return fmt.Errorf("git 2.39 or newer is needed, this is %d.%d", major, minor)
	}
	return err
}

// Since reports whether the git on PATH has the version 2.minor or a newer one.
func Since(ctx context.Context, minor int) bool {
	major, its, err := release(ctx)
	return err == nil && (major > 2 || major == 2 && its >= minor)
}

// release returns the first two numbers of the version of the git on PATH.
func release(ctx context.Context) (major, minor int, err error) {
	text, err := Version(ctx)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil {
		return 0, 0, fmt.Errorf("git version %q: %w", text, err)
	}
	return major, minor, nil
}

// DryRun makes every later Change on r fail with [ErrDryRun].
func (r *Repository) DryRun() { r.Dry = true }

// Name returns the usual name of the repository: the name of its main work tree's folder, or of its own folder if it has no main work tree.
func (r *Repository) Name() string {
	if filepath.Base(r.CommonDir) == ".git" {
		return filepath.Base(filepath.Dir(r.CommonDir))
	}
	return strings.TrimSuffix(filepath.Base(r.CommonDir), ".git")
}

// WorktreeID returns the name of this worktree within its repository, empty for the main worktree. The name stays when the worktree is moved.
func (r *Repository) WorktreeID() string {
	if rel, err := filepath.Rel(filepath.Join(r.CommonDir, "worktrees"), r.GitDir); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return ""
}

// Head is the branch and commit that a worktree has checked out.
type Head struct {
	Branch string // full ref name; empty when detached
	Commit OID    // empty when the branch is unborn
	Tree   OID
}

// Branch returns the full name of the checked-out branch, empty when HEAD is detached.
func (r *Repository) Branch(ctx context.Context) (string, error) {
	if ref, ok := headFile(r.GitDir); ok {
		return ref, nil
	}
	branch, err := r.Output(ctx, "symbolic-ref", "-q", "HEAD")
	if Status(err) == 1 {
		return "", nil
	}
	return branch, err
}

// headFile returns the branch that the file HEAD of a git directory names. Where refs are files it is enough to read HEAD. With other ref
// storage, this file names a branch that cannot exist.
func headFile(gitDir string) (branch string, ok bool) {
	content, err := os.ReadFile(filepath.Join(gitDir, "HEAD"))
	ref, ok := strings.CutPrefix(string(content), "ref: ")
	return strings.TrimSpace(ref), err == nil && ok && !strings.HasSuffix(ref, "/.invalid\n")
}

// SymbolicRef returns the target of a branch that is a symbolic ref, empty if the branch is not one (git-symbolic-ref(1)).
func (r *Repository) SymbolicRef(ctx context.Context, branch string) (string, error) {
	if _, files := headFile(r.GitDir); files { // a packed ref is never symbolic
		content, err := os.ReadFile(filepath.Join(r.CommonDir, branch))
		if target, symbolic := strings.CutPrefix(string(content), "ref: "); symbolic {
			return strings.TrimSpace(target), nil
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
	}
	target, err := r.Output(ctx, "symbolic-ref", "-q", branch)
	if Status(err) == 1 {
		return "", nil
	}
	return target, err
}

// Head returns the branch and commit that are checked out.
func (r *Repository) Head(ctx context.Context) (Head, error) {
	var h Head
	var err error
	if h.Branch, err = r.Branch(ctx); err != nil {
		return h, err
	}
	var out bytes.Buffer
	// The content of the commit names the tree, which may be missing in a partial clone.
	err = r.Look(ctx, Call{Args: []string{"cat-file", "--batch=%(objectname)"}, Stdin: strings.NewReader("HEAD^{commit}\n"), Stdout: &out})
	if err != nil {
		return h, err
	}
	commit, content, _ := strings.Cut(out.String(), "\n")
	if h.Commit, err = ParseOID(commit); err == nil {
		tree, _, _ := strings.Cut(strings.TrimPrefix(content, "tree "), "\n")
		h.Tree, err = ParseOID(tree)
		return h, err
	}
	// The branch is unborn if it does not exist. A branch that does not point to a commit is broken.
	h.Commit = ""
	if there, err := r.Ref(ctx, h.Branch); h.Branch == "" || err != nil || there != "" {
		return h, errors.Join(errors.New("HEAD names no commit"), err)
	}
	return h, nil
}

// Tracks reports whether the index has an entry at a path or below it.
func (r *Repository) Tracks(ctx context.Context, path string) (bool, error) {
	if r.indexLacks(path) {
		return false, nil
	}
	entries, err := r.Records(ctx, Call{Args: []string{"ls-files", "-z", "--", path}})
	return len(entries) > 0, err
}

// indexLimit bounds the size of an index that is read in process.
const indexLimit = 64 << 20

// indexLacks reports whether the bytes of the index show that it has no entry at a path or below it. This saves a git
// process, since nobody tracks a workspace. Versions 2 and 3 contain each path whole (gitformat-index(5)). A later
// version shortens paths, and a split index has more of them in another file.
func (r *Repository) indexLacks(path string) bool {
	if len(Glob(r.GitDir, "sharedindex.*")) > 0 || strings.HasSuffix(path, "/") {
		return false
	}
	file := filepath.Join(r.GitDir, "index")
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > indexLimit {
		return errors.Is(err, fs.ErrNotExist)
	}
	content, err := os.ReadFile(file)
	whole := bytes.HasPrefix(content, []byte("DIRC\x00\x00\x00\x02")) || bytes.HasPrefix(content, []byte("DIRC\x00\x00\x00\x03"))
	return err == nil && whole && !bytes.Contains(content, []byte(path))
}

// Changes returns the number of the user's uncommitted changes, including untracked files. It does not check
// submodules, since git treats a workspace that was added to the index as a submodule.
func (r *Repository) Changes(ctx context.Context) (int, error) {
	records, err := r.Records(ctx, Call{Args: []string{"status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"}})
	return len(records), err
}

// Operation returns the name of the operation that the user has not finished in this worktree, empty if there is
// none. The files are those of git's own wt-status.
func (r *Repository) Operation() string {
	for _, op := range []struct{ file, name string }{
		{"rebase-merge", "rebase"},
		{"rebase-apply/applying", "am"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"sequencer", "cherry-pick"},
		{"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(r.GitDir, op.file)); err == nil {
			return op.name
		}
	}
	return ""
}

// Heads returns the files that store what each worktree has checked out.
func (r *Repository) Heads() []string {
	heads := []string{filepath.Join(r.CommonDir, "HEAD")}
	entries, _ := os.ReadDir(filepath.Join(r.CommonDir, "worktrees")) // without that folder there is only one worktree
	for _, e := range entries {
		heads = append(heads, filepath.Join(r.CommonDir, "worktrees", e.Name(), "HEAD"))
	}
	return heads
}

// mayHave reports whether a worktree with a HEAD file may have a branch checked out.
func mayHave(head, branch string) bool {
	if name, plain := headFile(filepath.Dir(head)); plain {
		return name == branch
	}
	content, _ := os.ReadFile(head)
	_, err := ParseOID(strings.TrimSpace(string(content)))
	return err != nil // only git reads it
}

// Elsewhere lists the other worktrees that have a branch checked out. Git refuses that unless it is forced.
// Worktrees whose folder no longer exists do not count.
func (r *Repository) Elsewhere(ctx context.Context, branch string) ([]string, error) {
	if !slices.ContainsFunc(r.Heads(), func(head string) bool { return head != filepath.Join(r.GitDir, "HEAD") && mayHave(head, branch) }) {
		return nil, nil
	}
	lines, err := r.Records(ctx, Call{Args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return nil, err
	}
	var found []string
	top, there := "", false
	for _, line := range append(lines, "") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "worktree":
			top, there = value, false
		case "branch":
			there = value == branch
		case "prunable":
			there = false
		case "":
			if there && !sameDir(top, r.Top) {
				found = append(found, top)
			}
			there = false
		}
	}
	return found, nil
}

// HooksDir returns the folder in which git looks for hooks (core.hooksPath in git-config(1)).
func (r *Repository) HooksDir(ctx context.Context) (string, error) {
	own := *r.Git
	own.config = nil // without our core.hooksPath
	dir, err := own.Output(ctx, "rev-parse", "--git-path", "hooks")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.Top, dir)
	}
	return dir, err
}
