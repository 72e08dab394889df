package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

func imageCommand(inside []string) *cli.Command {
	c := command(&cli.Command{
		Name: "image", Usage: "build, list and prune the container images of recipes",
		UsageText: "git airlock image build|list|prune",
		Description: "\"start\" builds the image that the committed " + recipe.FileName + " describes when it needs one, and only when\n" +
			"what goes into it has changed; \"image build\" does so beforehand. An image serves all airlocks that ask for the same.\n" +
			"\"prune\" removes those of this repository that are neither in use nor what is committed here asks for, with --all\n" +
			"those of others, too.",
		Action: func(c *cli.Context) error { return ui.Usagef("image: say build, list or prune") },
	}, inside, false)
	c.Subcommands = []*cli.Command{
		imageSubcommand(inside, "build", "build the image of the recipe that is checked out", nil, imageBuild),
		imageSubcommand(inside, "list [--json] [--all]", "list the images that were built", []cli.Flag{jsonFlag, allImagesFlag}, imageList),
		imageSubcommand(inside, "prune [--all]", "remove the images that nothing uses", []cli.Flag{allImagesFlag}, imagePrune),
	}
	return c
}

var allImagesFlag = &cli.BoolFlag{Name: "all", Usage: "also those that were built for other repositories"}

func imageSubcommand(inside []string, synopsis, usage string, flags []cli.Flag, act func(*session.Session, *cli.Context) error) *cli.Command {
	name, _, _ := strings.Cut(synopsis, " ")
	return command(&cli.Command{
		Name: name, Usage: usage, UsageText: "git airlock image " + synopsis, Flags: flags,
		Action: inRepository(func(c *cli.Context, s *session.Session) error { return act(s, c) }),
	}, inside, false)
}

func imageBuild(s *session.Session, c *cli.Context) error {
	setup, err := s.CommittedSetup(c.Context)
	if err != nil {
		return err
	}
	s.Environment().WarnUncommitted(setup)
	if setup.File == "" {
		return environment.Advise(fmt.Errorf("no %s is committed here", recipe.FileName), "git airlock init")
	}
	if err := session.Containers().Probe(c.Context); err != nil {
		return err
	}
	if err := s.Environment().Agree(c.Context, setup, true); err != nil {
		return err
	}
	name, err := s.Environment().Image(c.Context, setup)
	if err == nil && !s.Dry {
		fmt.Fprintln(c.App.Writer, name)
	}
	return err
}

// imagesOf are the images that a command is about.
func imagesOf(s *session.Session, c *cli.Context) ([]environment.ImageState, error) {
	setup, err := s.CommittedSetup(c.Context)
	if err != nil {
		setup = environment.Setup{} // without one, nothing asks for an image here
	}
	return s.Environment().Images(c.Context, setup, c.Bool(allImagesFlag.Name))
}

func imageList(s *session.Session, c *cli.Context) error {
	list, err := imagesOf(s, c)
	if err != nil {
		return err
	}
	if c.Bool(jsonFlag.Name) {
		return ui.PrintJSON(c.App.Writer, struct {
			Version int                      `json:"version"`
			Images  []environment.ImageState `json:"images"`
		}{ui.DocumentVersion, list})
	}
	return printImages(c.App.Writer, list)
}

func printImages(out io.Writer, list []environment.ImageState) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, i := range list {
		why := ""
		switch {
		case i.Current:
			why = "asked for here"
		case i.Used:
			why = "in use"
		}
		fmt.Fprintf(table, "%s\t%d MB\t%s\t%s\n", i.Name, i.Size/1e6, i.Created, why)
	}
	return table.Flush()
}

func imagePrune(s *session.Session, c *cli.Context) error {
	list, err := imagesOf(s, c)
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range list {
		switch {
		case i.Used, i.Current:
		case s.Dry:
			s.Report.Say("would remove image %s", i.Name)
		default:
			err := session.Containers().RemoveImage(c.Context, i.Name)
			failed = append(failed, err)
			if err == nil {
				s.Report.Say("removed image %s", i.Name)
			}
		}
	}
	return errors.Join(failed...)
}
