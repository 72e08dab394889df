package ignore

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// Rules reads which paths the user's ignore rules cover according to git. One git process serves all requests. The
// rules are those of the current work tree, of info/exclude and of core.excludesFile. Since the paths may be an
// agent's, git checks them in an empty folder that contains only the user's ignore files. Several goroutines may
// use a Rules.
type Rules struct {
	r    *gitops.Repository
	dir  string // host-owned
	one  sync.Mutex
	in   *io.PipeWriter
	out  *bufio.Reader // nil: git has not been started
	done chan error    // receives the error of git's end
	tree string
	lent map[string]bool   // folders whose ignore files have been copied
	seen map[string]string // by folder: a hash of its .gitignore as it was read last, or missing
}

// RulesOf returns a Rules that may write below a host-owned folder, which no one else uses. It starts git at the
// first request, and must be closed.
func RulesOf(r *gitops.Repository, dir string) *Rules { return &Rules{r: r, dir: dir} }

// Files returns the paths of the user's ignore files: info/exclude, core.excludesFile, the one at the top of the work
// tree, and those one folder below the top. The first three may not exist. Files in deeper folders are not included,
// since finding them needs a walk of the tree: see [Rules.StateAbove].
func (i *Rules) Files(config gitops.Config) []string {
	files := []string{filepath.Join(i.r.Top, ".gitignore"), filepath.Join(i.r.CommonDir, "info", "exclude")}
	home, _ := os.UserHomeDir()
	switch own := hostenv.Pathname(config.String("core.excludesFile", "")); {
	case own == "":
		files = append(files, filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "git", "ignore"))
	case filepath.IsAbs(own):
		files = append(files, own)
	default:
		files = append(files, filepath.Join(i.r.Top, own))
	}
	return append(files, i.below()...)
}

// below returns the ignore files one folder below the top. It lists the top alone, since a folder can have many files.
func (i *Rules) below() []string {
	entries, _ := os.ReadDir(i.r.Top)
	var files []string
	for _, e := range entries {
		name := filepath.Join(i.r.Top, e.Name(), ".gitignore")
		if e.Type().IsRegular() {
			continue
		}
		if _, err := os.Lstat(name); err == nil {
			files = append(files, name)
		}
	}
	return files
}

// State returns a hash of the user's ignore rules in these [Rules.Files]. The hash is equal for equal rules.
func (i *Rules) State(files []string) string {
	h := sha256.New()
	for _, name := range files {
		info, err := os.Stat(name) // a pipe has no end
		if err != nil || !info.Mode().IsRegular() || info.Size() > ignoreLimit {
			if err == nil {
				fmt.Fprintf(h, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
			continue
		}
		content, _ := os.ReadFile(name)
		fmt.Fprintf(h, "%q %q\n", name, content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// missing is the state of a folder that the work tree does not have.
const missing = "missing"

// StateAbove returns a hash of the .gitignore files in the folders above some paths, as they were read last. The hash
// is equal for equal rules at any depth. A path counts as a folder above itself, because it may be a symbolic link in
// the agent's tree. The search ends at the first folder that the work tree does not have, and reads no file twice, so
// that the user's folders bound its cost.
func (i *Rules) StateAbove(paths []string) string {
	i.one.Lock()
	defer i.one.Unlock()
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", i.state("."))
	for _, p := range paths {
		for n, char := range p + "/" {
			if char != '/' {
				continue
			}
			state := i.state(p[:n])
			fmt.Fprintf(h, "%q %q\n", p[:n], state)
			if state == missing {
				break
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// state returns the state of a folder whose parents exist.
func (i *Rules) state(dir string) string {
	if state, known := i.seen[dir]; known {
		return state
	}
	if i.seen == nil {
		i.seen = map[string]string{}
	}
	state := missing
	if info, err := os.Lstat(filepath.Join(i.r.Top, dir)); err == nil && info.IsDir() {
		state = fileState(filepath.Join(i.r.Top, dir, ".gitignore"))
	}
	i.seen[dir] = state
	return state
}

// fileState returns a text that is equal for equal contents of an ignore file.
func fileState(name string) string {
	info, err := os.Lstat(name) // git does not follow a link
	switch {
	case err != nil || !info.Mode().IsRegular(): // a pipe has no end
		return ""
	case info.Size() > ignoreLimit:
		return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	content, _ := os.ReadFile(name)
	return contentState(content)
}

func contentState(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// Tracked returns those paths that are in the user's index. It may return other paths of the index, too.
func (i *Rules) Tracked(ctx context.Context, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"ls-files", "-z"}
	if len(paths) <= gitops.PathspecLimit {
		args = append(append(args, "--"), paths...)
	}
	return i.r.Records(ctx, gitops.Call{Args: args})
}

// ignoreLimit limits the size of a file of ignore rules that is read for its hash.
const ignoreLimit = 1 << 20

// Ignored returns the paths that the user's ignore rules cover and that are not in the user's index, each with the
// rule that covers it.
func (i *Rules) Ignored(ctx context.Context, paths []string) (map[string]string, error) {
	i.one.Lock()
	defer i.one.Unlock()
	if len(paths) == 0 {
		return nil, nil
	}
	found, err := i.ask(ctx, paths)
	if err == nil && len(found) > 0 {
		err = i.untracked(ctx, found)
	}
	if err != nil {
		return nil, fmt.Errorf("git check-ignore: %w", errors.Join(err, i.end())) // another commit gets another git
	}
	return found, nil
}

func (i *Rules) ask(ctx context.Context, paths []string) (map[string]string, error) {
	if i.out == nil {
		if err := i.start(ctx); err != nil {
			return nil, err
		}
	}
	asked := make([]string, len(paths))
	for n, p := range paths {
		asked[n] = "./" + shallow(p)
		if err := i.lend(path.Dir(p)); err != nil {
			return nil, err
		}
	}
	failed := make(chan error, 1)
	go func() {
		_, err := io.WriteString(i.in, strings.Join(asked, "\x00")+"\x00")
		failed <- err
	}()
	found := map[string]string{}
	for _, p := range paths {
		var fields [4]string // source, line, pattern, path: git-check-ignore(1)
		for n := range fields {
			field, err := i.out.ReadString(0)
			if err != nil {
				return nil, err
			}
			fields[n] = strings.TrimSuffix(field, "\x00")
		}
		if fields[2] != "" && fields[2][0] != '!' {
			found[p] = fmt.Sprintf("%s:%s: %s", filepath.Base(fields[0]), fields[1], fields[2])
		}
	}
	return found, <-failed
}

// depthLimit is the largest number of folders in a path that is passed to git check-ignore: git 2.39 crashes at 24.
const depthLimit = 22

// shallow returns a path without the folders that are deeper than the limit. Git's result for it is the same with
// respect to the folders above, and to the name.
func shallow(name string) string {
	parts := strings.Split(name, "/")
	if len(parts) <= depthLimit+1 {
		return name
	}
	return strings.Join(parts[:depthLimit], "/") + "/" + parts[len(parts)-1]
}

func (i *Rules) start(ctx context.Context) error {
	config, err := i.r.Config(ctx)
	if err != nil {
		return err
	}
	i.tree = filepath.Join(i.dir, "ignores") // remove what a killed process left there
	if err := errors.Join(os.RemoveAll(i.tree), os.Mkdir(i.tree, 0o700)); err != nil {
		return err
	}
	i.lent, i.seen = map[string]bool{}, map[string]string{}
	g := i.r.With("GIT_DIR="+i.r.GitDir, "GIT_WORK_TREE="+i.tree, "GIT_INDEX_FILE="+filepath.Join(i.tree, ".git", "none"), "GIT_FLUSH=1",
		"GIT_LITERAL_PATHSPECS=0") // git check-ignore knows none; what begins with "./" has no magic
	if own := config.String("core.excludesFile", ""); own != "" {
		g = g.Configured("core.excludesFile=" + hostenv.AtTop(own, i.r.Top))
	}
	g.Dir = i.tree
	stdin, in := io.Pipe()
	out, stdout := io.Pipe()
	i.in, i.out, i.done = in, bufio.NewReader(out), make(chan error, 1)
	// Git serves later commits as well, which have other contexts. It ends when its input ends.
	ctx = context.WithoutCancel(ctx)
	go func() {
		err := g.Look(ctx, gitops.Call{Args: []string{"check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin"},
			Stdin: stdin, Stdout: stdout, Limit: math.MaxInt64})
		stdin.CloseWithError(err)
		stdout.CloseWithError(err)
		i.done <- err
	}()
	return nil
}

// lend copies the ignore files of a folder and of the folders above it.
func (i *Rules) lend(dir string) error {
	for ; !i.lent[dir]; dir = path.Dir(dir) {
		i.lent[dir] = true
		name := path.Join(dir, ".gitignore")
		if info, err := i.r.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		to := filepath.Join(i.tree, name)
		content, err := os.ReadFile(filepath.Join(i.r.Top, name))
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700)); err != nil {
			return err
		}
		if len(content) <= ignoreLimit { // the content that git reads decides, even if the file changes meanwhile
			i.seen[dir] = contentState(content)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil { // not synced: it is removed with the reader
			return err
		}
	}
	return nil
}

// untracked removes paths that are in the user's index, since a tracked file is not ignored.
func (i *Rules) untracked(ctx context.Context, found map[string]string) error {
	tracked, err := i.Tracked(ctx, slices.Collect(maps.Keys(found)))
	for _, p := range tracked {
		delete(found, p)
	}
	return err
}

// end ends git, and returns its error.
func (i *Rules) end() error {
	if i.out == nil {
		return nil
	}
	_ = i.in.Close()
	_, _ = io.Copy(io.Discard, i.out) // git ends once all its output is read
	i.out = nil
	return <-i.done
}

// Close ends git and removes what was copied.
func (i *Rules) Close() error {
	i.one.Lock()
	defer i.one.Unlock()
	_ = i.end() // status 1: nothing was ignored
	if i.tree == "" {
		return nil
	}
	return os.RemoveAll(i.tree)
}

// Named returns the paths that the user's ignore files match, whether or not they are tracked.
func Named(ctx context.Context, r *gitops.Repository, paths []string) (map[string]bool, error) {
	paths = withoutLinked(r.Top, paths)
	if len(paths) == 0 {
		return nil, nil
	}
	// check-ignore does not support literal paths. After "./" no character is magic.
	const here = "./"
	named, err := r.With("GIT_LITERAL_PATHSPECS=0").Records(ctx, gitops.Call{Args: []string{"check-ignore", "--no-index", "-z", "--stdin"},
		Stdin: strings.NewReader(here + strings.Join(paths, "\x00"+here) + "\x00")})
	if s := gitops.Status(err); s == 1 || s == 128 {
		return nil, nil // none of them; or a folder has become a link since
	}
	ignored := make(map[string]bool, len(named))
	for _, path := range named {
		ignored[strings.TrimPrefix(path, here)] = true
	}
	return ignored, err
}

// withoutLinked returns the paths that are not below a symbolic link. For a single path below one, git check-ignore gives no answer
// for any path: the work tree has a link where the tree has a folder.
func withoutLinked(top string, paths []string) []string {
	links := map[string]bool{"": false}
	var linked func(folder string) bool
	linked = func(folder string) bool {
		is, known := links[folder]
		if !known {
			parent, _ := path.Split(folder)
			is = linked(strings.TrimSuffix(parent, "/"))
			if !is {
				info, err := os.Lstat(filepath.Join(top, folder))
				is = err == nil && info.Mode()&fs.ModeSymlink != 0
			}
			links[folder] = is
		}
		return is
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		folder, _ := path.Split(p)
		return linked(strings.TrimSuffix(folder, "/"))
	})
}
