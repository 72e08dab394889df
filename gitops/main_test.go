package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
)

// TestMain gives git a home and a configuration of the tests.
func TestMain(m *testing.M) {
	if os.Getenv("TMPDIR") == "" && roomy(memory) {
		_ = os.Setenv("TMPDIR", memory)
	}
	home, err := os.MkdirTemp("", "gitops-home-")
	if err != nil {
		panic(err)
	}
	config := filepath.Join(home, "gitconfig")
	// Housekeeping in the background would race the removal of a test's folder.
	if err := os.WriteFile(config, []byte("[gc]\n\tauto = 0\n"), 0o600); err != nil {
		panic(err)
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GIT_") {
			_ = os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
		"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
	} {
		_ = os.Setenv(name, value)
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// memory is where Linux keeps files in memory: the tests make some ten thousand.
const memory = "/dev/shm"

// roomy reports whether a folder has room for the tests and lets programs be run, as hooks and filters are.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < 1<<30 {
		return false
	}
	probe, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(probe)
	script := filepath.Join(probe, "true")
	return os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700) == nil && exec.Command(script).Run() == nil
}

// world is one repository of a test.
type world struct {
	t testing.TB
	*Repository
	dir string // of the landing's state
}

// newWorld makes a repository with a branch main and no commit.
func newWorld(t testing.TB, initArgs ...string) *world {
	t.Helper()
	top := filepath.Join(t.TempDir(), "outer")
	command(t, "", nil, append([]string{"init", "-q", "-b", "main", top}, initArgs...)...)
	return openWorld(t, top)
}

func openWorld(t testing.TB, top string) *world {
	t.Helper()
	r, err := Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, Repository: r, dir: filepath.Join(r.GitDir, "airlock-state")}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// command runs git plainly, as the user would, and returns what it says.
func command(t testing.TB, dir string, env []string, args ...string) string {
	t.Helper()
	out, err := tryCommand(dir, env, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func tryCommand(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	return command(w.t, w.Top, nil, args...)
}

// files maps a path to its content, or to one of the meanings below.
type files map[string]string

// Contents with a meaning: a link, an executable file, and nothing at all.
const (
	linkTo  = "link:"
	execute = "exec:"
	absent  = "absent:"
)

// write puts files into the working tree; whatever is in the way goes.
func (w *world) write(f files) {
	w.t.Helper()
	for _, name := range sortedNames(f) {
		if f[name] == absent {
			check(w.t, os.RemoveAll(filepath.Join(w.Top, name)))
		}
	}
	for _, name := range sortedNames(f) {
		content, full := f[name], filepath.Join(w.Top, name)
		if content == absent {
			continue
		}
		check(w.t, os.MkdirAll(filepath.Dir(full), 0o755))
		check(w.t, os.RemoveAll(full))
		switch {
		case strings.HasPrefix(content, linkTo):
			check(w.t, os.Symlink(strings.TrimPrefix(content, linkTo), full))
		case strings.HasPrefix(content, execute):
			check(w.t, os.WriteFile(full, []byte(strings.TrimPrefix(content, execute)), 0o755))
		default:
			check(w.t, os.WriteFile(full, []byte(content), 0o644))
		}
	}
}

func sortedNames(f files) []string {
	names := make([]string, 0, len(f))
	for n := range f {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// commit commits the whole working tree as it is after write.
func (w *world) commit(f files) OID {
	w.t.Helper()
	w.write(f)
	w.git("add", "-A", "-f", ".")
	w.git("commit", "-q", "--allow-empty", "-m", "commit")
	return OID(w.git("rev-parse", "HEAD"))
}

// built makes a commit on top of the tip without touching branch, index or working tree: what a promotion
// has ready to land. It is made in a scratch index from the blobs of f.
func (w *world) built(on OID, f files) OID {
	w.t.Helper()
	index := filepath.Join(w.t.TempDir(), "built-index")
	env := []string{"GIT_INDEX_FILE=" + index}
	command(w.t, w.Top, env, "read-tree", string(on))
	var info, names strings.Builder
	var modes, paths []string
	contents := w.t.TempDir()
	for n, name := range sortedNames(f) {
		content, mode := f[name], "100644"
		switch {
		case content == absent:
			fmt.Fprintf(&info, "0 %s\t%s\x00", on.Zero(), name)
			continue
		case strings.HasPrefix(content, linkTo):
			content, mode = strings.TrimPrefix(content, linkTo), "120000"
		case strings.HasPrefix(content, execute):
			content, mode = strings.TrimPrefix(content, execute), "100755"
		}
		at := filepath.Join(contents, fmt.Sprint(n))
		check(w.t, os.WriteFile(at, []byte(content), 0o600))
		names.WriteString(at + "\n")
		modes, paths = append(modes, mode), append(paths, name)
	}
	if len(paths) > 0 {
		blobs := input(w.t, w.Top, nil, names.String(), "hash-object", "-w", "--no-filters", "--stdin-paths")
		for n, id := range strings.Fields(blobs) {
			fmt.Fprintf(&info, "%s %s\t%s\x00", modes[n], id, paths[n])
		}
	}
	input(w.t, w.Top, env, info.String(), "update-index", "-z", "--index-info")
	tree := command(w.t, w.Top, env, "write-tree")
	return OID(w.git("commit-tree", tree, "-p", string(on), "-m", "built"))
}

// blob stores bytes as they are.
func (w *world) blob(content string) OID {
	w.t.Helper()
	return OID(input(w.t, w.Top, nil, content, "hash-object", "-w", "--no-filters", "--stdin"))
}

func input(t testing.TB, dir string, env []string, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), env...), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) ref(name string) OID {
	w.t.Helper()
	id, err := w.Ref(w.t.Context(), name)
	check(w.t, err)
	return id
}

// nothingLeft demands that no lock, no journal and no scratch is there.
func (w *world) nothingLeft() {
	w.t.Helper()
	for _, p := range w.leftOver() {
		w.t.Errorf("left over: %s", p)
	}
}

func (w *world) leftOver() (left []string) {
	w.t.Helper()
	check(w.t, filepath.WalkDir(w.CommonDir, func(p string, d fs.DirEntry, err error) error {
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
