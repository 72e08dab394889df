package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// toolFiles and toolBytes bound the files that a difftool gets, and the size of each.
	toolFiles = 5000
	toolBytes = 64 << 20
)

// openTool opens the user's difftool for one commit after the other, with the files that the commit changes in two folders of
// the host state.
func openTool(ctx context.Context, s *session.Session, r airlock.Record, d document, tool string) error {
	for i, x := range d.Commits {
		s.Report.Say("%d of %d: commit %s: %s", i+1, len(d.Commits), x.handle(), x.Subject)
		if x.Commit == "" {
			s.Report.Say("it %s", x.unbuilt())
			continue
		}
		state := "" // without an airlock, in a temporary folder
		if r.ID != "" {
			state = s.Store.Dir(r.ID)
		}
		if err := openToolOn(ctx, s, state, x, tool); err != nil {
			return fmt.Errorf("difftool %q: %w", gitops.Text(tool), err)
		}
	}
	return nil
}

func openToolOn(ctx context.Context, s *session.Session, state string, x reviewed, tool string) error {
	dir, err := os.MkdirTemp(state, "tool-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	for _, side := range []struct {
		dir  string
		blob func(gitops.Stat) gitops.OID
	}{
		{before, func(f gitops.Stat) gitops.OID { return f.Before }},
		{after, func(f gitops.Stat) gitops.OID { return f.Blob }},
	} {
		if err := os.Mkdir(side.dir, 0o700); err != nil {
			return err
		}
		if err := export(ctx, s.Repo, side.dir, x.of.Files, side.blob); err != nil {
			return err
		}
	}
	return s.Repo.DiffTool(ctx, dir, tool, before, after)
}

// export writes files of a commit into a folder. Links become files with their target, and no file can be executed.
func export(ctx context.Context, repo *gitops.Repository, dir string, files []gitops.Stat, blob func(gitops.Stat) gitops.OID) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if len(files) > toolFiles {
		return fmt.Errorf("%s are more than %d; use git airlock diff", words.Count(len(files), "file"), toolFiles)
	}
	for _, f := range files {
		id, name := blob(f), shownName(f.Path)
		if strings.Trim(string(id), "0") == "" {
			continue
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = repo.Look(ctx, gitops.Call{Args: []string{"cat-file", "blob", string(id)}, Stdout: to, Limit: toolBytes})
		if gitops.Status(err) == 128 { // a submodule
			_, err = fmt.Fprintf(to, "commit %s\n", id)
		}
		if err := errors.Join(err, to.Close()); err != nil {
			return err
		}
	}
	return nil
}

// shownName returns the name of a file for a difftool: without a dot at the beginning of a name, so that the tool takes no file of
// the agent's for configuration, such as .editorconfig or a folder .vscode. No two names become the same: dot.env becomes
// dotdot.env.
func shownName(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		rest := p
		for strings.HasPrefix(rest, "dot") {
			rest = rest[len("dot"):]
		}
		if strings.HasPrefix(rest, ".") {
			parts[i] = "dot" + p
		}
	}
	return strings.Join(parts, "/")
}
