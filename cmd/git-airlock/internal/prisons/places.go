package prisons

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/prison"
)

// Places lists the agent's other worktrees and repositories. The files of a worktree in the agent's home are in another prison than the
// inner repository, because git of the exporter must not read the configuration in the home. If the home cannot be opened, these worktrees
// are unread.
func (x exporter) Places(ctx context.Context) ([]inner.Place, error) {
	places, err := x.Workspace.Places(ctx)
	var home prison.Prison
	var homeErr error
	for i := range places {
		below, ok := strings.CutPrefix(places[i].Path, x.homeDir+"/")
		if !ok || err != nil || places[i].Unread { // the index of an unread one is unknown
			continue
		}
		if home == nil && homeErr == nil {
			if home, homeErr = x.home(ctx); homeErr == nil {
				defer home.Close()
			}
		}
		if homeErr != nil {
			places[i].Unread = !errors.Is(homeErr, prison.ErrNoHome)
			continue
		}
		files := WorkspaceIn(home)
		files.Scratch = "/tmp"
		// The home is the whole workspace of this prison, or one folder of it.
		at := []string{path.Join(prison.Workspace, below), path.Join(prison.Workspace, path.Base(x.homeDir), below)}
		places[i].Unread = x.CountElsewhere(ctx, &places[i], files, at...) != nil
	}
	return places, err
}
