package lifecycle

import (
	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
)

var taskFlag = &cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "the `task` for the agent"}

// asked returns the agent that a command line names. The words after "--" are then the agent's arguments. Without an agent's name, a
// task is for the agent of the settings, and without a task asked returns the words after "--", which are a command.
func asked(c *cli.Context, s *session.Session) (*session.Agent, []string, error) {
	inside, words, task := cmdline.Inside(c), cmdline.Words(c), c.String(taskFlag.Name)
	var name string
	switch {
	case len(words) > 0:
		name = words[0]
	case c.IsSet(taskFlag.Name):
		if name = request.DefaultAgent(s); name == "" {
			return nil, nil, ui.Usagef("-p: for which agent? Name it before -p, or in the setting airlock.agent.default")
		}
	default:
		return nil, inside, nil
	}
	a, err := request.Agent(c, s, name)
	if err != nil {
		return nil, nil, err
	}
	a.Words = inside
	if c.IsSet(taskFlag.Name) {
		if task == "" {
			return nil, nil, ui.Usagef("-p: the task is empty")
		}
		a.Asks, a.Task = true, task
	}
	return a, nil, nil
}
