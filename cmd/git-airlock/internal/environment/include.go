package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// IncludeName is a file at the top of the work tree. Its patterns match untracked files to copy into the workspace.
	IncludeName = ".worktreeinclude"
	// maxIncluded bounds the total size of these files, because they are passed on through memory.
	maxIncluded = 64 << 20
	// maxIncludeLines bounds the patterns, because git matches each pattern against each untracked file.
	maxIncludeLines = 1000
)

// Include returns the untracked files to copy into the workspace. Everybody who commits can write the list, so it needs the user's
// consent, and again after each change. Without consent there are no files.
func (b Builder) Include(ctx context.Context) ([]inner.UserFile, error) {
	list, err := b.ReadOwn(IncludeName)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if n := bytes.Count(list, []byte("\n")); n > maxIncludeLines {
		return nil, recipe.Mistake(IncludeName, "%d lines, more than %d", n, maxIncludeLines)
	}
	names, err := b.Repo.Untracked(ctx, filepath.Join(b.Repo.Top, IncludeName))
	if err != nil {
		return nil, err
	}
	files, err := b.readIncluded(names)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	s := Setup{File: IncludeName, Digest: digestOf([]byte(sumLine(list, IncludeName)))}
	wish := fmt.Sprintf("%s are copied into the workspace, such as %s", words.Count(len(files), "untracked file"), gitops.Text(files[0].Path))
	yes, err := b.Consents(ctx, s, []string{wish})
	if err != nil || yes {
		return files, err
	}
	return nil, b.sayUnused(ctx, s, ": "+wish)
}

// readIncluded reads regular files. A ".env" file is left out, because its variables are passed by name.
func (b Builder) readIncluded(names []string) (files []inner.UserFile, err error) {
	root, err := os.OpenRoot(b.Repo.Top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	left := int64(maxIncluded)
	for _, name := range names {
		if path.Base(name) == DotenvName {
			b.Report.Say("%s: %s stays outside; pass variables with --env or the recipe's [env]", IncludeName, gitops.Text(name))
			continue
		}
		info, err := root.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !info.Mode().IsRegular() || strings.ContainsRune(name, '\n') {
			continue // a link may lead elsewhere, and a folder here is another repository
		}
		if left -= info.Size(); left < 0 {
			return nil, fmt.Errorf("%s: the files that match have more than %d MB", IncludeName, maxIncluded>>20)
		}
		content, err := readWithin(root, name, info.Size())
		if err != nil {
			return nil, err
		}
		files = append(files, inner.UserFile{Path: name, Executable: info.Mode()&0o100 != 0, Content: content})
	}
	return files, nil
}

func readWithin(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// ReadOwn reads a file at the top of the work tree that init may write. It returns nil if the file is missing.
func (b Builder) ReadOwn(name string) ([]byte, error) {
	path := filepath.Join(b.Repo.Top, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, recipe.Mistake(name, "a symbolic link, which is not followed")
	case !info.Mode().IsRegular():
		return nil, recipe.Mistake(name, "not a regular file")
	case info.Size() > recipe.MaxSize:
		return nil, recipe.Mistake(name, "more than %d bytes", recipe.MaxSize)
	}
	content, err := os.ReadFile(path)
	return append([]byte{}, content...), err
}
