package airlock

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/identity"
)

// The user's exclude file gets one line for each workspace inside a work tree. The host state records the original
// form of the file, so that the file is byte for byte the same again after the last workspace is gone.
const (
	wasMissing = "missing"      // there was no file
	wasOpen    = "unterminated" // its last line had no newline
	wasWhole   = "whole"
)

func (s Store) excludeFile() string { return filepath.Join(s.repo.CommonDir, "info", "exclude") }

func (s Store) excludeMemory() string { return filepath.Join(s.root(), "exclude") }

// excludeLine matches the workspace at the top of a work tree and nothing else.
func excludeLine(workspace string) string { return "/" + workspace + "/\n" }

// Exclude adds a line with an airlock's workspace to the user's exclude file, so that git ignores the workspace. It reports whether the
// line was missing. The user may have removed it.
func (s Store) Exclude(r Record) (bool, error) {
	if !r.Inside {
		return false, nil
	}
	content, err := os.ReadFile(s.excludeFile())
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return false, err
	}
	if strings.Contains("\n"+string(content), "\n"+excludeLine(r.Workspace)) {
		return false, nil
	}
	open := len(content) > 0 && !bytes.HasSuffix(content, []byte("\n"))
	if missing(s.excludeMemory()) {
		if err := durable.WriteFile(s.excludeMemory(), []byte(excludeState(absent, open)), 0o600); err != nil {
			return true, err
		}
	}
	if open {
		content = append(content, '\n')
	}
	if err := os.MkdirAll(filepath.Dir(s.excludeFile()), 0o777); err != nil {
		return true, err
	}
	return true, s.replaceExclude(append(content, excludeLine(r.Workspace)...))
}

func excludeState(absent, open bool) string {
	switch {
	case absent:
		return wasMissing
	case open:
		return wasOpen
	}
	return wasWhole
}

// unexclude removes the line of a workspace from the user's exclude file. All other lines stay.
func (s Store) unexclude(workspace string) error {
	content, err := os.ReadFile(s.excludeFile())
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(s.excludeMemory())
	}
	if err != nil {
		return err
	}
	ours := func(line string) bool { return line == excludeLine(workspace) }
	rest := strings.Join(slices.DeleteFunc(strings.SplitAfter(string(content), "\n"), ours), "")
	others, damaged, err := s.read()
	if err != nil {
		return err
	}
	id, _ := identity.ParseWorkspaceName(workspace)
	another := slices.ContainsFunc(damaged, func(d *DamagedError) bool { return d.ID != id })
	if another || slices.ContainsFunc(others, func(r Record) bool { return r.Inside && r.Workspace != workspace }) {
		return s.replaceExclude([]byte(rest))
	}
	memory, err := os.ReadFile(s.excludeMemory())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.restoreExclude(string(memory), rest); err != nil {
		return err
	}
	return os.RemoveAll(s.excludeMemory())
}

func (s Store) restoreExclude(memory, rest string) error {
	switch {
	case memory == wasMissing && rest == "":
		return os.Remove(s.excludeFile())
	case memory == wasOpen:
		rest = strings.TrimSuffix(rest, "\n")
	}
	return s.replaceExclude([]byte(rest))
}

// replaceExclude keeps the file's mode. If the file is a symbolic link, it replaces the target, because some users
// keep this file elsewhere. The new file is written in the host state, where Sweep finds it after a crash.
func (s Store) replaceExclude(content []byte) error {
	name := s.excludeFile()
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	} else if target, err := os.Readlink(name); err == nil { // a link to a file that does not exist yet
		if name = target; !filepath.IsAbs(target) {
			name = filepath.Join(filepath.Dir(s.excludeFile()), target)
		}
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	next := filepath.Join(s.root(), "info-exclude"+newSuffix)
	if err := durable.WriteFile(next, content, mode); err != nil {
		return err
	}
	if err := os.Rename(next, name); !errors.Is(err, unix.EXDEV) {
		return err
	}
	return errors.Join(durable.WriteFile(name, content, mode), os.Remove(next))
}

// Excluded returns the names of workspaces that lines of the user's exclude file have.
func (s Store) Excluded() (names []string, err error) {
	content, err := os.ReadFile(s.excludeFile())
	for line := range strings.Lines(string(content)) {
		name := strings.TrimSuffix(strings.TrimPrefix(line, "/"), "/\n")
		if _, ok := identity.ParseWorkspaceName(name); ok && line == excludeLine(name) {
			names = append(names, name)
		}
	}
	return names, gitops.Unless(err, fs.ErrNotExist)
}
