package prepare

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

func imageCommand() *cli.Command {
	c := cmdline.Command(&cli.Command{
		Name: "image", Usage: "build, list and prune the container images of recipes",
		UsageText: "git airlock image build|list|prune",
		Description: "\"start\" builds the image that the committed " + recipe.FileName + " describes, unless it was built before from the\n" +
			"same ingredients. \"image build\" does so in advance. Airlocks with equal recipes share an image. \"image prune\" removes the\n" +
			"images of this repository that are not in use and that the committed recipe does not describe. With --all, it also\n" +
			"removes those of other repositories.",
		Action: func(c *cli.Context) error {
			return ui.Usagef("image: no command; type git airlock image build, list or prune")
		},
	}, cmdline.Takes{})
	c.Subcommands = []*cli.Command{
		cmdline.Subcommand("image", "build", "build the image of the committed recipe", cmdline.Takes{}, imageBuild),
		cmdline.Subcommand("image", "list [--json] [--all]", "list the built images", cmdline.Takes{}, imageList, cmdline.JSONFlag, allImagesFlag),
		cmdline.Subcommand("image", "prune [--all]", "remove unused images", cmdline.Takes{}, imagePrune, allImagesFlag),
	}
	return c
}

var allImagesFlag = &cli.BoolFlag{Name: "all", Usage: "include images that were built for other repositories"}

func imageBuild(c *cli.Context, s *session.Session, _ []string) error {
	setup, err := s.CommittedSetup(c.Context)
	if err != nil {
		return err
	}
	s.Environment().WarnUncommitted(setup)
	if setup.File == "" {
		return environment.Advise(fmt.Errorf("no %s is committed here", recipe.FileName), "git airlock init")
	}
	if err := prisons.Containers().Probe(c.Context); err != nil {
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

func imagesOf(s *session.Session, c *cli.Context) ([]environment.ImageState, error) {
	setup, err := s.CommittedSetup(c.Context)
	if err != nil {
		setup = environment.Setup{} // without a setup, no image is needed here
	}
	return s.Environment().Images(c.Context, setup, c.Bool(allImagesFlag.Name))
}

func imageList(c *cli.Context, s *session.Session, _ []string) error {
	list, err := imagesOf(s, c)
	if err != nil {
		return err
	}
	if c.Bool(cmdline.JSONFlag.Name) {
		return ui.PrintJSON(c.App.Writer, map[string]any{"version": ui.DocumentVersion, "images": list})
	}
	return printImages(c.App.Writer, list)
}

func printImages(out io.Writer, list []environment.ImageState) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, i := range list {
		why := ""
		switch {
		case i.Current:
			why = "needed here"
		case i.Used:
			why = "in use"
		}
		fmt.Fprintf(table, "%s\t%d MB\t%s\t%s\n", i.Name, i.Size/1e6, i.Created, why)
	}
	return table.Flush()
}

func imagePrune(c *cli.Context, s *session.Session, _ []string) error {
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
			err := prisons.Containers().RemoveImage(c.Context, i.Name)
			failed = append(failed, err)
			if err == nil {
				s.Report.Say("removed image %s", i.Name)
			}
		}
	}
	return errors.Join(failed...)
}
