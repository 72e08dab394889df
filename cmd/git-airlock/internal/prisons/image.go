package prisons

import (
	"context"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// MadeFrom returns the id of the image from which an airlock's prison was made last. It is empty for a prison without an image.
func (p Prisons) MadeFrom(r airlock.Record) (string, error) {
	if r.Image == "" {
		return "", nil
	}
	return Containers().ImageOf(p.Spec(r))
}

// FollowImage is called before a stopped prison starts again. If the name of its image has another image by now, the prison takes that image
// if the start names or builds it (named), and otherwise keeps its own if the engine has it. FollowImage reports both. A caller
// whose start fails must call restore once the prison has stopped, so that the prison keeps the image that it had.
func (p Prisons) FollowImage(ctx context.Context, spec prison.Spec, named bool) (restore func() error, err error) {
	restore = func() error { return nil }
	if spec.Image == "" {
		return restore, nil
	}
	if restore, err = Containers().KeepImage(spec); err != nil {
		return restore, err
	}
	moved, kept, err := Containers().MovedImage(ctx, spec)
	if err != nil || !moved {
		return restore, err
	}
	if named {
		p.Report.Say("image %s is another one by now; the prison is made from it, and the home stays", gitops.Text(spec.Image))
		return restore, Containers().ReleaseImage(spec)
	}
	if kept {
		p.Report.Say("image %s is another one by now; the prison keeps the one that it was made from", gitops.Text(spec.Image))
		p.Report.Hint("git airlock stop && git airlock start --image " + gitops.Pasteable(spec.Image))
	}
	return restore, nil
}
