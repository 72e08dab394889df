package ignore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// askTime limits the time in which git must read a .gitignore file, since some patterns take practically for
	// ever.
	askTime = 5 * time.Second
	// askMemory limits the memory that git may allocate for that.
	askMemory = 256 << 20
)

// ErrUnanswered reports that git did not read a file within its limits.
var ErrUnanswered = errors.New("git does not read it within its limits of time and memory")

// ShowsFolder reports whether git would read a folder at the top of a work tree that the repository's exclude file
// names, if the .gitignore there had a certain content. folded is core.ignoreCase. It runs git in an empty
// repository below a host-owned folder, with only that file. line is the number of the line that decides.
func ShowsFolder(ctx context.Context, below, folder string, ignore []byte, folded bool) (line int, shown bool, err error) {
	dir, err := os.MkdirTemp(below, "ask-")
	if err != nil {
		return 0, false, err
	}
	defer os.RemoveAll(dir)
	g, err := emptyRepository(dir)
	if err != nil {
		return 0, false, err
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, "info", "exclude"), []byte(Exactly(folder)+"/\n"), 0o600),
		os.WriteFile(filepath.Join(g.Dir, ".gitignore"), ignore, 0o600), os.Mkdir(filepath.Join(g.Dir, folder), 0o700))
	if err != nil {
		return 0, false, err
	}
	var out bytes.Buffer
	err = g.WithMemory(askMemory).Configured(fmt.Sprintf("core.ignoreCase=%t", folded)).Look(ctx, gitops.Call{For: askTime, Limit: 1 << 20,
		Args: []string{"check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin"}, Stdin: strings.NewReader(folder + "\x00"), Stdout: &out})
	answer := strings.Split(out.String(), "\x00") // source, line, pattern, path
	switch {
	case ctx.Err() != nil:
		return 0, false, ctx.Err()
	case err != nil && gitops.Status(err) != 1 || len(answer) != 5:
		return 0, false, fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	line, _ = strconv.Atoi(answer[1])
	return line, answer[0] == "" || strings.HasPrefix(answer[2], "!"), nil
}

// emptyRepository creates a repository without objects in a folder, and returns a Git for its work tree.
func emptyRepository(dir string) (*gitops.Git, error) {
	tree := filepath.Join(dir, "tree")
	var err error
	for _, name := range []string{"objects", "refs", "info", "tree"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/main\n", "empty-config": ""} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	// check-ignore does not support literal paths.
	g := gitops.NewClosed(dir, filepath.Join(dir, "empty-config")).With("GIT_WORK_TREE="+tree, "GIT_LITERAL_PATHSPECS=0")
	g.Dir = tree
	return g, err
}
