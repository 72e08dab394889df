package native

import (
	"context"
	"path/filepath"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/moments"
)

// timesName is a file beside the log of the launched command.
const timesName = logName + ".times"

// Times implements [prison.Timer].
func (backend) Times(_ context.Context, s prison.Spec) ([]prison.Moment, error) {
	return moments.Read(filepath.Join(s.Dir, timesName))
}
