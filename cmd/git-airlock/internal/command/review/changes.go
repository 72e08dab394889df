package review

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/verdict"
)

// noSeenFlag is the option of commands that show changes.
var noSeenFlag = &cli.BoolFlag{Name: "no-seen", Usage: "do not record that you have looked at the files"}

// changes shows the changes of commits, and records which files the user has looked at.
type changes struct {
	s      *session.Session
	paths  []string              // pathspecs from the top of the work tree; none: all
	inter  map[gitops.OID]string // by inner commit: the interdiff to show instead of the change
	unseen bool                  // only files that the user has not looked at
	looked []verdict.Looked
}

// show prints the change of a commit.
func (c *changes) show(ctx context.Context, out io.Writer, p ui.Paint, x reviewed) error {
	if x.Commit == "" {
		_, err := fmt.Fprintf(out, "%s has not been built yet: git airlock status\n", x.short())
		return err
	}
	to, paths, files := &checked{Writer: out}, c.paths, x.of.Files
	if text, changed := c.inter[x.Inner]; changed {
		_, _ = io.WriteString(to, text)
	} else {
		if c.unseen {
			files = x.of.Unseen()
			for _, f := range files {
				paths = append(paths, ":(literal)"+f.Path)
			}
		} else if len(paths) > 0 {
			var err error
			if files, err = c.s.Repo.Stats(ctx, x.Commit, paths...); err != nil {
				return cmdline.GitSaid(err)
			}
		}
		if len(files) == 0 && len(x.of.Files) > 0 {
			return nil
		}
		if err := c.s.Repo.ShowChange(ctx, to, bool(p), x.Commit, paths...); err != nil {
			return cmdline.GitSaid(err)
		}
	}
	if to.failed == nil && !x.landed {
		c.looked = append(c.looked, verdict.Looked{Inner: x.Inner, Files: files})
	}
	return to.failed
}

// record records what was shown on a terminal to the end.
func (c *changes) record(ctx context.Context, r airlock.Record) {
	if !ui.IsTerminal(ui.Stdout) || r.ID == "" {
		return
	}
	engine := c.s.Engine(r)
	defer engine.Close()
	if err := verdict.See(ctx, engine, c.looked); err != nil {
		c.s.Report.Say("what you have seen was not recorded: %s", err)
	}
}

// checked remembers the first error of a write, such as that of a pager that has ended.
type checked struct {
	io.Writer
	failed error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if c.failed == nil {
		c.failed = err
	}
	return n, err
}

// fromTop returns pathspecs of the current folder as pathspecs of the top of the work tree.
func fromTop(s *session.Session, paths []string) ([]string, error) {
	cwd, err := os.Getwd()
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	below, err := filepath.Rel(s.Repo.Top, cwd)
	var all []string
	for _, p := range paths {
		if err == nil && !strings.HasPrefix(p, ":") && !filepath.IsAbs(p) {
			p = path.Join(filepath.ToSlash(below), p)
		}
		all = append(all, p)
	}
	return all, nil
}
