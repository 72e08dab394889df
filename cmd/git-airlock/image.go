package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/prison/docker"
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
		imageSubcommand(inside, "build", "build the image of the recipe that is checked out", nil, (*app).imageBuild),
		imageSubcommand(inside, "list [--json] [--all]", "list the images that were built", []cli.Flag{jsonFlag, allImagesFlag}, (*app).imageList),
		imageSubcommand(inside, "prune [--all]", "remove the images that nothing uses", []cli.Flag{allImagesFlag}, (*app).imagePrune),
	}
	return c
}

var allImagesFlag = &cli.BoolFlag{Name: "all", Usage: "also those that were built for other repositories"}

func imageSubcommand(inside []string, synopsis, usage string, flags []cli.Flag, act func(*app, *cli.Context) error) *cli.Command {
	name, _, _ := strings.Cut(synopsis, " ")
	return command(&cli.Command{
		Name: name, Usage: usage, UsageText: "git airlock image " + synopsis, Flags: flags,
		Action: inRepository(func(c *cli.Context, a *app) error { return act(a, c) }),
	}, inside, false)
}

// committedSetup is the setup of what is checked out.
func (a *app) committedSetup(ctx context.Context) (commitSetup, error) {
	head, err := a.base(ctx)
	if err != nil {
		return commitSetup{}, err
	}
	return a.readSetup(ctx, head.Tree)
}

func (a *app) imageBuild(c *cli.Context) error {
	s, err := a.committedSetup(c.Context)
	if err != nil {
		return err
	}
	a.uncommitted(s)
	if s.file == "" {
		return &hinted{fmt.Errorf("no %s is committed here", recipe.FileName), []string{"git airlock init"}}
	}
	if err := containers.Probe(c.Context); err != nil {
		return err
	}
	if err := a.agreed(c.Context, s, true); err != nil {
		return err
	}
	name, err := a.imageOf(c.Context, s)
	if err == nil && !a.dry {
		fmt.Fprintln(a.out, name)
	}
	return err
}

// imageState is version 1 of an image in what image list --json prints.
type imageState struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Size    int64  `json:"size"`
	Created string `json:"created"`
	Used    bool   `json:"used"`    // a container is made of it
	Current bool   `json:"current"` // what is committed here asks for it
}

// images lists what was built, and which of it the recipe here asks for.
func (a *app) images(ctx context.Context, all bool) ([]imageState, error) {
	built, err := containers.Images(ctx)
	if err != nil {
		return nil, err
	}
	current := a.currentImages(ctx)
	list := []imageState{}
	for _, i := range built {
		if !all && !strings.HasPrefix(i.Name, docker.BuiltImage(a.imageOwner(), "")) {
			continue
		}
		list = append(list, imageState{i.Name, i.ID, i.Size, i.Created.UTC().Format(time.RFC3339), i.Used, current[i.Name]})
	}
	return list, nil
}

// currentImages are those that the recipe here asks for, as far as that can be told.
func (a *app) currentImages(ctx context.Context) map[string]bool {
	current := map[string]bool{}
	s, err := a.committedSetup(ctx)
	if err != nil || s.file == "" {
		return current
	}
	base := ""
	if s.OS.Dockerfile != "" {
		w, err := a.plannedBuild(ctx, docker.Build{Dockerfile: s.dockerfile, Files: s.context})
		if err != nil {
			return current
		}
		base = w.Name
		current[base] = true
	}
	if w, err := a.plannedBuild(ctx, docker.Build{Dockerfile: s.Dockerfile(base)}); err == nil {
		current[w.Name] = true
	}
	return current
}

func (a *app) imageList(c *cli.Context) error {
	list, err := a.images(c.Context, c.Bool(allImagesFlag.Name))
	if err != nil {
		return err
	}
	if c.Bool(jsonFlag.Name) {
		return ui.PrintJSON(a.out, struct {
			Version int          `json:"version"`
			Images  []imageState `json:"images"`
		}{ui.DocumentVersion, list})
	}
	return printImages(a.out, list)
}

func printImages(out io.Writer, list []imageState) error {
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

func (a *app) imagePrune(c *cli.Context) error {
	list, err := a.images(c.Context, c.Bool(allImagesFlag.Name))
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range list {
		switch {
		case i.Used, i.Current:
		case a.dry:
			ui.Say(a.message, "would remove image %s", i.Name)
		default:
			err := containers.RemoveImage(c.Context, i.Name)
			failed = append(failed, err)
			if err == nil {
				ui.Say(a.message, "removed image %s", i.Name)
			}
		}
	}
	return errors.Join(failed...)
}
