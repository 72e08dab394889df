package checkpoints

import (
	"context"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints/resident"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
)

const (
	// automaticTime bounds an automatic checkpoint, for which a command waits.
	automaticTime = 30 * time.Second
	// launchedPoll is how often the daemon looks whether the launched command has ended.
	launchedPoll = time.Second
	// after begins the text of a checkpoint at the end of something, for which all files are looked at.
	after = "after"
	// longestCommand bounds the part of a command line in the text of a checkpoint.
	longestCommand = 80
)

// automatic reads airlock.checkpoint.
func (k Keeper) automatic() (bool, error) {
	const key = "airlock.checkpoint"
	switch value := k.Prisons.Config.With(k.Record.Settings).String(key, "runs"); value {
	case "runs", "off":
		return value == "runs", nil
	default:
		return false, &promote.SettingError{Key: key, Value: value, Want: "runs or off"}
	}
}

// Automatic makes a checkpoint before or after something, unless the setting turns that off, or the workspace is as the newest
// checkpoint has it. It reports a failure, but does not fail, since a checkpoint must not keep anybody from working.
func (k Keeper) Automatic(ctx context.Context, when string, argv []string) {
	wanted, err := k.automatic()
	if err == nil && !wanted {
		return
	}
	message := when
	if command := strings.Join(argv, " "); command != "" {
		message += " " + command[:min(len(command), longestCommand)]
	}
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, automaticTime)
		defer cancel()
		_, err = k.take(bounded, resident.Request{Message: []byte(message), OnlyNew: true, Whole: when == after})
	}
	if err != nil && ctx.Err() == nil {
		k.Prisons.Report.Say("no checkpoint %s: %s", gitops.Text(message).String(), gitops.Text(err.Error()).String())
	}
}

// Around makes checkpoints before and after a run of a command.
func (k Keeper) Around(ctx context.Context, argv []string, run func() error) error {
	k.Automatic(ctx, "before", argv)
	defer k.Automatic(context.WithoutCancel(ctx), after, argv)
	return run()
}

// AfterLaunched makes a checkpoint when the launched command has ended, or has ended before, until ctx ends.
func (k Keeper) AfterLaunched(ctx context.Context) {
	tick := time.NewTicker(launchedPoll)
	defer tick.Stop()
	for done := false; ; {
		l, err := k.Prisons.Launched(ctx, k.Record)
		if err == nil && l != nil {
			if l.Exited && !done {
				k.Automatic(ctx, after, l.Argv)
			}
			done = l.Exited
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
