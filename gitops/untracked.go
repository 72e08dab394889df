package gitops

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// UserFile is a file of the user's that is in no commit.
type UserFile struct {
	Path       string
	Executable bool
	Content    []byte
}

// Untracked lists the files of the work tree that git does not track and that match the patterns in a file.
// Repositories within are not looked into.
func (r *Repository) Untracked(ctx context.Context, patterns string) ([]string, error) {
	return r.records(ctx, Call{Args: []string{"ls-files", "--others", "--ignored", "-z", "--exclude-from=" + patterns}})
}

// place unpacks files and makes git not see them; it is run by sh inside a prison.
const place = `set -e
cd "$1"
mkdir -p .git/info
tar -x -f -`

// Place puts files into a fresh workspace, where git does not see them: they are in nobody's commit unless somebody
// insists.
func (w Workspace) Place(ctx context.Context, files []UserFile) error {
	if len(files) == 0 {
		return nil
	}
	var exclude strings.Builder
	for _, f := range files {
		exclude.WriteString(PatternOf(f.Path) + "\n")
	}
	files = append(files, UserFile{Path: ".git/info/exclude", Content: []byte(exclude.String())})
	var stderr headTail
	r, pw := io.Pipe()
	defer r.Close()
	go func() { pw.CloseWithError(tarUserFiles(pw, files)) }()
	code, err := w.Run(ctx, Process{Argv: []string{"sh", "-c", place, "sh", w.Dir}, Env: w.innerEnv(), Stdin: r, Stdout: io.Discard, Stderr: &stderr})
	if err == nil && code != 0 {
		err = errors.New(stderr.String())
	}
	if err != nil {
		return fmt.Errorf("put files into the workspace: %w", err)
	}
	return nil
}

func tarUserFiles(w io.Writer, files []UserFile) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		mode := int64(0o644)
		if f.Executable {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{Name: f.Path, Mode: mode, Size: int64(len(f.Content))}); err != nil {
			return err
		}
		if _, err := t.Write(f.Content); err != nil {
			return err
		}
	}
	return t.Close()
}
