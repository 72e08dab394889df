package gitopstest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// Repo is an outer repository of a test.
type Repo struct {
	T testing.TB
	*gitops.Repository
	State string // folder of the host state
}

// New makes a repository with a branch main and no commit.
func New(t testing.TB, initArgs ...string) *Repo {
	t.Helper()
	top := filepath.Join(t.TempDir(), "outer")
	Command(t, "", nil, append([]string{"init", "-q", "-b", "main", top}, initArgs...)...)
	return Open(t, top)
}

// Open opens a repository that a test has made.
func Open(t testing.TB, top string) *Repo {
	t.Helper()
	opened, err := gitops.Open(t.Context(), top)
	Check(t, err)
	r := &Repo{T: t, Repository: opened, State: filepath.Join(opened.GitDir, "airlock-state")}
	Check(t, os.MkdirAll(r.State, 0o700))
	return r
}

// Run runs git in the work tree and returns what it prints.
func (r *Repo) Run(args ...string) string {
	r.T.Helper()
	return Command(r.T, r.Top, nil, args...)
}

// Files maps a path to its content, or to one of the meanings below.
type Files map[string]string

// Contents with a meaning: a link, an executable file, and nothing at all.
const (
	LinkTo  = "link:"
	Execute = "exec:"
	Absent  = "absent:"
)

// Write puts files into the working tree; whatever is in the way goes.
func (r *Repo) Write(f Files) {
	r.T.Helper()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if f[name] == Absent {
			Check(r.T, os.RemoveAll(filepath.Join(r.Top, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		content, full := f[name], filepath.Join(r.Top, name)
		if content == Absent {
			continue
		}
		Check(r.T, os.MkdirAll(filepath.Dir(full), 0o755))
		Check(r.T, os.RemoveAll(full))
		switch {
		case strings.HasPrefix(content, LinkTo):
			Check(r.T, os.Symlink(strings.TrimPrefix(content, LinkTo), full))
		case strings.HasPrefix(content, Execute):
			Check(r.T, os.WriteFile(full, []byte(strings.TrimPrefix(content, Execute)), 0o755))
		default:
			Check(r.T, os.WriteFile(full, []byte(content), 0o644))
		}
	}
}

// CommitAll commits the whole work tree as it is after Write.
func (r *Repo) CommitAll(f Files) gitops.OID {
	r.T.Helper()
	r.Write(f)
	r.Run("add", "-A", "-f", ".")
	r.Run("commit", "-q", "--allow-empty", "-m", "commit")
	return gitops.OID(r.Run("rev-parse", "HEAD"))
}

// Built makes a commit on top of the tip without touching branch, index or working tree: what a promotion
// has ready to land. It is made in a scratch index from the blobs of f.
func (r *Repo) Built(on gitops.OID, f Files) gitops.OID {
	r.T.Helper()
	index := filepath.Join(r.T.TempDir(), "built-index")
	env := []string{"GIT_INDEX_FILE=" + index}
	Command(r.T, r.Top, env, "read-tree", string(on))
	var info, names strings.Builder
	var modes, paths []string
	contents := r.T.TempDir()
	for n, name := range slices.Sorted(maps.Keys(f)) {
		content, mode := f[name], "100644"
		switch {
		case content == Absent:
			fmt.Fprintf(&info, "0 %s\t%s\x00", on.Zero(), name)
			continue
		case strings.HasPrefix(content, LinkTo):
			content, mode = strings.TrimPrefix(content, LinkTo), "120000"
		case strings.HasPrefix(content, Execute):
			content, mode = strings.TrimPrefix(content, Execute), "100755"
		}
		at := filepath.Join(contents, fmt.Sprint(n))
		Check(r.T, os.WriteFile(at, []byte(content), 0o600))
		names.WriteString(at + "\n")
		modes, paths = append(modes, mode), append(paths, name)
	}
	if len(paths) > 0 {
		blobs := Input(r.T, r.Top, nil, names.String(), "hash-object", "-w", "--no-filters", "--stdin-paths")
		for n, id := range strings.Fields(blobs) {
			fmt.Fprintf(&info, "%s %s\t%s\x00", modes[n], id, paths[n])
		}
	}
	Input(r.T, r.Top, env, info.String(), "update-index", "-z", "--index-info")
	tree := Command(r.T, r.Top, env, "write-tree")
	return gitops.OID(r.Run("commit-tree", tree, "-p", string(on), "-m", "built"))
}

// Blob stores bytes as they are.
func (r *Repo) Blob(content string) gitops.OID {
	r.T.Helper()
	return gitops.OID(Input(r.T, r.Top, nil, content, "hash-object", "-w", "--no-filters", "--stdin"))
}

// At reads a ref; empty if there is none.
func (r *Repo) At(name string) gitops.OID {
	r.T.Helper()
	id, err := r.Ref(r.T.Context(), name)
	Check(r.T, err)
	return id
}

// NothingLeft demands that no lock, no journal and no scratch is there.
func (r *Repo) NothingLeft() {
	r.T.Helper()
	for _, p := range r.LeftOver() {
		r.T.Errorf("left over: %s", p)
	}
}

// LeftOver lists locks, journals and scratch.
func (r *Repo) LeftOver() (left []string) {
	r.T.Helper()
	Check(r.T, filepath.WalkDir(r.CommonDir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		base := filepath.Base(p)
		if strings.HasSuffix(base, ".lock") || base == "journal" || strings.HasPrefix(base, "landing-") || strings.HasSuffix(base, ".new") {
			left = append(left, p)
		}
		return err
	}))
	return left
}
