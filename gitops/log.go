package gitops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/words"
)

// Log writes the output of git log in dir, and escapes everything that is not plain text. If colour is true, git's
// own colour sequences are passed on. The user's log.mailmap applies, and no encoding other than UTF-8, in which it would not be plain text.
func (r *Repository) Log(ctx context.Context, dir string, out io.Writer, colour bool, args ...string) error {
	g := *r.Git
	g.Dir, g.config = dir, slices.DeleteFunc(slices.Clone(g.config), func(pair string) bool { return pair == noMailmap })
	return g.log(ctx, out, colour, append([]string{"log", inColour(colour)}, args...))
}

func inColour(colour bool) string {
	if colour {
		return "--color=always"
	}
	return "--color=never"
}

// log runs a command that shows commits, and escapes its output.
func (g *Git) log(ctx context.Context, out io.Writer, colour bool, args []string) error {
	escaper := &escapingWriter{w: out, colour: colour}
	err := g.With("GIT_LITERAL_PATHSPECS=0").Look(ctx, Call{Args: args, Stdout: escaper, Limit: 1 << 50})
	err = cmp.Or(err, escaper.flush())
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil // the reader has closed the output
	}
	return err
}

// Bare returns git without the work tree and its attributes. An agent could use attributes to hide the content of a file, or to make git
// write past its memory. With GIT_DIR and without GIT_WORK_TREE, git reads .gitattributes in its working directory, even if core.bare is
// set. So the working directory is the git directory.
func (r *Repository) Bare() *Git {
	g := r.Configured("core.bare=true", "attr.tree=none", "merge.renormalize=false") // renormalize reads the attributes of the merged trees
	g.Dir, g.env = r.CommonDir, []string{"GIT_DIR=" + r.CommonDir}
	return g
}

// ShowChange writes the change of a commit since its first parent at some paths (all without any), escaped. It runs no program that a
// configuration or an attribute names. Only the user's own attributes apply, unless text is true: then all files are shown as text.
func (r *Repository) ShowChange(ctx context.Context, out io.Writer, colour, text bool, commit OID, paths ...string) error {
	args := []string{"log", "-1", "-p", "--format=", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv", inColour(colour),
		map[bool]string{true: "--text", false: "--no-text"}[text], string(commit), "--"}
	return r.Bare().log(ctx, out, colour, append(args, paths...))
}

// ShowTrees writes the difference between two trees, escaped. It runs no program that a configuration or an attribute names.
// The error is [ErrLargePatch] if the difference has more bytes than limit.
func (g *Git) ShowTrees(ctx context.Context, out io.Writer, colour bool, limit int64, from, to OID) error {
	args := []string{"diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", inColour(colour), string(from), string(to)}
	escaper := &escapingWriter{w: out, colour: colour}
	err := g.Look(ctx, Call{Args: args, Stdout: escaper, Limit: limit, For: patchTime})
	err = cmp.Or(err, escaper.flush())
	if errors.Is(err, ErrOutput) && ctx.Err() == nil {
		return ErrLargePatch
	}
	return err
}

// Pager returns the command that git would use as pager, as git-var(1) resolves it.
func (r *Repository) Pager(ctx context.Context) (string, error) {
	if pager, set := os.LookupEnv("GIT_PAGER"); set {
		return pager, nil
	}
	return r.Output(ctx, "var", "GIT_PAGER")
}

// Worktrees lists the paths of the repository's work trees.
func (g *Git) Worktrees(ctx context.Context) ([]string, error) {
	records, err := g.Records(ctx, Call{Args: []string{"worktree", "list", "--porcelain", "-z"}})
	var paths []string
	for _, rec := range records {
		if path, ok := strings.CutPrefix(rec, "worktree "); ok {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// Colour is the value of a setting for coloured text.
type Colour int

// The values of git's colour settings. True means auto, and false means never.
const (
	ColourAuto Colour = iota // if the output is a terminal
	ColourNever
	ColourAlways
)

// Colour returns the first of some colour settings that is set, see git-config(1).
func (c Config) Colour(keys ...string) (Colour, error) {
	for _, key := range keys {
		value, set := c[canonical(key)]
		if !set {
			continue
		}
		if colour, known := map[string]Colour{"auto": ColourAuto, "always": ColourAlways, "never": ColourNever}[value]; known {
			return colour, nil
		}
		wants, err := c.Bool(key, true)
		if err != nil || wants {
			return ColourAuto, err
		}
		return ColourNever, nil
	}
	return ColourAuto, nil
}

// pieceSize is the number of bytes after which a long line is escaped in pieces, so that no line needs much memory.
const pieceSize = 16 << 10

// escapingWriter escapes text line by line.
type escapingWriter struct {
	w      io.Writer
	colour bool
	line   []byte
}

func (e *escapingWriter) Write(p []byte) (int, error) {
	for chunk := range bytes.Lines(p) {
		e.line = append(e.line, bytes.TrimSuffix(chunk, []byte("\n"))...)
		var err error
		if bytes.HasSuffix(chunk, []byte("\n")) {
			err = e.end(len(e.line), "\n")
		} else if len(e.line) > pieceSize {
			err = e.end(e.whole(), "")
		}
		if err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// whole returns the length of a line without the beginning of a character or colour sequence at its end.
func (e *escapingWriter) whole() int {
	const longest = 64 // bytes of a colour sequence
	n := len(e.line) - 1
	for n > pieceSize/2 && !utf8.RuneStart(e.line[n]) {
		n--
	}
	if i := bytes.LastIndexByte(e.line[n-longest:n], '\x1b'); i >= 0 {
		n += i - longest
	}
	return n
}

func (e *escapingWriter) flush() error { return e.end(len(e.line), "") }

// end writes the first n bytes of the line.
func (e *escapingWriter) end(n int, newline string) error {
	text := e.escape(string(e.line[:n]))
	e.line = append(e.line[:0], e.line[n:]...)
	_, err := fmt.Fprint(e.w, text, newline)
	return err
}

// escape escapes one line, except tabs and git's colours.
func (e *escapingWriter) escape(line string) string {
	var b strings.Builder
	for line != "" {
		if line[0] == '\t' {
			b.WriteByte('\t')
			line = line[1:]
			continue
		}
		if sequence := words.ColourSequence(line); e.colour && sequence != "" {
			b.WriteString(sequence)
			line = line[len(sequence):]
			continue
		}
		end := 1
		for end < len(line) && line[end] != '\t' && line[end] != '\x1b' {
			end++
		}
		b.WriteString(escape(line[:end]))
		line = line[end:]
	}
	return b.String()
}
