package lifecycle

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/request"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
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

// misplaced adds a hint to the error of a command that has failed, if the user seems to have meant something else by its words: an agent by
// its name, or an option of git airlock. Everything after "--" is the command's.
func misplaced(c *cli.Context, s *session.Session, argv []string, err error) error {
	status, _ := cmdline.ChildStatus(err)
	missing := errors.Is(err, prison.ErrNotFound)
	if len(argv) == 0 || status == 0 && !missing {
		return err
	}
	if missing && request.IsAgent(c.Context, s, argv[0]) {
		task := ""
		if c.Command.Name == "run" {
			task = " -p TASK"
		}
		return environment.Advise(err, "git airlock "+c.Command.Name+" "+argv[0]+task+"  # the agent, without \"--\"")
	}
	option := misplacedOption(c, argv)
	if option == "" {
		return err
	}
	hint := "git airlock " + c.Command.Name + " " + option + " ... -- " + gitops.Pasteable(argv[0]) + " ...  # options after \"--\" go to the command"
	if !missing {
		s.Report.Hint(hint)
		return err
	}
	return environment.Advise(err, hint)
}

// misplacedOption returns the first word after a command's name if it is a long option of visit or run, and otherwise an empty string.
func misplacedOption(c *cli.Context, argv []string) string {
	if len(argv) == 1 || !strings.HasPrefix(argv[1], "--") {
		return ""
	}
	option, _, _ := strings.Cut(argv[1], "=")
	name := option[len("--"):]
	if len(name) > 1 && slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
		return option
	}
	return ""
}
