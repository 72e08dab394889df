package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/recipe"
)

// Image returns the name of a setup's image. It builds the image unless one exists with the same ingredients.
func (b Builder) Image(ctx context.Context, s Setup) (name string, err error) {
	base := ""
	if s.OS.Dockerfile != "" {
		if base, err = b.built(ctx, image.Build{Dockerfile: s.dockerfile, Files: s.context}, nil); err != nil || !s.NeedsBuild() {
			return base, err
		}
	}
	return b.built(ctx, image.Build{Dockerfile: s.Dockerfile(base)}, s.TrustingDockerfile(base))
}

// plannedBuild adds to a build its network and the digest of its ingredients: the steps, the files, and this machine's versions of
// the base images.
func (b Builder) plannedBuild(ctx context.Context, w image.Build) (image.Build, error) {
	w.Network = b.Config.String("airlock.buildNetwork", "")
	list := digestOf(w.Dockerfile) + "\n"
	for _, ref := range recipe.BasesOf(w.Dockerfile) {
		id, err := b.Containers.ImageID(ctx, ref)
		if err != nil {
			return w, err
		}
		list += fmt.Sprintf("%s %s\n", ref, id)
	}
	for _, f := range w.Files {
		list += fmt.Sprintf("%s %q %q %o\n", digestOf(f.Content), f.Name, f.Link, f.Mode)
	}
	w.Name = image.BuiltName(b.imageOwner(), digestOf([]byte(list))[:24])
	return w, nil
}

// imageOwner returns the part of image names that identifies this repository.
func (b Builder) imageOwner() string { return digestOf([]byte(b.Repo.CommonDir))[:8] }

// built returns the name of a build's image, and builds the image if it is missing. If this machine has authorities of its own, it builds
// the image with the steps in trusting, which trust these authorities, unless trusting is nil. The name does not depend on that, as both make
// the same image.
func (b Builder) built(ctx context.Context, w image.Build, trusting []byte) (name string, err error) {
	if err := b.fetchBases(ctx, w.Dockerfile); err != nil {
		return "", err
	}
	if w, err = b.plannedBuild(ctx, w); err != nil {
		return "", err
	}
	if id, err := b.Containers.ImageID(ctx, w.Name); err != nil || id != "" {
		return w.Name, err
	}
	if b.Dry {
		b.Report.Say("would build image %s", w.Name)
		return w.Name, nil
	}
	if has, err := b.Containers.Reuse(ctx, w.Name); err != nil || has {
		return w.Name, err
	}
	b.Report.Say("building image %s", w.Name)
	step, end := b.Report.Steps()
	w.Progress = stepped(step)
	if added := b.Authorities(b.Now()); added != "" && trusting != nil {
		w.Dockerfile, w.Files = trusting, []image.File{{Name: recipe.Authorities, Content: []byte(added), Mode: 0o644}}
	}
	begun := b.Now()
	err = b.Containers.BuildImage(ctx, w)
	end()
	if failed, ok := errors.AsType[*image.BuildError](err); ok {
		for _, line := range failed.Output {
			b.Report.Quote(line)
		}
		if distrusts(failed) {
			err = distrustError{err}
		}
	}
	if err != nil {
		return "", err
	}
	b.Report.Say("built image %s in %s", w.Name, b.Now().Sub(begun).Round(time.Second))
	return w.Name, nil
}

// untrusted are messages of programs that do not trust the authority of a server.
var untrusted = []string{
	"self_signed_cert_in_chain", "self-signed certificate", "self signed certificate", "unable to get local issuer certificate",
	"unable_to_get_issuer_cert_locally", "unable_to_verify_leaf_signature", "certificate verify failed", "certificate verification failed",
	"certificate signed by unknown authority", "pkix path building failed", "unknownissuer",
}

// distrustError is the error of a build with a step that does not trust the authority of a server. What the build has left may have commands of
// its own, which come second: they help the engine, and not the build.
type distrustError struct{ error }

func (e distrustError) Unwrap() error { return e.error }

// Next returns the commands to type.
func (e distrustError) Next() []string {
	next := []string{"git airlock help recipe  # see Networks that read TLS: a base image with the authority of your network"}
	if left, ok := errors.AsType[*image.LeftError](e.error); ok {
		next = append(next, left.Next()...)
	}
	return next
}

// distrusts reports whether the step of a build failed because it does not trust the authority of a server.
func distrusts(failed *image.BuildError) bool {
	said := strings.ToLower(failed.Reason + "\n" + strings.Join(failed.Output, "\n"))
	return slices.ContainsFunc(untrusted, func(text string) bool { return strings.Contains(said, text) })
}

// fetchBases downloads missing base images of a build.
func (b Builder) fetchBases(ctx context.Context, dockerfile []byte) error {
	for _, ref := range recipe.BasesOf(dockerfile) {
		id, err := b.Containers.ImageID(ctx, ref)
		if err != nil {
			return err
		}
		if id != "" || b.Dry {
			continue
		}
		b.Report.Say("downloading image %s", gitops.Text(ref))
		step, end := b.Report.Steps()
		err = b.Containers.Pull(ctx, ref, stepped(step))
		end()
		if err != nil {
			return noBase(ref, err)
		}
	}
	return nil
}

// noBase returns the error for a base image that cannot be downloaded, with the next commands.
func noBase(ref string, err error) error {
	if lacking, ok := errors.AsType[*prison.Unavailable](err); ok && len(lacking.Mend) == 0 {
		return Advise(err, "docker pull "+gitops.Pasteable(ref)+"  # if it needs a login",
			"git airlock start --backend native  # with this machine's own tools")
	}
	return err
}

// stepped converts the steps of an engine for step.
func stepped(step func(what string, number, of int, said string)) func(image.Step) {
	return func(s image.Step) { step(s.What, s.Number, s.Of, s.Said) }
}

// ImageState is version 1 of an image in image list --json.
type ImageState struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Size    int64  `json:"size"`
	Created string `json:"created"`
	Used    bool   `json:"used"`    // a container uses it
	Current bool   `json:"current"` // the committed setup here needs it
}

// Images lists the built images, and marks those that the setup here needs. With all, it includes those of other repositories.
func (b Builder) Images(ctx context.Context, here Setup, all bool) (list []ImageState, err error) {
	built, err := b.Containers.Images(ctx)
	if err != nil {
		return nil, err
	}
	current := b.currentImages(ctx, here)
	for _, i := range built {
		if !all && !strings.HasPrefix(i.Name, image.BuiltName(b.imageOwner(), "")) {
			continue
		}
		list = append(list, ImageState{i.Name, i.ID, i.Size, i.Created.UTC().Format(time.RFC3339), i.Used, current[i.Name]})
	}
	return list, nil
}

// currentImages returns the images that a setup needs, if they can be determined.
func (b Builder) currentImages(ctx context.Context, s Setup) map[string]bool {
	current := map[string]bool{}
	if s.File == "" {
		return current
	}
	base := ""
	if s.OS.Dockerfile != "" {
		w, err := b.plannedBuild(ctx, image.Build{Dockerfile: s.dockerfile, Files: s.context})
		if err != nil {
			return current
		}
		base = w.Name
		current[base] = true
	}
	if w, err := b.plannedBuild(ctx, image.Build{Dockerfile: s.Dockerfile(base)}); err == nil {
		current[w.Name] = true
	}
	return current
}
