package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

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
		say(a.message, "would build image %s", w.Name)
		return w.Name, nil
	}
	if has, err := containers.Reuse(ctx, w.Name); err != nil || has {
		return w.Name, err
	}
	say(a.message, "building image %s", w.Name)
	show := newSteps(a.message)
	w.Progress = show.step
	begun := time.Now()
	err = containers.BuildImage(ctx, w)
	show.end()
	var failed *docker.BuildError
	if errors.As(err, &failed) {
		for _, line := range failed.Output {
			fmt.Fprintf(a.message, "  %s\n", gitops.Escape(line))
		}
	}
	if err != nil {
		return "", err
	}
	say(a.message, "built image %s in %s", w.Name, time.Since(begun).Round(time.Second))
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
		say(a.message, "downloading image %s", gitops.Escape(ref))
		show := newSteps(a.message)
		err = containers.Pull(ctx, ref, show.step)
		show.end()
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

// steps shows how far a build is: on a terminal a bar for each step and the last line that it printed, elsewhere
// a line for each step.
type steps struct {
	to       io.Writer
	terminal bool
	last     docker.Step
	shown    time.Time
}

func newSteps(to io.Writer) *steps {
	return &steps{to: to, terminal: term.IsTerminal(int(os.Stderr.Fd()))}
}

// stepsEvery is how often the line of a step changes at most.
const stepsEvery = 100 * time.Millisecond

func (s *steps) step(now docker.Step) {
	begins := now.What != s.last.What || now.Number != s.last.Number
	if !s.terminal {
		if begins && now.Of > 0 {
			fmt.Fprintf(s.to, "airlock: step %d of %d: %s\n", now.Number, now.Of, gitops.Escape(short(now.What, 100)))
		}
		s.last = now
		return
	}
	if begins && s.last.What != "" {
		s.line(s.last, "done")
		fmt.Fprintln(s.to)
	}
	if begins || time.Since(s.shown) > stepsEvery {
		s.line(now, now.Said)
		s.shown = time.Now()
	}
	s.last = now
}

// line writes the line of a step over the one before.
func (s *steps) line(now docker.Step, said string) {
	const width = 20
	bar := ""
	if now.Of > 0 {
		filled := width * now.Number / now.Of
		bar = fmt.Sprintf("[%s%s] %d/%d ", strings.Repeat("#", filled), strings.Repeat(".", width-filled), now.Number, now.Of)
	}
	text := bar + gitops.Escape(short(now.What, 40))
	if said != "" {
		text += ": " + gitops.Escape(said)
	}
	fmt.Fprintf(s.to, "\r\x1b[K%s", short(text, int(terminalSize(int(os.Stderr.Fd())).Cols)-1))
}

// end ends the line of the last step.
func (s *steps) end() {
	if s.terminal && s.last.What != "" {
		fmt.Fprintln(s.to)
	}
}

// short cuts a text to a number of characters.
func short(text string, most int) string {
	runes := []rune(text)
	if most < 4 || len(runes) <= most {
		return text
	}
	return string(runes[:most-3]) + "..."
}
