package inner

import (
	"archive/tar"
	"context"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
)

// UserFile is one of the user's files that is in no commit.
type UserFile struct {
	Path       string
	Executable bool
	Content    []byte
}

// place is a script for sh inside a prison that unpacks files and makes git ignore them.
const place = `set -e
cd "$1"
mkdir -p .git/info
tar -x -f -`

// placeBeside is place for a workspace that has files already, which stay unchanged.
const placeBeside = `cd "$1" && mkdir -p .git/info && rm -f .git/info/exclude || exit 1
tar -x -k -f - || exit 3`

// Place writes files into a new workspace, where git ignores them, so that the agent commits them only on purpose.
func (w Workspace) Place(ctx context.Context, files []UserFile) error {
	code, said, err := w.unpack(ctx, place, files)
	return failure("put files into the workspace", code, said, err)
}

// PlaceBeside writes files into a workspace that has files already. It does not replace existing files, and reports
// whether it could write all.
func (w Workspace) PlaceBeside(ctx context.Context, files []UserFile) (all bool, err error) {
	code, said, err := w.unpack(ctx, placeBeside, files)
	if err == nil && code == 3 {
		return false, nil
	}
	err = failure("put files into the workspace", code, said, err)
	return err == nil, err
}

// unpack passes files to a script, and returns the exit status and the output of the script.
func (w Workspace) unpack(ctx context.Context, script string, files []UserFile) (code int, said string, err error) {
	if len(files) == 0 {
		return 0, "", nil
	}
	var exclude strings.Builder
	for _, f := range files {
		exclude.WriteString(ignore.Exactly(f.Path) + "\n")
	}
	files = append(files, UserFile{Path: ".git/info/exclude", Content: []byte(exclude.String())})
	var stderr gitops.Stderr
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
