package userhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// sizeLimit bounds the size of a hook.
const sizeLimit = 1 << 20

// Place is where git looks for a hook.
type Place struct {
	File string // absolute

	common   string
	trees    []hostenv.Tree
	readOnly bool
}

// Unsuitable reports that the line must be added or removed by hand.
type Unsuitable struct {
	File string // the file in which the line belongs
	Why  string
	Next string // a command to type before; empty if there is none
	Not  bool   // the line does not work in the file
}

func (e *Unsuitable) Error() string { return gitops.Text(e.File).String() + ": " + e.Why }

// Find returns the place of a hook, such as pre-push.
func Find(ctx context.Context, repo *gitops.Repository, hook string) (Place, error) {
	p := Place{common: repo.CommonDir, readOnly: repo.Dry}
	dir, err := repo.HooksDir(ctx)
	if err != nil {
		return p, err
	}
	tops, err := repo.Worktrees(ctx)
	if err != nil {
		return p, err
	}
	for _, top := range append(tops, repo.Top) {
		p.trees = append(p.trees, hostenv.NewTree(top))
	}
	p.File = filepath.Join(dir, hook)
	return p, nil
}

// Install adds the line to the hook, and makes the hook if there is none. changed reports whether the line was missing.
func (p Place) Install() (changed bool, err error) {
	content, info, err := p.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, p.create()
	case err != nil:
		return false, err
	}
	if why := unfit(content); why != "" {
		return false, &Unsuitable{File: p.File, Why: why, Not: true}
	}
	if info.Mode()&0o111 == 0 {
		return false, &Unsuitable{File: p.File, Why: "git does not run it, because it is not executable", Next: "chmod +x " + gitops.Pasteable(p.File)}
	}
	return p.write(content, insert(content), info)
}

// Remove removes the line from the hook, and the hook if Install made it. changed reports whether the line was there.
func (p Place) Remove() (changed bool, err error) {
	content, info, err := p.read()
	if err != nil {
		return false, gitops.Unless(err, fs.ErrNotExist)
	}
	rest, there := without(content)
	if !there || p.readOnly {
		return there, nil
	}
	from, to, _ := find(content)
	if made := string(markOf(content[from:to])); made == mark || string(rest) != newFile {
		return p.write(content, rest, info)
	} else if err := os.Remove(p.File); err != nil || made == madeMark {
		return true, err
	}
	_ = os.Remove(filepath.Dir(p.File)) // fails if there is something else in it
	return true, nil
}

// read returns a hook that may be changed. The error is an [Unsuitable] if it may not.
func (p Place) read() ([]byte, fs.FileInfo, error) {
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	info, err := os.Lstat(p.File)
	if err != nil {
		return nil, nil, err
	}
	why := ""
	stat, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(p.File)
		why = fmt.Sprintf("it is a link to %s, which others may use", gitops.Text(target))
	case !info.Mode().IsRegular():
		why = "it is not a regular file"
	case info.Size() > sizeLimit:
		why = "it is larger than 1 MiB"
	case stat != nil && stat.Nlink > 1:
		why = "the file has another name, which others may use"
	case !gitops.OwnedByUs(info):
		why = "it belongs to another user"
	}
	if why != "" {
		return nil, nil, &Unsuitable{File: p.File, Why: why}
	}
	content, err := os.ReadFile(p.File)
	return content, info, err
}

// check reports a folder in which no hook may be written.
func (p Place) check() error {
	dir := filepath.Dir(p.File)
	if info, err := os.Stat(dir); err == nil && !info.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return &Unsuitable{File: p.File, Why: "core.hooksPath names no folder, so that git runs no hooks", Next: "git config --show-origin core.hooksPath"}
	}
	if !p.inTree() {
		return nil
	}
	if filepath.Base(dir) == "_" { // husky runs the hooks in the folder above its own
		return &Unsuitable{File: filepath.Join(filepath.Dir(dir), filepath.Base(p.File)), Why: "husky runs this file, which is in the work tree, where a commit can change it"}
	}
	return &Unsuitable{File: p.File, Why: "it is in the work tree, where a commit can change it"}
}

// inTree reports whether the hook is in a work tree, or is reached through one.
func (p Place) inTree() bool {
	ours := hostenv.NewTree(p.common)
	steps := hostenv.Steps(p.File)
	own := ours.Inside(steps)
	return slices.ContainsFunc(p.trees, func(t hostenv.Tree) bool {
		return slices.ContainsFunc(t.Inside(steps), func(w hostenv.Within) bool {
			inside := slices.ContainsFunc(own, func(o hostenv.Within) bool { return o.Path == w.Path })
			return w.Rel != "." && w.Rel != ".git" && !inside && !strings.HasPrefix(ours.Top+"/", w.Path+"/")
		})
	})
}

// create makes a hook that consists of the line.
func (p Place) create() error {
	if p.readOnly {
		return nil
	}
	dir, as := filepath.Dir(p.File), madeMark
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		as = folderMark
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the folder %q: %w", gitops.Text(dir), err)
		}
	}
	return durable.WriteFile(p.File, []byte(newFile+script+as+"\n"), 0o755)
}

// write replaces the content of a hook, and keeps its mode.
func (p Place) write(before, after []byte, info fs.FileInfo) (changed bool, err error) {
	if changed = !bytes.Equal(before, after); !changed || p.readOnly {
		return changed, nil
	}
	return true, durable.WriteFile(p.File, after, info.Mode())
}
