package checking

import (
	"context"
	"io"
	"log"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/prison/watch"
	"github.com/git-airlock/git-airlock/promote/policy"
)

// killed is the exit status of a check that used too much space and was ended: the status that a shell reports for SIGKILL.
const killed = 128 + 9

// bounded returns a context that ends when a check has nearly filled a disk, or when its workspace is larger than
// airlock.maxWorkspace allows. full ends the guard and returns the reason, or an empty text if the check did not use too much space.
func (j job) bounded(ctx context.Context, box prisons.Check) (bounded context.Context, full func() string, err error) {
	limit, err := policy.ReadSize(j.Config.With(j.record.Settings), "airlock.maxWorkspace", 20<<30)
	if err != nil {
		return ctx, nil, err
	}
	bounded, cancel := context.WithCancel(ctx)
	guard := watch.New(watch.Prison{
		Workspace: box.Workspace,
		Others:    []watch.Folder{{Path: box.Quarantine, Of: "the repository"}},
		Measure:   box.Usage,
		Exported:  func() int64 { return 0 },
		Runs:      func(context.Context) bool { return false }, // nothing starts a check again
		Halt: func(context.Context) error {
			cancel()
			return nil
		},
		Close: func(context.Context) (bool, error) { return false, nil }, // nobody else can reach the folder above
	}, log.New(io.Discard, "", 0))
	guard.Allow(limit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		guard.Run(bounded)
	}()
	return bounded, func() string {
		cancel()
		<-ended
		if why := guard.Full(); why != nil {
			return why.Message
		}
		return ""
	}, nil
}
