package gitops

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// Ignores reads what the user's ignore rules say of paths, as git sees it: one git answers for as many as there are. The rules
// are those of the work tree as it is, of info/exclude and of core.excludesFile. The paths may be an agent's: git looks at them in
// an empty folder, in which nothing but the ignore files of the user lie. It is good for several goroutines.
type Ignores struct {
	r    *Repository
	dir  string // host-owned
	one  sync.Mutex
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	tree string
	lent map[string]bool // folders that were looked at
}

// Ignores returns a reader that may write below a host-owned folder, alone there. It starts nothing before it is asked, and has to be closed.
func (r *Repository) Ignores(dir string) *Ignores { return &Ignores{r: r, dir: dir} }

// State returns a hash of the ignore rules that are the user's at the top of the work tree, one folder below it, in info/exclude
// and in core.excludesFile: equal for equal rules. Those of deeper folders are not in it: finding them takes a walk of the tree.
func (i *Ignores) State(config Config) string {
	files := []string{filepath.Join(i.r.Top, ".gitignore"), filepath.Join(i.r.CommonDir, "info", "exclude")}
	below, _ := filepath.Glob(filepath.Join(GlobQuote(i.r.Top), "*", ".gitignore"))
	home, _ := os.UserHomeDir()
	switch own := config.String("core.excludesFile", ""); {
	case own == "":
		files = append(files, filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "git", "ignore"))
	case strings.HasPrefix(own, "~/"):
		files = append(files, filepath.Join(home, own[2:]))
	case filepath.IsAbs(own):
		files = append(files, own)
	default:
		files = append(files, filepath.Join(i.r.Top, own))
	}
	h := sha256.New()
	for _, name := range append(files, below...) {
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

// ignoreLimit bounds a file of ignore rules that is read for its hash.
const ignoreLimit = 1 << 20

// Ignored returns those of some paths that the user's ignore rules cover and that their index does not have, each with the
// rule that covers it.
func (i *Ignores) Ignored(ctx context.Context, paths []string) (map[string]string, error) {
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

func (i *Ignores) ask(ctx context.Context, paths []string) (map[string]string, error) {
	if i.cmd == nil {
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

// depthLimit is how many folders deep paths are of which git check-ignore is asked: git 2.39 crashes at 24.
const depthLimit = 22

// shallow is a path with the folders left out that are deeper than the limit. Whether a folder above them is ignored, and
// what is said of the name, git says of it as well.
func shallow(name string) string {
	parts := strings.Split(name, "/")
	if len(parts) <= depthLimit+1 {
		return name
	}
	return strings.Join(parts[:depthLimit], "/") + "/" + parts[len(parts)-1]
}

func (i *Ignores) start(ctx context.Context) error {
	config, err := i.r.Config(ctx)
	if err != nil {
		return err
	}
	i.tree = filepath.Join(i.dir, "ignores") // what a killed process left there is removed
	if err := errors.Join(os.RemoveAll(i.tree), os.Mkdir(i.tree, 0o700)); err != nil {
		return err
	}
	i.lent = map[string]bool{}
	g := i.r.With("GIT_DIR="+i.r.GitDir, "GIT_WORK_TREE="+i.tree, "GIT_INDEX_FILE="+filepath.Join(i.tree, ".git", "none"), "GIT_FLUSH=1",
		"GIT_LITERAL_PATHSPECS=0") // git check-ignore knows none; what begins with "./" has no magic
	if own := config.String("core.excludesFile", ""); own != "" && !filepath.IsAbs(own) && own[0] != '~' {
		g = g.Configured("core.excludesFile=" + filepath.Join(i.r.Top, own))
	}
	// It serves later commits as well, whose contexts are others: the end of its input ends it.
	i.cmd = g.command(context.WithoutCancel(ctx), Call{Args: []string{"check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin"}})
	i.cmd.Dir = i.tree
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if i.in, err = i.cmd.StdinPipe(); err != nil {
		return err
	}
	i.out = bufio.NewReader(out)
	return i.cmd.Start()
}

// lend copies the ignore files of a folder and those above it.
func (i *Ignores) lend(dir string) error {
	for ; !i.lent[dir]; dir = path.Dir(dir) {
		i.lent[dir] = true
		name := path.Join(dir, ".gitignore")
		if info, err := i.r.Lstat(name); err != nil || !info.Mode().IsRegular() {
			continue
		}
		to := filepath.Join(i.tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), CopyFile(filepath.Join(i.r.Top, name), to)); err != nil {
			return err
		}
	}
	return nil
}

// untracked leaves out what the user's index has: a file that they track is none that they ignore.
func (i *Ignores) untracked(ctx context.Context, found map[string]string) error {
	args := []string{"ls-files", "-z"}
	if len(found) <= PathspecLimit {
		args = append(args, "--")
		for p := range found {
			args = append(args, p)
		}
	}
	tracked, err := i.r.Records(ctx, Call{Args: args})
	for _, p := range tracked {
		delete(found, p)
	}
	return err
}

// end ends git, and returns what it said.
func (i *Ignores) end() error {
	if i.cmd == nil {
		return nil
	}
	_ = i.in.Close()
	err := i.cmd.Wait()
	i.cmd = nil
	return err
}

// Close ends git and removes what was copied.
func (i *Ignores) Close() error {
	i.one.Lock()
	defer i.one.Unlock()
	_ = i.end() // status 1: nothing was ignored
	if i.tree == "" {
		return nil
	}
	return os.RemoveAll(i.tree)
}

// Ignored tells which paths the user's ignore files name, whether or not they are tracked all the same.
func (r *Repository) Ignored(ctx context.Context, paths []string) (map[string]bool, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	// check-ignore knows no literal paths; behind "./" nothing is magic.
	const here = "./"
	named, err := r.With("GIT_LITERAL_PATHSPECS=0").Records(ctx, Call{Args: []string{"check-ignore", "--no-index", "-z", "--stdin"},
		Stdin: strings.NewReader(here + strings.Join(paths, "\x00"+here) + "\x00")})
	if s := Status(err); s == 1 || s == 128 {
		return nil, nil // none of them; or the work tree has a link where the tree has a folder, and git does not look there
	}
	ignored := make(map[string]bool, len(named))
	for _, path := range named {
		ignored[strings.TrimPrefix(path, here)] = true
	}
	return ignored, err
}
