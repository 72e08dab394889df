package native

import (
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison"
)

const homeName = "home" // in Spec.Dir

// homeDir is where a prison keeps its agent's home on the host, the only folder beside the workspace that is there.
func homeDir(s prison.Spec) string { return filepath.Join(s.Dir, homeName) }
