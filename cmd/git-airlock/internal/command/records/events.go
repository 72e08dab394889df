package records

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/record"
)

func eventsCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "events", Usage: "show what happened in the airlock",
		UsageText: "git airlock events [--since TIME] [--level LEVEL] [--follow] [--json]",
		Description: "Prints starts, stops, runs, exports, holds, landings, verdicts, undo and redo, sync, denials, limits, checkpoints, and\n" +
			"restarts of the daemon, oldest first. A hold that goes on for one more commit is printed again; it ends with hold-end.\n" +
			"The log has the newest two to four megabytes, and ends with the airlock. With --follow, events prints what happens from\n" +
			"now on, until ^C. With --follow and --json, each line is one event.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "since", Usage: "only events from this `time` on: 2h, or 2026-11-25T10:00:00Z"},
			&cli.StringFlag{Name: "level", Usage: "only events of this `level` or above: info, notice, warning, error"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "print new events until ^C"},
			cmdline.JSONFlag,
		},
		Action: cmdline.OnAirlock(showEvents),
	}, cmdline.Takes{})
}

func showEvents(c *cli.Context, s *session.Session, r airlock.Record) error {
	least := cmp.Or(record.Level(c.String("level")), record.Info)
	if !slices.Contains(record.Levels(), least) {
		return ui.Usagef("events: --level: want info, notice, warning or error")
	}
	from, err := moment(c.String("since"), s.Now())
	if err != nil {
		return err
	}
	keeper := cmdline.Runs(s, r)
	if c.Bool("follow") {
		return keeper.Follow(c.Context, func(e record.Event) error {
			switch {
			case !e.Level.AtLeast(least):
				return nil
			case c.Bool(cmdline.JSONFlag.Name):
				return json.NewEncoder(c.App.Writer).Encode(shownEvent(e))
			}
			_, err := fmt.Fprintln(c.App.Writer, eventLine(cmdline.Painted(s), e))
			return err
		})
	}
	all, err := keeper.Events(c.Context, from)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e record.Event) bool { return !e.Level.AtLeast(least) })
	var shown []record.Event
	for _, e := range all {
		shown = append(shown, shownEvent(e))
	}
	return cmdline.Print(c, s, true, map[string]any{"version": ui.DocumentVersion, "events": shown}, cmdline.Lines(all, eventLine))
}

// moment reads a time, or a duration before now. An empty text is the beginning of time.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, ui.Usagef("events: --since: %q is not a duration such as 2h, or a time such as 2026-11-25T10:00:00Z", gitops.Text(text))
	}
	return at, nil
}

// shownEvent returns an event whose texts are escaped.
func shownEvent(e record.Event) record.Event {
	e.Text = gitops.Text(e.Text).String()
	data := map[string]string{}
	for key, value := range e.Data {
		data[key] = gitops.Text(value).String()
	}
	e.Data = data
	return e
}

func eventLine(p ui.Paint, e record.Event) string {
	level := fmt.Sprintf("%-7s", e.Level)
	if e.Level.AtLeast(record.Warning) {
		level = p.Red(level)
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s  %-10s  %s", e.Time.Local().Format(time.DateTime), level, e.Kind, gitops.Text(e.Text)), " ")
}
