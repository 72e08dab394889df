package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

// imageOf is the image of a setup, which is built if nothing that goes into it was built into one before.
func (a *app) imageOf(ctx context.Context, s commitSetup) (name string, err error) {
	base := ""
	if s.OS.Dockerfile != "" {
		if base, err = a.built(ctx, docker.Build{Dockerfile: s.dockerfile, Files: s.context}); err != nil || !s.NeedsBuild() {
			return base, err
		}
	}
	return a.built(ctx, docker.Build{Dockerfile: s.Dockerfile(base)})
}

// plannedBuild completes a build by the network it uses and a digest of what goes in: the steps, the files, the images
// it starts from as they are on this machine.
func (a *app) plannedBuild(ctx context.Context, w docker.Build) (docker.Build, error) {
	w.Network = a.config.String("airlock.buildNetwork", "")
	list := digestOf(w.Dockerfile) + "\n"
	for _, ref := range recipe.BasesOf(w.Dockerfile) {
		id, err := containers.ImageID(ctx, ref)
		if err != nil {
			return w, err
		}
		list += fmt.Sprintf("%s %s\n", ref, id)
	}
	for _, f := range w.Files {
		list += fmt.Sprintf("%s %q %q %o\n", digestOf(f.Content), f.Name, f.Link, f.Mode)
	}
	w.Name = docker.BuiltImage(a.imageOwner(), digestOf([]byte(list))[:24])
	return w, nil
}

// imageOwner stands for this repository in the names of images.
func (a *app) imageOwner() string { return digestOf([]byte(a.repo.CommonDir))[:8] }

// built is the image of a build.
func (a *app) built(ctx context.Context, w docker.Build) (name string, err error) {
	if err := a.fetchBases(ctx, w.Dockerfile); err != nil {
		return "", err
	}
	if w, err = a.plannedBuild(ctx, w); err != nil {
		return "", err
	}
	if id, err := containers.ImageID(ctx, w.Name); err != nil || id != "" {
		return w.Name, err
	}
	if a.dry {
		ui.Say(a.message, "would build image %s", w.Name)
		return w.Name, nil
	}
	if has, err := containers.Reuse(ctx, w.Name); err != nil || has {
		return w.Name, err
	}
	ui.Say(a.message, "building image %s", w.Name)
	show := ui.NewSteps(a.message)
	w.Progress = stepped(show)
	begun := time.Now()
	err = containers.BuildImage(ctx, w)
	show.End()
	var failed *docker.BuildError
	if errors.As(err, &failed) {
		for _, line := range failed.Output {
			fmt.Fprintf(a.message, "  %s\n", gitops.Escape(line))
		}
	}
	if err != nil {
		return "", err
	}
	ui.Say(a.message, "built image %s in %s", w.Name, time.Since(begun).Round(time.Second))
	return w.Name, nil
}

// fetchBases downloads the images that a build starts from and that are not here.
func (a *app) fetchBases(ctx context.Context, dockerfile []byte) error {
	for _, ref := range recipe.BasesOf(dockerfile) {
		id, err := containers.ImageID(ctx, ref)
		if err != nil {
			return err
		}
		if id != "" || a.dry {
			continue
		}
		ui.Say(a.message, "downloading image %s", gitops.Escape(ref))
		show := ui.NewSteps(a.message)
		err = containers.Pull(ctx, ref, stepped(show))
		show.End()
		if err != nil {
			return noBase(ref, err)
		}
	}
	return nil
}

// noBase says what can be done about an image that cannot be had.
func noBase(ref string, err error) error {
	var lacking *prison.Unavailable
	if errors.As(err, &lacking) && len(lacking.Mend) == 0 {
		return &hinted{err, []string{"docker pull " + gitops.Pasteable(ref) + "  # where it takes a login",
			"git airlock start --backend native  # with this machine's own tools"}}
	}
	return err
}

// stepped shows the steps of an engine.
func stepped(show *ui.Steps) func(docker.Step) {
	return func(s docker.Step) { show.Step(ui.Step{What: s.What, Number: s.Number, Of: s.Of, Said: s.Said}) }
}
