package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/recipe"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// containers is the backend that makes prisons out of containers, with one connection for all who use it.
var containers = docker.New(docker.Options{})

// backends are all there are, the one first that "auto" prefers when no image is asked for.
func backends() []prison.Backend { return []prison.Backend{native.New(), containers} }

// backend returns the backend of an airlock.
func (a *app) backend(r airlock.Record) prison.Backend {
	for _, b := range backends() {
		if b.Name() == r.Backend {
			return b
		}
	}
	return native.New()
}

// choose chooses the backend and makes sure that it works here.
func (a *app) choose(ctx context.Context, r *airlock.Record, q startRequest, s commitSetup) error {
	switch {
	case q.backend == containers.Name():
		return a.chooseContainer(ctx, r, q, s, "asked for")
	case q.backend == "native" && q.imageOption:
		return ui.Usagef("the native backend has no images and runtimes; leave --backend out, or say --backend docker")
	case q.backend == "native":
		return chooseNative(ctx, r, "asked for")
	case q.image != "", s.WantsTools():
		err := containers.Probe(ctx)
		if err == nil {
			return a.chooseContainer(ctx, r, q, s, wishFor(q, s)+" and an engine answers")
		}
		return a.withoutEngine(ctx, r, q, s, err)
	case q.imageOption: // a runtime only
		return errNoImage
	}
	err := chooseNative(ctx, r, "no image was asked for and namespaces work here")
	if err == nil && q.runtime != "" {
		ui.Say(a.message, "runtime %s is not used: no image was asked for, and native prisons share the kernel of this machine", gitops.Escape(q.runtime))
	}
	var unavailable *prison.Unavailable
	if errors.As(err, &unavailable) && containers.Probe(ctx) == nil {
		if s.file != "" {
			return a.chooseContainer(ctx, r, q, s, fmt.Sprintf("%s, and an engine answers", err))
		}
		return &hinted{ui.Usagef("%s; a container engine answers, but there is no image to use", err), imageHints}
	}
	return err
}

// wishFor says who asked for a container.
func wishFor(q startRequest, s commitSetup) string {
	if q.image == "" {
		return s.file + " asks for tools"
	}
	return "an image was asked for"
}

// withoutEngine takes the native backend for somebody who asked for an image and has no engine, and says so, unless they
// asked for a runtime, too. What is wanted of tools may be there all the same.
func (a *app) withoutEngine(ctx context.Context, r *airlock.Record, q startRequest, s commitSetup, lacking error) error {
	if q.runtime != "" { // another kernel was asked for, which no native prison has
		return lacking
	}
	if err := chooseNative(ctx, r, fmt.Sprintf("%s, but %s", wishFor(q, s), lacking)); err != nil {
		return errors.Join(lacking, err)
	}
	if q.image == "" {
		return nil
	}
	ui.Say(a.message, "image %s is not used: %s", gitops.Escape(q.image), gitops.Escape(lacking.Error()))
	return nil
}

var (
	imageHints = []string{"git airlock start --image <image>  # one with git and a shell", "git config airlock.image <image>"}
	errNoImage = &hinted{ui.Usagef("the docker backend wants an image to make containers of, or a %s to build one", recipe.FileName), imageHints}
)

func chooseNative(ctx context.Context, r *airlock.Record, reason string) error {
	b := native.New()
	r.Backend, r.Reason, r.Image, r.Runtime = b.Name(), reason, "", ""
	return b.Probe(ctx)
}

// chooseContainer takes the image that was asked for, or the one that the setup describes.
func (a *app) chooseContainer(ctx context.Context, r *airlock.Record, q startRequest, s commitSetup, reason string) (err error) {
	r.Backend, r.Reason, r.Image, r.Runtime, r.Built = containers.Name(), reason, q.image, q.runtime, false
	if q.image == "" && s.file == "" {
		return errNoImage
	}
	if err := containers.Probe(ctx); err != nil {
		return err
	}
	if q.image == "" {
		r.Built = true
		if err := a.agreed(ctx, s, true); err != nil {
			return err
		}
		// Nobody should wait for an image that is for nothing.
		if err := q.choice.secrets.verdict(a.message); err != nil {
			return err
		}
		if r.Image, err = a.imageOf(ctx, s); err != nil || a.dry {
			return err
		}
	}
	return containers.CheckImage(ctx, r.Image)
}

// keep makes a request of somebody who starts an airlock again one for the backend that it has: its writable files
// are there. The reason stays, too.
func (a *app) keep(ctx context.Context, r *airlock.Record, q startRequest, s commitSetup) error {
	if q.backendOption && q.backend != "auto" && q.backend != r.Backend {
		return &refusal{fmt.Sprintf("this airlock has the backend %s", r.Backend), []string{"git airlock start", "git airlock clear"}}
	}
	if r.Backend == "native" && q.imageOption {
		return &refusal{"this airlock has no image", []string{"git airlock start", "git airlock clear"}}
	}
	if !q.imageOption {
		q.image, q.runtime = "", r.Runtime
	}
	anew := r.Built && q.image == "" && s.file != ""
	if r.Backend == containers.Name() {
		if done, err := a.keepEngine(ctx, *r, anew || q.imageOption); done || err != nil {
			return err
		}
	}
	switch {
	case anew:
		return a.chooseContainer(ctx, r, q, s, r.Reason)
	case !q.imageOption:
		return a.backend(*r).Probe(ctx)
	}
	q.image = cmp.Or(q.image, r.Image)
	return a.chooseContainer(ctx, r, q, s, r.Reason)
}

// keepEngine stays with the engine that an airlock's container is on, also when the user's settings name another one since. An image
// would be looked for there: that is refused.
func (a *app) keepEngine(ctx context.Context, r airlock.Record, image bool) (done bool, err error) {
	spec, err := a.spec(r)
	if err != nil {
		return false, err
	}
	its, now, err := containers.Host(spec.Dir)
	switch {
	case err != nil || its == now:
		return false, err
	case !image:
		return true, containers.ProbeOf(ctx, spec.Dir)
	}
	return false, &refusal{fmt.Sprintf("the container of this airlock is on the engine at %s, and the one in use now is at %s", its, now),
		[]string{"DOCKER_HOST=" + gitops.ShellQuote(its) + " git airlock start", "git airlock clear"}}
}

// looksNatively tells whether the exporter may have a native prison, which is opened in a tenth of a container's time and needs no
// engine. Git obeys the agent there: one whose calls end in a kernel that is not this machine's must not get at this one so.
func looksNatively(r airlock.Record) bool {
	return r.Backend == "native" || !docker.OwnKernel(cmp.Or(r.Runtime, r.Isolation.Runtime))
}

// lookSpec describes the exporter's prisons.
func (a *app) lookSpec(r airlock.Record) (prison.Spec, error) {
	spec, err := a.spec(r)
	if err != nil {
		return spec, err
	}
	spec.ReadOnly, spec.Env, spec.Network = true, nil, prison.NetworkNone
	spec.Limits.Memory, err = promote.ReadSize(a.config.With(r.Settings), "airlock.limit.memory", gitops.DefaultLimits.Memory)
	return spec, err
}

// openLook opens a prison for the exporter.
func (a *app) openLook(ctx context.Context, r airlock.Record, spec prison.Spec) (prison.Prison, error) {
	own := a.backend(r)
	if !looksNatively(r) {
		return own.Open(ctx, spec)
	}
	plain := spec
	plain.Image, plain.Runtime = "", ""
	box, err := native.New().Open(ctx, plain)
	if err == nil || own.Name() == "native" || ctx.Err() != nil {
		return box, err
	}
	inside, ownErr := own.Open(ctx, spec)
	if ownErr != nil {
		return nil, errors.Join(ownErr, err)
	}
	return inside, nil
}

// isolated notes what an airlock's prison is.
func isolated(r *airlock.Record, i prison.Isolation) {
	r.Isolation.Runtime, r.Isolation.Weaker = i.Runtime, nil
	for _, w := range i.Weaker {
		r.Isolation.Weaker = append(r.Isolation.Weaker, airlock.Weakness{Kind: string(w.Kind), Text: w.Text})
	}
}

// isolationOf is what was noted.
func isolationOf(r airlock.Record) prison.Isolation {
	i := prison.Isolation{Runtime: r.Isolation.Runtime}
	for _, w := range r.Isolation.Weaker {
		i.Weaker = append(i.Weaker, prison.Weakness{Kind: prison.Missing(w.Kind), Text: w.Text})
	}
	return i
}
