package policy

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
)

// recipePath is where the recipe of a repository's environment lies, and devcontainerPath where lies what stands in for
// a missing one.
const (
	recipePath       = "coding-environment.toml"
	devcontainerPath = ".devcontainer/devcontainer.json"
)

// recipe looks for changes of what the next airlock would be built from.
type recipe struct {
	changesOnly
	paths []string // as file systems see them
}

func newRecipe(f Facts) recipe {
	r := recipe{paths: []string{recipePath, devcontainerPath}}
	for _, p := range f.Recipe {
		r.paths = append(r.paths, same(p))
	}
	return r
}

func (recipe) describe() Description {
	return documented("recipe", Hold, "a change of "+recipePath+" or of what it names")
}

func (rule recipe) change(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	path := same(c.Path)
	for _, p := range rule.paths {
		// A file where a folder above was counts as well.
		if below(path, p) || below(p, path) {
			r.at(c.Path, "the environment is built from it")
			return nil
		}
	}
	return nil
}
