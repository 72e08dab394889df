package gitops

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// untrackedTime bounds how long git may match patterns against the files of a work tree.
const untrackedTime = 2 * time.Minute

// UserFile is a file of the user's that is in no commit.
type UserFile struct {
	Path       string
	Executable bool
	Content    []byte
}

// Untracked lists the files of the work tree that git does not track and that match the patterns in a file.
// Repositories within are not looked into. The patterns may be an agent's, so git has only untrackedTime to match them.
func (r *Repository) Untracked(ctx context.Context, patterns string) ([]string, error) {
	return r.Records(ctx, Call{Args: []string{"ls-files", "--others", "--ignored", "-z", "--exclude-from=" + patterns}, For: untrackedTime})
}

// place unpacks files and makes git not see them; it is run by sh inside a prison.
const place = `set -e
cd "$1"
mkdir -p .git/info
tar -x -f -`

// placeBeside is place for a workspace with files of its own, which stay as they are.
const placeBeside = `cd "$1" && mkdir -p .git/info && rm -f .git/info/exclude || exit 1
tar -x -k -f - || exit 3`

// Place puts files into a fresh workspace, where git does not see them: they are in nobody's commit unless somebody
// insists.
func (w Workspace) Place(ctx context.Context, files []UserFile) error {
	code, said, err := w.unpack(ctx, place, files)
	if err == nil && code != 0 {
		err = errors.New(said)
	}
	if err != nil {
		return fmt.Errorf("put files into the workspace: %w", err)
	}
	return nil
}

// PlaceBeside does so in a workspace that has files of its own, and reports whether there was room for all: what is at a
// path already stays.
func (w Workspace) PlaceBeside(ctx context.Context, files []UserFile) (all bool, err error) {
	code, said, err := w.unpack(ctx, placeBeside, files)
	if err == nil && code != 0 && code != 3 {
		err = errors.New(said)
	}
	if err != nil {
		return false, fmt.Errorf("put files into the workspace: %w", err)
	}
	return code == 0, nil
}

// unpack hands files to a script, and returns its exit status and what it said.
func (w Workspace) unpack(ctx context.Context, script string, files []UserFile) (code int, said string, err error) {
	if len(files) == 0 {
		return 0, "", nil
	}
	var exclude strings.Builder
	for _, f := range files {
		exclude.WriteString(PatternOf(f.Path) + "\n")
	}
	files = append(files, UserFile{Path: ".git/info/exclude", Content: []byte(exclude.String())})
	var stderr Stderr
	r, pw := io.Pipe()
	defer r.Close()
	go func() { pw.CloseWithError(tarUserFiles(pw, files)) }()
	code, err = w.Run(ctx, Process{Argv: []string{"sh", "-c", script, "sh", w.Dir}, Env: w.innerEnv(), Stdin: r, Stdout: io.Discard, Stderr: &stderr})
	return code, stderr.String(), err
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
