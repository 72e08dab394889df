package checkpoints

import (
	"context"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints/resident"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ticks"
	"github.com/git-airlock/git-airlock/prison/passed"
	"github.com/git-airlock/git-airlock/promote/policy/secrets"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// automaticTime bounds an automatic checkpoint, for which a command waits.
	automaticTime = 30 * time.Second
	// launchedPoll is how often the daemon looks whether the launched command has ended.
	launchedPoll = time.Second
	// after begins the text of a checkpoint at the end of a command. Such a checkpoint looks at all files.
	after = "after"
	// longestCommand bounds the part of a command line in the text of a checkpoint.
	longestCommand = 80
)

// modes are the values of airlock.checkpoint: when checkpoints are made without a request.
const (
	modeRuns     = "runs"
	modeCommands = "commands"
	modeOff      = "off"
)

// Mode reads airlock.checkpoint.
func Mode(c gitops.Config) (string, error) {
	const key = "airlock.checkpoint"
	switch value := c.String(key, modeRuns); value {
	case modeRuns, modeCommands, modeOff:
		return value, nil
	default:
		return "", &gitops.SettingError{Key: key, Value: value, Want: "runs, commands or off"}
	}
}

// Automatic makes a checkpoint before or after a command. It makes none if the setting turns that off, or if the newest checkpoint has
// the same state. It reports a failure but returns no error, since a checkpoint must not keep anybody from working. It does not store
// secrets in argv. The result has the number of the checkpoint with the present state, or the reason why there is none.
func (k Keeper) Automatic(ctx context.Context, when string, argv []string) (now record.CheckpointRange) {
	mode, err := Mode(k.config())
	if mode == modeOff {
		return record.CheckpointRange{Unmade: "airlock.checkpoint is off"}
	}
	var values passed.Values
	if err == nil {
		values, err = k.Prisons.PassedValues(k.Record)
	}
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, automaticTime)
		defer cancel()
		q := resident.Request{Message: []byte(when), Words: resident.Bytes(values.Words(argv)), OnlyNew: true, Whole: when == after}
		t, takeErr := k.take(bounded, q)
		now.Before, err = t.Number, takeErr
	}
	if err == nil {
		return now
	}
	if ctx.Err() == nil {
		k.Prisons.Report.Say("no checkpoint %s: %s", gitops.Text(text(when, argv)), gitops.Text(err.Error()))
	}
	return record.CheckpointRange{Unmade: err.Error()}
}

// textOf returns the text of the checkpoint for a request. Only the process that makes the checkpoint computes it, since reading the rules
// about secrets takes longer than a checkpoint.
func textOf(q resident.Request) string {
	return text(string(q.Message), resident.Texts(q.Words))
}

// text returns the time of a checkpoint and the beginning of a command line, without the secrets in it.
func text(when string, argv []string) string {
	command := strings.Join(secrets.Default().Mask(argv), " ")
	if command == "" {
		return when
	}
	return when + " " + words.Clip(command, longestCommand)
}

// Before makes a checkpoint before a run of a command.
func (k Keeper) Before(ctx context.Context, argv []string) record.CheckpointRange {
	return k.Automatic(ctx, "before", argv)
}

// Around makes checkpoints before and after a run of a command.
func (k Keeper) Around(ctx context.Context, argv []string, run func(before record.CheckpointRange) error) error {
	before := k.Before(ctx, argv)
	defer k.Automatic(context.WithoutCancel(ctx), after, argv)
	return run(before)
}

// AfterCommand makes a checkpoint after a command that the user ran in the prison, if airlock.checkpoint is "commands".
func (k Keeper) AfterCommand(ctx context.Context, argv []string, run func() error) error {
	ran := run()
	if mode, err := Mode(k.config()); err != nil || mode == modeCommands {
		k.Automatic(context.WithoutCancel(ctx), "after visit", argv)
	}
	return ran
}

// AfterLaunched makes a checkpoint whenever a launched command has ended, until ctx ends. If one had ended before the call, it makes a
// checkpoint at once.
func (k Keeper) AfterLaunched(ctx context.Context) {
	done := false
	for range ticks.NowAndEach(ctx.Done(), launchedPoll) {
		l, err := k.Prisons.Launched(ctx, k.Record)
		if err == nil && l != nil {
			if l.Exited && !done {
				k.Automatic(ctx, after, l.Argv)
			}
			done = l.Exited
		}
	}
}
