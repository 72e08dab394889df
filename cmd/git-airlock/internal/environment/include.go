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
	"github.com/git-airlock/git-airlock/prison/recipe"
)

const (
	// IncludeName is a file at the top of the work tree whose patterns let files in that are not committed.
	IncludeName = ".worktreeinclude"
	// maxIncluded bounds what they have together: they are passed on through memory.
	maxIncluded = 64 << 20
	// maxIncludeLines bounds the patterns, each of which git holds against each file that it does not track.
	maxIncludeLines = 1000
)

// Include returns the files that are not committed and go in all the same. Whoever commits can write the list, so it takes
// the user's consent, and again when it has changed; without it none goes in.
func (b Builder) Include(ctx context.Context) ([]gitops.UserFile, error) {
	list, err := b.ReadOwn(IncludeName)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if n := bytes.Count(list, []byte("\n")); n > maxIncludeLines {
		return nil, fmt.Errorf("%s: %d lines, more than %d", IncludeName, n, maxIncludeLines)
	}
	names, err := b.Repo.Untracked(ctx, filepath.Join(b.Repo.Top, IncludeName))
	if err != nil {
		return nil, err
	}
	files, err := b.readIncluded(names)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	s := Setup{File: IncludeName, Digest: Digest([]byte(sumLine(list, IncludeName)))}
	wish := fmt.Sprintf("%s of yours that git does not track are copied in, such as %s", count(len(files), "file"), gitops.Escape(files[0].Path))
	yes, err := b.Consents(ctx, s, []string{wish})
	if err != nil || yes {
		return files, err
	}
	if no, err := b.refused(ctx, s); err != nil || no {
		return nil, err
	}
	b.Report.Say("%s is not obeyed without your consent: %s", IncludeName, wish)
	b.Report.Hint(s.consentHint())
	return nil, nil
}

// readIncluded reads regular files. A ".env" stays out: what of it goes in is named one by one.
func (b Builder) readIncluded(names []string) (files []gitops.UserFile, err error) {
	root, err := os.OpenRoot(b.Repo.Top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	left := int64(maxIncluded)
	for _, name := range names {
		if path.Base(name) == DotenvName {
			b.Report.Say("%s: %s stays outside; pass what the agent needs by --env or the recipe's [env]", IncludeName, gitops.Escape(name))
			continue
		}
		info, err := root.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !info.Mode().IsRegular() || strings.ContainsRune(name, '\n') {
			continue // a link leads elsewhere, a folder is a repository of its own
		}
		if left -= info.Size(); left < 0 {
			return nil, fmt.Errorf("%s: the files that match have more than %d MB", IncludeName, maxIncluded>>20)
		}
		content, err := readWithin(root, name, info.Size())
		if err != nil {
			return nil, err
		}
		files = append(files, gitops.UserFile{Path: name, Executable: info.Mode()&0o100 != 0, Content: content})
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

// ReadOwn reads a file at the top of the work tree that init may write; nil if there is none.
func (b Builder) ReadOwn(name string) ([]byte, error) {
	path := filepath.Join(b.Repo.Top, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > recipe.MaxSize:
		return nil, fmt.Errorf("%s is no file that can be added to", name)
	}
	content, err := os.ReadFile(path)
	return append([]byte{}, content...), err
}
