package policy

import (
	"context"
	"errors"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// workspaceExposed looks for what would make git look into the agent's folder. The folder is ignored by the
// repository's exclude file, and a .gitignore file goes before that one: gitignore(5).
type workspaceExposed struct {
	folder  string
	scratch string // where git is asked
}

func (workspaceExposed) describe() Description {
	return documented("workspace-exposed", Hold, "an ignore or attribute file, or a path, that would make git look into the workspace")
}

func (w workspaceExposed) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if w.folder == "" {
		return nil
	}
	first, rest, deep := strings.Cut(c.Path, "/")
	switch {
	case plain(first) == plain(w.folder):
		r.at(c.Path, "the path leads into the workspace")
	case deep && rest != "":
	case means(first, ".gitignore"):
		return w.ignore(ctx, in, c, r)
	case means(first, ".gitattributes"):
		return w.attributes(ctx, in, c, r)
	}
	return nil
}

func (workspaceExposed) commit(context.Context, *inspection, *report) error { return nil }

// ignore asks git what the new and the old ignore file say about the folder, with and without regard to case, as
// core.ignoreCase may be.
func (w workspaceExposed) ignore(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == gitops.ModeLink {
		r.at(c.Path, "is a link, which git does not follow here and other programs do")
	}
	old, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole || len(content) == 0 {
		return err
	}
	for _, folded := range []bool{false, true} {
		line, exposed, err := gitops.ShowsFolder(ctx, w.scratch, w.folder, content, folded)
		if exposed {
			var before bool
			_, before, err = gitops.ShowsFolder(ctx, w.scratch, w.folder, old, folded)
			exposed = !before
		}
		switch {
		case errors.Is(err, gitops.ErrUnanswered):
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

// attributes looks for lines that are about the folder and nothing else.
func (w workspaceExposed) attributes(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	_, content, whole, err := in.rewritten(ctx, c, r)
	if err != nil || !whole {
		return err
	}
	_, id, _ := strings.Cut(w.folder, "-")
	for _, l := range parseAttributes(content, true) {
		if id != "" && l.pattern != "" && strings.Contains(same(l.pattern), same(id)) && w.isAbout(l.pattern) {
			r.at(c.Path, "line %d is about the workspace", l.number)
			return nil
		}
	}
	return nil
}

func (w workspaceExposed) isAbout(text string) bool {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "/"), "/")
	return gitops.AttributeMatches(strings.ToLower(text), strings.ToLower(w.folder))
}
