package review

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/pushcheck"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/userhook"
	"github.com/git-airlock/git-airlock/promote/outgoing"
	"github.com/git-airlock/git-airlock/words"
)

// hook is the hook that the commands are about.
const hook = "pre-push"

func hooksCommand() *cli.Command {
	c := cmdline.Command(&cli.Command{
		Name: "hooks", Usage: "have git ask for reviews before a push",
		UsageText: "git airlock hooks install|print|remove [--pre-push]",
		Description: "Adds one line to your pre-push hook, or removes it. With airlock.review=push, the hook refuses to push commits of an\n" +
			"agent that nobody has reviewed.",
		Action: func(c *cli.Context) error { return ui.Usagef("hooks: install, print or remove is missing") },
	}, cmdline.Takes{})
	which := func() cli.Flag {
		return &cli.BoolFlag{Name: hook, Usage: "the hook pre-push, which is the only one so far"}
	}
	c.Subcommands = []*cli.Command{
		cmdline.Subcommand("hooks", "install [--pre-push]", "add the line to the hook, which is made if there is none", cmdline.Takes{}, installHook, which()),
		cmdline.Subcommand("hooks", "print [--pre-push]", "print the line, for a hook that you change by hand", cmdline.Takes{}, printHook, which()),
		cmdline.Subcommand("hooks", "remove [--pre-push]", "remove the line, so that the hook is as it was", cmdline.Takes{}, removeHook, which()),
		cmdline.Command(&cli.Command{Name: hook, Usage: "check a push; the line in the hook calls this", UsageText: "git airlock hooks " + hook + " [REMOTE [URL]]",
			Action: checkPush}, cmdline.Takes{Most: 2}),
	}
	return c
}

func printHook(c *cli.Context, _ *session.Session, _ []string) error {
	_, err := fmt.Fprintln(c.App.Writer, userhook.Line)
	return err
}

func installHook(c *cli.Context, s *session.Session, _ []string) error {
	place, err := userhook.Find(c.Context, s.Repo, hook)
	if err != nil {
		return err
	}
	changed, err := place.Install()
	if err != nil {
		return byHand(err, "add the line of git airlock hooks print after its first line", "git airlock hooks print")
	}
	sayChanged(s, changed, "added a line to", "would add a line to", "the line is already in", place)
	if s.Config.Has("core.hooksPath") {
		s.Report.Say("core.hooksPath names this hook; other repositories may use it, too, and it does nothing where airlock.review is not push")
	}
	if asks, err := pushcheck.Asks(s); err == nil && !asks {
		s.Report.Say("airlock.review is not push, so the hook lets everything pass")
		ui.Hint(c.App.ErrWriter, "git config airlock.review push")
	}
	return nil
}

func removeHook(c *cli.Context, s *session.Session, _ []string) error {
	place, err := userhook.Find(c.Context, s.Repo, hook)
	if err != nil {
		return err
	}
	changed, err := place.Remove()
	if err != nil {
		return byHand(err, "remove the line there if you have added it")
	}
	sayChanged(s, changed, "removed the line from", "would remove the line from", "there is no line in", place)
	return nil
}

func sayChanged(s *session.Session, changed bool, done, would, nothing string, place userhook.Place) {
	switch {
	case !changed:
		done = nothing
	case s.Dry:
		done = would
	}
	s.Report.Say("%s %s", done, gitops.Text(place.File))
}

// byHand returns the refusal for a hook that the user must change.
func byHand(err error, what string, next ...string) error {
	unsuitable, ok := errors.AsType[*userhook.Unsuitable](err)
	if !ok {
		return err
	}
	if unsuitable.Not && len(next) > 0 {
		what, next = `it can run git-airlock hooks `+hook+` "$@" with its own standard input, and fail if that fails`, []string{"git airlock hooks -h"}
	}
	if unsuitable.Next != "" {
		return &environment.Refusal{Text: err.Error(), Next: []string{unsuitable.Next}}
	}
	return &environment.Refusal{Text: err.Error() + ": " + what, Next: next}
}

// shownCommits bounds the number of commits that a refusal lists.
const shownCommits = 20

// checkPush refuses a push of commits that need a verdict. A hook of core.hooksPath also runs in bare repositories, which have
// no airlock.
func checkPush(c *cli.Context) error {
	s, err := cmdline.Open(c)
	if errors.Is(err, gitops.ErrBare) || errors.Is(err, gitops.ErrNoRepository) {
		return nil
	}
	if err != nil {
		return err
	}
	remote := ""
	if words := cmdline.Words(c); len(words) > 0 {
		remote = words[0]
	}
	waiting, err := pushcheck.Outgoing(c.Context, s, os.Stdin, remote)
	if err != nil || len(waiting) == 0 {
		return err
	}
	for _, x := range waiting[:min(len(waiting), shownCommits)] {
		perhaps := ""
		if x.Unsure() {
			perhaps = fmt.Sprintf(" (perhaps %.12s, rewritten)", x.Original)
		}
		s.Report.Say("%s: %.12s %s%s", reviewWord(x), x.ID, x.Subject, perhaps)
	}
	if more := len(waiting) - shownCommits; more > 0 {
		s.Report.Say("and %d more", more)
	}
	return &environment.Refusal{Text: fmt.Sprintf("%s of an agent in this push must be reviewed first", words.Count(len(waiting), "commit")), Next: afterPush(waiting)}
}

func afterPush(waiting []outgoing.Commit) []string {
	next := []string{"git airlock review -p"}
	approve, unseen := "git airlock approve", 0
	for _, x := range waiting {
		if x.Last().Word == "" || x.Unsure() {
			approve, unseen = approve+fmt.Sprintf(" %.12s", x.ID), unseen+1
		}
	}
	if unseen > shownCommits {
		approve = "git airlock approve --all"
	}
	if unseen > 0 {
		next = append(next, approve)
	}
	if slices.ContainsFunc(waiting, func(x outgoing.Commit) bool { return x.Last().Word != "" }) {
		next = append(next, "git revert COMMIT  # or: git airlock undo --revert")
	}
	return next
}

// reviewWord returns the state of a commit that was not approved.
func reviewWord(c outgoing.Commit) string {
	v := c.Last()
	if v.Word == "" {
		return "not reviewed"
	}
	return said[v.Word] + " by " + gitops.Text(v.By).String()
}
