package airlock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Orphan reports whether the repository no longer has the worktree of an airlock.
func (s Store) Orphan(r Record) bool {
	return r.Worktree != "" && missing(filepath.Join(s.repo.CommonDir, "worktrees", r.Worktree))
}

// OrphanOn returns an airlock of a branch whose worktree is gone, or nil if there is none.
func (s Store) OrphanOn(branch string) (*Record, error) {
	records, err := s.List()
	for _, r := range records {
		if r.Branch == branch && s.Orphan(r) && (r.Phase == Running || r.Phase == Stopped) {
			return &r, err
		}
	}
	return nil, err
}

// Workspace returns the path of an airlock's workspace. The airlock must belong to the worktree from which the store
// was opened, or to a worktree that is gone. If an ordinary user runs "git worktree remove", git may not be able to
// remove the files of the workspace. The workspace is then still at its previous place.
func (s Store) Workspace(r Record) string {
	here, there := s.WorkspaceHere(r), filepath.Join(r.Top, r.Workspace)
	if r.Inside && r.Top != "" && missing(here) && !missing(there) && abandoned(r.Top) {
		return there
	}
	return here
}

// WorkspaceHere returns the path of the workspace in the worktree from which the store was opened.
func (s Store) WorkspaceHere(r Record) string {
	if r.Inside {
		return filepath.Join(s.repo.Top, r.Workspace)
	}
	return filepath.Join(s.Dir(r.ID), r.Workspace)
}

// WorkspaceGone reports whether somebody has removed the workspace.
func (s Store) WorkspaceGone(r Record) bool { return missing(s.Workspace(r)) }

// WorkspaceReplaced reports whether somebody has put a link or a file in the place of the workspace.
func (s Store) WorkspaceReplaced(r Record) bool {
	info, err := os.Lstat(s.Workspace(r))
	return err == nil && !info.IsDir()
}

// abandoned reports whether a folder is no longer a work tree. A folder that is a work tree may belong to a copy of
// the repository, whose workspaces are not ours.
func abandoned(top string) bool {
	name := filepath.Join(top, ".git")
	content, err := os.ReadFile(name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	dir, ok := strings.CutPrefix(strings.TrimRight(string(content), "\n"), "gitdir: ")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	return ok && missing(dir)
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
