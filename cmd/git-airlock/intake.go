package main

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

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
)

// excludeKey is the setting, given any number of times, of what is left out of snapshots. Landed trees keep it.
const excludeKey = "airlock.exclude"

// excluded reads what is left out of a snapshot.
func (a *app) excluded(ctx context.Context) (gitops.Patterns, error) {
	if !a.config.Has(excludeKey) {
		return nil, nil
	}
	lines, err := a.repo.Values(ctx, excludeKey)
	if err != nil {
		return nil, err
	}
	out, wrong, ok := gitops.ParsePatterns(lines)
	if !ok {
		return nil, &promote.SettingError{Key: excludeKey, Value: wrong, Want: "a pattern as in gitignore(5)"}
	}
	return out, nil
}

const (
	// includeName is a file at the top of the work tree whose patterns let files in that are not committed.
	includeName = ".worktreeinclude"
	// maxIncluded bounds what they have together: they are passed on through memory.
	maxIncluded = 64 << 20
	// maxIncludeLines bounds the patterns, each of which git holds against each file that it does not track.
	maxIncludeLines = 1000
)

// included are the files that are not committed and go in all the same. Whoever commits can write the list, so it takes
// the user's consent, and again when it has changed; without it none goes in.
func (a *app) included(ctx context.Context) ([]gitops.UserFile, error) {
	list, err := a.readOwn(includeName)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if n := bytes.Count(list, []byte("\n")); n > maxIncludeLines {
		return nil, fmt.Errorf("%s: %d lines, more than %d", includeName, n, maxIncludeLines)
	}
	names, err := a.repo.Untracked(ctx, filepath.Join(a.repo.Top, includeName))
	if err != nil {
		return nil, err
	}
	files, err := a.readIncluded(names)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	s := commitSetup{file: includeName, digest: digestOf([]byte(sumLine(list, includeName)))}
	wish := fmt.Sprintf("%s of yours that git does not track are copied in, such as %s", ui.Count(len(files), "file"), gitops.Escape(files[0].Path))
	yes, err := a.consents(ctx, s, []string{wish})
	if err != nil || yes {
		return files, err
	}
	if no, err := a.refused(ctx, s); err != nil || no {
		return nil, err
	}
	ui.Say(a.message, "%s is not obeyed without your consent: %s", includeName, wish)
	ui.Hint(a.message, s.consentHint())
	return nil, nil
}

// readIncluded reads regular files. A ".env" stays out: what of it goes in is named one by one.
func (a *app) readIncluded(names []string) (files []gitops.UserFile, err error) {
	root, err := os.OpenRoot(a.repo.Top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	left := int64(maxIncluded)
	for _, name := range names {
		if path.Base(name) == dotenvName {
			ui.Say(a.message, "%s: %s stays outside; pass what the agent needs by --env or the recipe's [env]", includeName, gitops.Escape(name))
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
			return nil, fmt.Errorf("%s: the files that match have more than %d MB", includeName, maxIncluded>>20)
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
