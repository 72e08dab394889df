package image

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/docker/dialect"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// The containers of a build have no label, since the label would be in the image. They are recognised by an
// additional host name, which is set for the steps and stored nowhere else.
const (
	markPrefix  = "build-"
	markAddress = ":127.0.0.1"
)

func newMark() string { return markPrefix + strings.ToLower(rand.Text()) + markAddress }

const (
	// discardPatience is how long the engine may take to stop a build after its client has disconnected.
	discardPatience = 15 * time.Second
	// lateContainers is how long another container can still appear after that, if the engine was creating it.
	lateContainers = 1500 * time.Millisecond
)

// LeftError reports that the engine was too slow to remove what a failed build left.
type LeftError struct{ program string }

func (*LeftError) Error() string {
	return "the engine has not removed in time what the failed build left: images of single steps, which have no name, and perhaps the container of a step, which a later build removes"
}

// Next returns the command that removes the images.
func (e *LeftError) Next() []string {
	return []string{e.program + " image prune  # removes images without a name, also those of other builds"}
}

// discard removes the objects that a failed build left on the engine: a container that was created but not started yet, and the images of
// earlier steps. It keeps images that existed before, and images with a name, since made may contain other ids.
func (e engine) discard(ctx context.Context, p *dialect.Platform, mark, notOf string, made []string, before map[string]bool) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardPatience)
	defer cancel()
	err := e.discardNow(bounded, ctx.Err() != nil, p, mark, notOf, made, before)
	if err == nil || bounded.Err() == nil {
		return err
	}
	if p.HidesBuilds() {
		return &LeftError{"podman"}
	}
	return &LeftError{"docker"}
}

// discardNow is discard without a time limit. If the build was interrupted, another container can appear late.
func (e engine) discardNow(ctx context.Context, interrupted bool, p *dialect.Platform, mark, notOf string, made []string, before map[string]bool) error {
	for end := time.Now().Add(lateContainers); ; time.Sleep(100 * time.Millisecond) {
		err := e.eachBuild(ctx, notOf, func(m string, c container.Summary) error {
			if m != mark {
				return nil
			}
			return e.Remove(ctx, c.ID)
		})
		if err != nil {
			return err
		}
		if !interrupted || time.Now().After(end) {
			break
		}
	}
	for _, id := range slices.Backward(made) {
		i, err := e.ImageInspect(ctx, id)
		if dialect.Gone(err) || err == nil && (before[i.ID] || len(i.RepoTags) > 0) {
			continue
		}
		if err != nil {
			return e.Failed(ctx, "inspect what the build left", err)
		}
		for {
			_, err := e.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true, Force: p.HidesBuilds()})
			if err == nil || dialect.Gone(err) {
				break
			}
			if !dialect.NotNow(err) || ctx.Err() != nil {
				return e.Failed(ctx, "remove what the build left", err)
			}
			time.Sleep(100 * time.Millisecond) // the image's container is being removed
		}
	}
	return nil
}

// imageIDs returns the ids of the images that the engine has.
func (e engine) imageIDs(ctx context.Context) (map[string]bool, error) {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	list, err := e.ImageList(bounded, image.ListOptions{All: true})
	if err != nil {
		return nil, e.Failed(ctx, "list images", err)
	}
	ids := make(map[string]bool, len(list))
	for _, i := range list {
		ids[i.ID] = true
	}
	return ids, nil
}

// sweepBuilds removes the containers of builds whose command was killed. It ignores errors, since a container that the engine cannot
// describe or remove must not prevent a new build. The next build tries again.
func (e engine) sweepBuilds(ctx context.Context, notOf string) {
	_ = e.eachBuild(ctx, notOf, func(_ string, c container.Summary) error {
		if c.State == "running" || time.Since(time.Unix(c.Created, 0)) <= dialect.SweepAge {
			return nil
		}
		bounded, cancel := dialect.Call(ctx)
		defer cancel()
		return e.ContainerRemove(bounded, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	})
}

// eachBuild calls do for each container of a build, with its mark. It continues after an error.
func (e engine) eachBuild(ctx context.Context, notOf string, do func(mark string, c container.Summary) error) (all error) {
	list, err := e.Containers(ctx, container.ListOptions{All: true})
	if err != nil {
		return err
	}
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	for _, c := range list {
		if _, ours := c.Labels[notOf]; ours {
			continue
		}
		full, err := e.ContainerInspect(bounded, c.ID)
		if dialect.Gone(err) {
			continue
		}
		if err != nil {
			all = errors.Join(all, e.Failed(ctx, "inspect container", err))
		} else if mark := markOf(full); mark != "" {
			all = errors.Join(all, do(mark, c))
		}
	}
	return all
}

// markOf returns the mark of a build's container. It is empty for other containers.
func markOf(c container.InspectResponse) string {
	if c.ContainerJSONBase == nil || c.HostConfig == nil || len(c.HostConfig.ExtraHosts) != 1 {
		return ""
	}
	mark := c.HostConfig.ExtraHosts[0]
	if !strings.HasPrefix(mark, markPrefix) || !strings.HasSuffix(mark, markAddress) {
		return ""
	}
	return mark
}
