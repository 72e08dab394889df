package environment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

// Setup is the description of an environment in a commit: its recipe, or a replacement for a missing one.
type Setup struct {
	recipe.Recipe
	File       string // the path of its file; empty if there is none
	Digest     string // SHA-256 of the file and of all files that it names; consent is bound to it
	plain      string // SHA-256 of the file alone, with git's line ends
	dockerfile []byte // the content of the Dockerfile that it names
	context    []image.File
	Names      []string // paths that it names, for the gate
	ignored    []string // its fields that are ignored
}

// Devcontainer reports whether a devcontainer.json replaces the recipe.
func (s Setup) Devcontainer() bool { return s.File == recipe.DevcontainerName }

// Read reads the setup of a commit's tree. If the setup has a mistake, which is a [recipe.Errors], its File is set. Uncommitted changes are
// ignored, because the workspace does not have them either.
func (b Builder) Read(ctx context.Context, tree gitops.OID) (Setup, error) {
	if b.Config.Partial() { // objects may be missing here; the snapshot needs them, too
		if _, err := b.Repo.FetchPromised(ctx, tree, ""); err != nil {
			return Setup{}, fmt.Errorf("fetch the objects for the snapshot: %w", err)
		}
	}
	look := quarantine.Inspect(ctx, b.Repo.Git)
	defer look.Close()
	t := treeFiles{ctx, look, tree}
	s := Setup{File: recipe.FileName}
	content, err := t.read(s.File)
	switch {
	case err != nil:
		return Setup{}, err
	case content != nil:
		s.Recipe, err = recipe.Parse(content)
	default:
		s.File = recipe.DevcontainerName
		if content, err = t.read(s.File); err != nil || content == nil {
			return Setup{}, err
		}
		s.Recipe, s.ignored, err = recipe.ParseDevcontainer(content)
	}
	if err != nil {
		return s, err
	}
	s.Digest, s.plain = digestOf(content), digestOf(unixLines(content))
	if s.OS.Dockerfile == "" {
		return s, nil
	}
	if err := s.readDockerfile(t); err != nil {
		return s, fmt.Errorf("%s: %w", s.File, err)
	}
	return s, nil
}

func unixLines(content []byte) []byte { return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")) }

// digestOf returns the SHA-256 of content, in hexadecimal digits.
func digestOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// sumLine returns the line of sha256sum(1) for a file. A name with a newline or a backslash is escaped, and the line then begins
// with a backslash, so that no name looks like several lines.
func sumLine(content []byte, name string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	begin := ""
	if escaped != name {
		begin = `\`
	}
	return fmt.Sprintf("%s%s  %s\n", begin, digestOf(content), escaped)
}

// contextList returns the lines for the files of a build: those of sha256sum(1), with the mode after the name, or "link" for a
// symbolic link, whose content is its target.
func contextList(files []image.File) (list string) {
	for _, f := range files {
		if f.Link != "" {
			list += sumLine([]byte(f.Link), f.Name+" link")
		} else {
			list += sumLine(f.Content, fmt.Sprintf("%s %o", f.Name, f.Mode))
		}
	}
	return list
}

// maxContext bounds the bytes that a Dockerfile may copy from the repository.
const maxContext = 256 << 20

// maxCompared bounds the bytes of paths times the bytes of patterns. With this product, matching takes about a minute.
const maxCompared = 20_000_000_000

// readDockerfile reads the Dockerfile and the files that it copies. The setup's digest is then the digest of a list in the form of
// sha256sum(1).
func (s *Setup) readDockerfile(t treeFiles) (err error) {
	if s.dockerfile, err = t.read(s.OS.Dockerfile); err != nil {
		return err
	}
	if s.dockerfile == nil {
		return recipe.Mistake(s.OS.Dockerfile, "the commit has no such file")
	}
	if err := recipe.CheckDockerfile(s.OS.Dockerfile, s.dockerfile); err != nil {
		return err
	}
	sources := recipe.SourcesOf(s.dockerfile)
	s.Names = named(s.OS, sources)
	ignored, err := t.ignored(s.OS)
	if err != nil {
		return err
	}
	left, compared := int64(maxContext), 0
	err = t.walk(s.OS.Context, func(name string, e gitops.TreeEntry) error {
		within := strings.TrimPrefix(strings.TrimPrefix(name, s.OS.Context), "/")
		if compared += len(within) * (sources.Length() + ignored.Length()); compared > maxCompared {
			return recipe.Mistake(s.OS.Dockerfile, "it and its .dockerignore name too many patterns for a context of so many files (%s)", gitops.Text(name))
		}
		if !sources.Has(within) || e.Mode == gitops.ModeGitlink {
			return nil
		}
		if out, err := ignored.Has(within); out || err != nil {
			return err
		}
		content, size, err := t.look.Blob(t.ctx, e.OID, left)
		if err != nil {
			return err
		}
		if left -= size; left < 0 {
			return recipe.Mistake(s.OS.Dockerfile, "it copies more than %d bytes", maxContext)
		}
		f := image.File{Name: within, Content: content, Mode: 0o644}
		switch e.Mode {
		case gitops.ModeExecutable:
			f.Mode = 0o755
		case gitops.ModeLink:
			f.Link, f.Content = string(content), nil
		}
		s.context = append(s.context, f)
		return nil
	})
	if err != nil {
		return err
	}
	list := fmt.Sprintf("%s  %s\n", s.Digest, s.File) + sumLine(s.dockerfile, s.OS.Dockerfile) + contextList(s.context)
	s.Digest = digestOf([]byte(list))
	return nil
}

// ignored reads the patterns of files that a Dockerfile cannot copy.
func (t treeFiles) ignored(o recipe.OS) (recipe.Ignored, error) {
	for _, name := range recipe.IgnoredFiles(o.Dockerfile, o.Context) {
		content, err := t.read(name)
		if err != nil {
			return recipe.Ignored{}, err
		}
		if content != nil {
			return recipe.ParseIgnored(name, content)
		}
	}
	return recipe.Ignored{}, nil
}

// named returns the paths from the top that a Dockerfile copies by name. If it copies all files, they are not listed, because the
// gate cannot hold every change.
func named(o recipe.OS, sources recipe.Sources) []string {
	names := []string{o.Dockerfile}
	if len(sources) > 0 {
		names = append(names, recipe.IgnoredFiles(o.Dockerfile, o.Context)...)
	}
	for _, source := range sources {
		if i := strings.IndexAny(source, "*?["); i >= 0 {
			source = path.Dir(source[:i] + "x")
		}
		if name := path.Join(o.Context, source); source != "." && name != "." && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// treeFiles reads the files of a commit's tree.
type treeFiles struct {
	ctx  context.Context
	look *quarantine.Inspector
	tree gitops.OID
}

// entry returns the tree entry at a path. An empty path is the top.
func (t treeFiles) entry(name string) (found gitops.TreeEntry, ok bool, err error) {
	found.OID, found.Mode = t.tree, gitops.ModeFolder
	if name == "" {
		return found, true, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !found.Folder() {
			return found, false, nil
		}
		entries, err := t.look.Tree(t.ctx, found.OID)
		if err != nil {
			return found, false, err
		}
		i := slices.IndexFunc(entries, func(e gitops.TreeEntry) bool { return e.Name == part })
		if i < 0 {
			return found, false, nil
		}
		found = entries[i]
	}
	return found, true, nil
}

// read reads a small file. It returns nil if the file is missing.
func (t treeFiles) read(name string) ([]byte, error) {
	e, ok, err := t.entry(name)
	if err != nil || !ok {
		return nil, err
	}
	if !e.Regular() {
		return nil, recipe.Mistake(name, "not a regular file")
	}
	content, _, err := t.look.Blob(t.ctx, e.OID, recipe.MaxSize+1)
	if err == nil && len(content) > recipe.MaxSize {
		err = recipe.Mistake(name, "more than %d bytes", recipe.MaxSize)
	}
	return append([]byte{}, content...), err
}

// walk visits the files below a folder. An empty folder is the top.
func (t treeFiles) walk(folder string, visit func(name string, e gitops.TreeEntry) error) error {
	at, ok, err := t.entry(folder)
	if err != nil || !ok || !at.Folder() {
		return err
	}
	return t.below(folder, at.OID, visit)
}

func (t treeFiles) below(folder string, tree gitops.OID, visit func(name string, e gitops.TreeEntry) error) error {
	entries, err := t.look.Tree(t.ctx, tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		name := path.Join(folder, e.Name)
		if e.Folder() {
			err = t.below(name, e.OID, visit)
		} else {
			err = visit(name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// FromHere returns the path of a file at the top of the work tree from the current folder, for pasting into a shell.
func (b Builder) FromHere(name string) string {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err == nil {
		if path, err := filepath.Rel(here, filepath.Join(b.Repo.Top, name)); err == nil {
			name = path
		}
	}
	return gitops.Pasteable(name)
}

// WarnUncommitted prints a message if the recipe in the work tree differs from the committed one.
func (b Builder) WarnUncommitted(s Setup) {
	name := filepath.Join(b.Repo.Top, recipe.FileName)
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return // opening a pipe would wait
	}
	if s.File != recipe.FileName {
		b.Report.Say("%s is not used because it is not committed", recipe.FileName)
		b.Report.Hint(fmt.Sprintf("git add %s && git commit -m %s", b.FromHere(recipe.FileName), recipe.FileName))
		return
	}
	if info.Size() <= recipe.MaxSize {
		content, err := os.ReadFile(name)
		if err != nil || digestOf(unixLines(content)) == s.plain { // git may have changed the ends of lines
			return
		}
	}
	b.Report.Say("the committed %s is used, without your uncommitted changes", recipe.FileName)
}
