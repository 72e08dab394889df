package runs

import (
	"context"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ticks"
)

// watchPause is how often the daemon looks for runs that are over.
const watchPause = time.Second

// Watch measures runs, and records them soon after they are over, until ctx ends. Without a run it reads a folder each second.
func (k Keeper) Watch(ctx context.Context) {
	s, said := sampler{}, ""
	for range ticks.Each(ctx.Done(), watchPause) {
		slots, err := k.open()
		if len(slots) > 0 && err == nil {
			s.tick(ctx, k, slots)
			err = k.FinishOver(ctx, false)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			k.Prisons.Report.Say("%s", gitops.Text(said))
		}
	}
}
