package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrDetached says that HEAD names no branch.
	ErrDetached = errors.New("HEAD is detached")
	// ErrUnborn says that the checked-out branch has no commit yet.
	ErrUnborn = errors.New("the branch has no commit yet")
	// ErrOldGit says that git is older than the oldest one supported (2.39).
	ErrOldGit = errors.New("git 2.39 or newer is needed")
)

// Repository is the user's outer repository, seen from one of its worktrees.
type Repository struct {
	Top       string // top of the work tree
	GitDir    string // this worktree's git directory
	CommonDir string // the repository's own git directory
	Format    string // object format: sha1 or sha256
	*Git
	Place []string // variables without which git would not find it from Top

	identity string // of CommonDir when it was opened
	top      string // of Top
}

// Version returns the version of the git on PATH.
func Version(ctx context.Context) (string, error) {
	text, err := newUserGit("/").Output(ctx, "version")
	return strings.TrimPrefix(strings.TrimSpace(text), "git version "), err
}

// CheckVersion returns [ErrOldGit] if the git on PATH is too old, and the reason if there is none.
func CheckVersion(ctx context.Context) error {
	text, err := Version(ctx)
	if err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("git version %q: %w", text, err)
	}
	if major < 2 || major == 2 && minor < 39 {
		return fmt.Errorf("%w, this is %d.%d", ErrOldGit, major, minor)
	}
	return nil
}

// DryRun makes every later Change on r fail with [ErrDryRun].
func (r *Repository) DryRun() { r.Dry = true }

// Name is what people call the repository: its main work tree's folder, or its own without one.
func (r *Repository) Name() string {
	if filepath.Base(r.CommonDir) == ".git" {
		return filepath.Base(filepath.Dir(r.CommonDir))
	}
	return strings.TrimSuffix(filepath.Base(r.CommonDir), ".git")
}

// WorktreeID names this worktree within its repository: empty for the main one. It survives moves.
func (r *Repository) WorktreeID() string {
	if rel, err := filepath.Rel(filepath.Join(r.CommonDir, "worktrees"), r.GitDir); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return ""
}

// Head is where a worktree stands.
type Head struct {
	Branch string // full ref name; empty when detached
	Commit OID    // empty when the branch is unborn
	Tree   OID
}

// Branch is the full name of the branch that is checked out, empty when HEAD is detached.
func (r *Repository) Branch(ctx context.Context) (string, error) {
	// Where refs are files a look into one is enough; elsewhere the file names a branch that cannot be.
	content, err := os.ReadFile(filepath.Join(r.GitDir, "HEAD"))
	if ref, ok := strings.CutPrefix(string(content), "ref: "); err == nil && ok && !strings.HasSuffix(ref, "/.invalid\n") {
		return strings.TrimSpace(ref), nil
	}
	branch, err := r.Output(ctx, "symbolic-ref", "-q", "HEAD")
	if Status(err) == 1 {
		return "", nil
	}
	return branch, err
}

// SymbolicRef tells which ref a branch is another name of, empty if it is none (git-symbolic-ref(1)).
func (r *Repository) SymbolicRef(ctx context.Context, branch string) (string, error) {
	target, err := r.Output(ctx, "symbolic-ref", "-q", branch)
	if Status(err) == 1 {
		return "", nil
	}
	return target, err
}

// Head tells what is checked out.
func (r *Repository) Head(ctx context.Context) (Head, error) {
	var h Head
	var err error
	if h.Branch, err = r.Branch(ctx); err != nil {
		return h, err
	}
	var out bytes.Buffer
	err = r.Look(ctx, Call{Args: []string{"cat-file", "--batch-check=%(objectname)"}, Stdin: strings.NewReader("HEAD^{commit}\nHEAD^{tree}\n"), Stdout: &out})
	if err != nil {
		return h, err
	}
	commit, tree, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), "\n")
	if h.Commit, err = ParseOID(commit); err == nil {
		h.Tree, err = ParseOID(tree)
		return h, err
	}
	// Unborn is a branch that is not there; one that names something else than a commit is broken.
	h.Commit = ""
	if there, err := r.Ref(ctx, h.Branch); h.Branch == "" || err != nil || there != "" {
		return h, errors.Join(errors.New("HEAD names no commit"), err)
	}
	return h, nil
}

// Tracks reports whether the index has an entry for a path or below it.
func (r *Repository) Tracks(ctx context.Context, path string) (bool, error) {
	entries, err := r.Records(ctx, Call{Args: []string{"ls-files", "-z", "--", path}})
	return len(entries) > 0, err
}

// Changes counts the user's uncommitted changes, untracked files among them. It does not look into submodules: a
// workspace that was added to the index is one in the eyes of git.
func (r *Repository) Changes(ctx context.Context) (int, error) {
	records, err := r.Records(ctx, Call{Args: []string{"status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"}})
	return len(records), err
}

// Config is a repository's configuration as git resolves it at one moment.
type Config map[string]string

// Config reads the configuration; of keys with several values the last one counts, as for git. What this
// package imposes on its own commands is not in it.
func (r *Repository) Config(ctx context.Context) (Config, error) {
	own := *r.Git
	own.config = nil
	records, err := own.Records(ctx, Call{Args: []string{"config", "--list", "-z", "--includes"}})
	if err != nil {
		return nil, err
	}
	c := make(Config, len(records))
	for _, rec := range records {
		c.add(rec)
	}
	return c, nil
}

// CurrentConfig reads the configuration that git would obey in dir in this environment, with or without a repository
// around it.
func CurrentConfig(ctx context.Context, dir string) (Config, error) {
	g := newUserGit(dir)
	if gitDir := os.Getenv(gitDirVariable); gitDir != "" {
		g = g.With(gitDirVariable + "=" + gitDir)
	}
	return (&Repository{Git: g}).Config(ctx)
}

// Values reads all values of a setting that may be given more than once. As for git's own, an empty one forgets
// those before it.
func (r *Repository) Values(ctx context.Context, key string) ([]string, error) {
	own := *r.Git
	own.config = nil
	records, err := own.Records(ctx, Call{Args: []string{"config", "--list", "-z", "--includes"}})
	if err != nil {
		return nil, err
	}
	var values []string
	for _, rec := range records {
		name, value, _ := strings.Cut(rec, "\n")
		switch {
		case canonical(name) != canonical(key):
		case value == "":
			values = nil
		default:
			values = append(values, value)
		}
	}
	return values, nil
}

// CommandConfig reads what was given for this one command, with "git -c".
func (r *Repository) CommandConfig(ctx context.Context) (Config, error) {
	c := Config{}
	if os.Getenv(configParameters) == "" {
		return c, nil
	}
	own := r.With("GIT_CONFIG_COUNT=0") // what the environment adds for every command has the same scope
	own.config = nil
	records, err := own.Records(ctx, Call{Args: []string{"config", "--list", "-z", "--show-scope"}})
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(records); i += 2 {
		if records[i] == "command" {
			c.add(records[i+1])
		}
	}
	maps.DeleteFunc(c, func(key, _ string) bool { return strings.Contains(key, earlier) })
	return c, nil
}

// add adds a key and its value as "git config -z" lists them.
func (c Config) add(record string) {
	key, value, valued := strings.Cut(record, "\n")
	if !valued {
		value = "true" // a key without "=" is a true boolean, git-config(1)
	}
	if before, again := c[key]; again && before != value {
		c[key+earlier+before] = before
	}
	c[key] = value
}

// earlier parts a key from a value that it had before its last one. No key of git's has it in it.
const earlier = "\x00"

// All are the keys with each value that they were given: of some, git obeys all.
func (c Config) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, value := range c {
			key, _, _ := strings.Cut(key, earlier)
			if !yield(key, value) {
				return
			}
		}
	}
}

// Keys are the keys, in alphabetical order.
func (c Config) Keys() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(key string) bool { return strings.Contains(key, earlier) })
}

// With returns the configuration with other values for some keys, which are written as git lists them.
func (c Config) With(others map[string]string) Config {
	all := maps.Clone(c)
	maps.Copy(all, others)
	return all
}

// canonical is a key as git lists it: section and name in lower case, what is between them as it is.
func canonical(key string) string {
	first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
	if first < 0 {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
}

// Bool reads a boolean the way git does.
func (c Config) Bool(key string, otherwise bool) (bool, error) {
	value, ok := c[canonical(key)]
	if !ok {
		return otherwise, nil
	}
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off", "":
		return false, nil
	}
	if n, err := strconv.Atoi(value); err == nil {
		return n != 0, nil
	}
	return false, fmt.Errorf("%s: %q is not a boolean", key, value)
}

// Has reports whether a key is set.
func (c Config) Has(key string) bool { _, ok := c[canonical(key)]; return ok }

// String reads a text.
func (c Config) String(key, otherwise string) string {
	if value, ok := c[canonical(key)]; ok {
		return value
	}
	return otherwise
}

// Operation names what the user is in the middle of in this worktree, empty for nothing.
// The files are those of git's own wt-status.
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

// Heads lists the files that say what each worktree has checked out.
func (r *Repository) Heads() []string {
	heads := []string{filepath.Join(r.CommonDir, "HEAD")}
	entries, _ := os.ReadDir(filepath.Join(r.CommonDir, "worktrees")) // not there: there is one worktree
	for _, e := range entries {
		heads = append(heads, filepath.Join(r.CommonDir, "worktrees", e.Name(), "HEAD"))
	}
	return heads
}

// Elsewhere lists the other worktrees that have a branch checked out; git lets nobody do so unasked. Those
// whose folder is gone do not count.
func (r *Repository) Elsewhere(ctx context.Context, branch string) ([]string, error) {
	if len(r.Heads()) == 1 {
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
