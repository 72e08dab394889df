package review

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/review"
	"github.com/git-airlock/git-airlock/promote/verdict"
	"github.com/git-airlock/git-airlock/words"
)

// noSeenFlag is the option of commands that show changes.
var noSeenFlag = &cli.BoolFlag{Name: "no-seen", Usage: "do not record that you have looked at the files"}

// changes shows the changes of commits, and records which files the user has looked at.
type changes struct {
	s      *session.Session
	paths  []string                         // pathspecs from the top of the work tree; none: all
	inter  map[gitops.OID]verdict.Interdiff // by inner commit: the interdiff to show instead of the change
	unseen bool                             // only files that the user has not looked at
	text   bool                             // binary files as text
	looked []verdict.Looked
}

// unbuilt returns the reason why a commit has no outer commit to show, and the next command.
func (x reviewed) unbuilt() string {
	if x.State != review.StateBlocked || len(x.Needs) == 0 {
		return "has not been built yet: git airlock status"
	}
	var needs []string
	for _, id := range x.Needs {
		needs = append(needs, fmt.Sprintf("%.12s", id))
	}
	return "is not built before what it waits for: git airlock review " + strings.Join(needs, " ")
}

// show prints the change of a commit.
func (c *changes) show(ctx context.Context, out io.Writer, p ui.Paint, x reviewed) error {
	if x.Commit == "" {
		_, err := fmt.Fprintf(out, "%s %s\n", x.short(), x.unbuilt())
		return err
	}
	to, paths, files := &checked{Writer: out}, c.paths, x.of.Files
	if inter, changed := c.inter[x.Inner]; changed {
		_, _ = io.WriteString(to, inter.Text)
		if inter.Part {
			fmt.Fprintf(to, "not shown, and not seen: a part of the change: git airlock diff %s\n", x.handle())
			return to.failed
		}
	} else {
		if c.unseen {
			files = x.of.Unseen()
			for _, f := range files {
				paths = append(paths, ":(literal)"+f.Path)
			}
		} else if len(paths) > 0 {
			var err error
			if files, err = c.s.Repo.Bare().Stats(ctx, x.Commit, paths...); err != nil {
				return cmdline.GitSaid(err)
			}
		}
		if len(files) == 0 && len(x.of.Files) > 0 {
			return nil
		}
		part, err := c.message(ctx, to, x)
		if err != nil {
			return err
		}
		if part {
			files = nil
		}
		err = c.s.Repo.ShowChange(ctx, to, bool(p), c.text, x.Commit, paths...)
		if err == nil && to.binary && !c.text {
			files, err = c.withoutBinary(ctx, to, x, files)
		}
		if err != nil {
			return cmdline.GitSaid(err)
		}
	}
	if to.failed == nil && !x.landed {
		c.looked = append(c.looked, verdict.Looked{Inner: x.Inner, Files: files})
	}
	return to.failed
}

// message prints the message of a commit below its subject, unless it has nothing but the subject. part reports that the end is left out. The
// text then says so.
func (c *changes) message(ctx context.Context, out io.Writer, x reviewed) (part bool, err error) {
	err = c.s.Repo.Messages(ctx, []gitops.OID{x.Commit}, verdict.MessageLimit, func(_ int, message []byte, left int) error {
		body := bytes.TrimLeft(message, "\n")
		if subject, rest, _ := bytes.Cut(body, []byte("\n")); gitops.Text(subject).String() == x.Subject && !strings.HasSuffix(x.Subject, "...") {
			body = bytes.TrimLeft(rest, "\n")
		}
		if len(body) == 0 && left == 0 {
			return nil
		}
		fmt.Fprintln(out)
		part = verdict.PrintMessage(out, "    ", bytes.TrimRight(body, "\n"), left)
		_, err := fmt.Fprintln(out)
		return err
	})
	return part, err
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

// withoutBinary returns the files without binary ones, of which git shows only that they differ. It prints how much is not shown.
func (c *changes) withoutBinary(ctx context.Context, out io.Writer, x reviewed, files []gitops.Stat) (rest []gitops.Stat, err error) {
	all, err := c.s.Repo.Bare().Stats(ctx, x.Commit)
	if err != nil {
		return nil, err
	}
	binary := map[string]bool{}
	for _, f := range all {
		binary[f.Path] = f.Added < 0 && f.Blob != f.Blob.Zero() // of a removed file nothing lands
	}
	var hidden []gitops.OID
	for _, f := range files {
		if binary[f.Path] {
			hidden = append(hidden, f.Blob)
		} else {
			rest = append(rest, f)
		}
	}
	var sizes bytes.Buffer
	ask := gitops.Call{Args: []string{"cat-file", "--batch-check=%(objectsize)"}, Stdin: strings.NewReader(gitops.Lines(hidden)), Stdout: &sizes}
	if err := c.s.Repo.Look(ctx, ask); err != nil || len(hidden) == 0 {
		return rest, err
	}
	size := 0
	for number := range strings.FieldsSeq(sizes.String()) {
		n, _ := strconv.Atoi(number)
		size += n
	}
	_, err = fmt.Fprintf(out, "not shown, and not seen: %s, %s: git airlock diff --text %s\n", words.Count(len(hidden), "binary file"), words.Count(size, "byte"), x.handle())
	return rest, err
}

// checked remembers the first error of a write, such as that of a pager that has ended, and whether git has shown a binary file.
type checked struct {
	io.Writer
	failed error
	binary bool
}

func (c *checked) Write(p []byte) (int, error) {
	c.binary = c.binary || bytes.HasPrefix(p, []byte("Binary files "))
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
