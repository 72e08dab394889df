package airlock

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-airlock/git-airlock/gitops"
)

// The user's exclude file gets one line for each workspace inside a work tree. What the file was like
// before the first of them is kept in the host state, so that it is byte for byte that again after the last.
const (
	wasMissing = "missing"      // there was no file
	wasOpen    = "unterminated" // its last line had no newline
	wasWhole   = "whole"
)

func (s Store) excludeFile() string { return filepath.Join(s.repo.CommonDir, "info", "exclude") }

func (s Store) excludeMemory() string { return filepath.Join(s.root(), "exclude") }

// excludeLine matches the workspace at the top of a work tree and nothing else.
func excludeLine(workspace string) string { return "/" + workspace + "/\n" }

// Exclude sees to it that git does not look at an airlock's workspace, and reports whether it would have: the file is the
// user's to edit.
func (s Store) Exclude(r Record) (bool, error) {
	if !r.Inside {
		return false, nil
	}
	content, err := os.ReadFile(s.excludeFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if strings.Contains("\n"+string(content), "\n"+excludeLine(r.Workspace)) {
		return false, nil
	}
	return true, s.exclude(r.Workspace)
}

func (s Store) exclude(workspace string) error {
	content, err := os.ReadFile(s.excludeFile())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	open := len(content) > 0 && !bytes.HasSuffix(content, []byte("\n"))
	if _, err := os.Lstat(s.excludeMemory()); errors.Is(err, fs.ErrNotExist) {
		if err := gitops.WriteFile(s.excludeMemory(), []byte(excludeState(missing, open)), 0o600); err != nil {
			return err
		}
	}
	if open {
		content = append(content, '\n')
	}
	if err := os.MkdirAll(filepath.Dir(s.excludeFile()), 0o777); err != nil {
		return err
	}
	return s.replaceExclude(append(content, excludeLine(workspace)...))
}

func excludeState(missing, open bool) string {
	switch {
	case missing:
		return wasMissing
	case open:
		return wasOpen
	}
	return wasWhole
}

// include takes the line back; whatever the user wrote meanwhile stays.
func (s Store) include(workspace string) error {
	content, err := os.ReadFile(s.excludeFile())
	if errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(s.excludeMemory())
	}
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(content), "\n")
	kept := lines[:0]
	for _, line := range lines {
		if line != excludeLine(workspace) {
			kept = append(kept, line)
		}
	}
	rest := strings.Join(kept, "")
	others, err := s.List()
	if err != nil {
		return err
	}
	if excludedBesides(others, workspace) {
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

func excludedBesides(records []Record, workspace string) bool {
	for _, r := range records {
		if r.Inside && r.Workspace != workspace {
			return true
		}
	}
	return false
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

// replaceExclude keeps the file's mode, and a link a link: people keep this file elsewhere. The new one is
// written in the host state, where a crash leaves it to Sweep.
func (s Store) replaceExclude(content []byte) error {
	name := s.excludeFile()
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	} else if target, err := os.Readlink(name); err == nil { // to a file that is still to be
		if name = target; !filepath.IsAbs(target) {
			name = filepath.Join(filepath.Dir(s.excludeFile()), target)
		}
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	next := filepath.Join(s.root(), "info-exclude"+newSuffix)
	if err := gitops.WriteFile(next, content, mode); err != nil {
		return err
	}
	if err := os.Rename(next, name); !errors.Is(err, unix.EXDEV) {
		return err
	}
	return errors.Join(gitops.WriteFile(name, content, mode), os.Remove(next))
}
