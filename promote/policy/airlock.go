package policy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/policy/attribute"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// workspaceExposed finds files that would make git enter the agent's folder. The repository's exclude file ignores
// that folder, but a .gitignore file takes precedence: gitignore(5).
type workspaceExposed struct {
	folder  string
	scratch string // a folder for git's temporary files
}

func (w workspaceExposed) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if w.folder == "" {
		return nil
	}
	first, rest, deep := strings.Cut(c.Path, "/")
	switch {
	case pathname.Plain(first) == pathname.Plain(w.folder):
		r.at(c.Path, "the path leads into the workspace")
	case deep && rest != "":
	case pathname.Means(first, ".gitignore"):
		return w.ignore(ctx, in, c, r)
	case pathname.Means(first, ".gitattributes"):
		return w.attributes(ctx, in, c, r)
	}
	return nil
}

// reads reports whether the rule checks the content of a file.
func (w workspaceExposed) reads(path string) bool {
	return w.folder != "" && (pathname.Means(path, ".gitignore") || pathname.Means(path, ".gitattributes"))
}

// ignore lets git evaluate the new and the old ignore file for the folder, with and without case, because
// core.ignoreCase may be set or not.
func (w workspaceExposed) ignore(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == gitops.ModeLink {
		r.at(c.Path, "is a link, which git does not follow here and other programs do")
	}
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole || len(content) == 0 {
		return err
	}
	for _, folded := range []bool{false, true} {
		line, exposed, err := ignore.ShowsFolder(ctx, w.scratch, w.folder, content, folded)
		if exposed {
			var before bool
			_, before, err = ignore.ShowsFolder(ctx, w.scratch, w.folder, old, folded)
			exposed = !before
		}
		switch {
		case errors.Is(err, ignore.ErrUnanswered):
			r.at(c.Path, "%s: your own git might hang on it", err)
			return nil
		case err != nil:
			return err
		case exposed:
			r.at(c.Path, "line %d makes git look into the workspace", line)
			return nil
		}
	}
	return nil
}

// attributes finds lines about the workspace's folder.
func (w workspaceExposed) attributes(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	_, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return err
	}
	_, id, _ := strings.Cut(w.folder, "-")
	for _, l := range attribute.Parse(content, true) {
		if id != "" && l.Pattern != "" && strings.Contains(pathname.Same(l.Pattern), pathname.Same(id)) && w.isAbout(l.Pattern) {
			r.at(c.Path, "line %d is about the workspace", l.Number)
			return nil
		}
	}
	return nil
}

func (w workspaceExposed) isAbout(text string) bool {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "/"), "/")
	return ignore.AttributeMatches(strings.ToLower(text), strings.ToLower(w.folder))
}

// recipePath is the path of a repository's recipe. devcontainerPath is the path of the file that replaces a missing
// recipe.
const (
	recipePath       = "coding-environment.toml"
	devcontainerPath = ".devcontainer/devcontainer.json"
)

// recipe finds changes of the files from which the next airlock would be built.
type recipe struct{ paths []string } // in the form of [pathname.Same]

func newRecipe(f Facts) recipe {
	r := recipe{paths: []string{recipePath, devcontainerPath}}
	for _, p := range f.Recipe {
		r.paths = append(r.paths, pathname.Same(p))
	}
	return r
}

func (rule recipe) change(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	if rule.reads(c.Path) {
		r.at(c.Path, "the environment is built from it")
	}
	return nil
}

func (rule recipe) reads(path string) bool {
	path = pathname.Same(path)
	// A file that replaces a folder above counts as well.
	return slices.ContainsFunc(rule.paths, func(p string) bool { return pathname.Below(path, p) || pathname.Below(p, path) })
}

// ghostLeak finds the agent's invented author in messages, which land unchanged.
type ghostLeak struct{ names []string }

func newGhostLeak(g identity.Ghost) ghostLeak {
	var l ghostLeak
	for _, name := range []string{g.Name, g.Mail} {
		if name != "" {
			l.names = append(l.names, strings.ToLower(name))
		}
	}
	if g.Name != "" {
		// The address that git derives from login and host if none is configured.
		l.names = append(l.names, g.Login()+"@"+g.Hostname())
	}
	return l
}

func (l ghostLeak) commit(_ context.Context, in *inspection, r *report) error {
	message := bytes.ToLower(in.Message)
	for _, name := range l.names {
		if bytes.Contains(message, []byte(name)) {
			r.at("", "the message names %s", name)
		}
	}
	return nil
}
