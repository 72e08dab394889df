package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// A build's containers bear no label: it would be in the image. They are known by a host of that name, which is told
// to the steps and is nowhere else.
const (
	markPrefix  = "build-"
	markAddress = ":127.0.0.1"
)

func newMark() (string, error) {
	var key [8]byte
	_, err := rand.Read(key[:])
	return markPrefix + hex.EncodeToString(key[:]) + markAddress, err
}

const (
	// discardPatience is how long the engine may take to give up a build that nobody waits for any more.
	discardPatience = 15 * time.Second
	// lateContainers is how long after that a container can still come: the one that was being made.
	lateContainers = 1500 * time.Millisecond
)

// discard removes what the steps of a build made that came to nothing: the engine leaves a container that was made
// and not started yet, and the images of the steps before.
func (e *engine) discard(ctx context.Context, p *platform, mark string, made []string) error {
	interrupted := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardPatience)
	defer cancel()
	for end := time.Now().Add(lateContainers); ; time.Sleep(100 * time.Millisecond) {
		if err := e.removeMarked(ctx, func(m string, _ container.Summary) bool { return m == mark }); err != nil {
			return err
		}
		if !interrupted || time.Now().After(end) {
			break
		}
	}
	for _, id := range slices.Backward(made) {
		for {
			// Podman lets the step run on, in a container that its API does not show.
			_, err := e.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true, Force: p.podman})
			if err == nil || gone(err) {
				break
			}
			if !notNow(err) || ctx.Err() != nil {
				return e.failed(ctx, "remove what the build left", err)
			}
			time.Sleep(100 * time.Millisecond) // its container is just going
		}
	}
	return nil
}

// sweepBuilds removes containers of builds whose command was killed.
func (e *engine) sweepBuilds(ctx context.Context) error {
	return e.removeMarked(ctx, func(_ string, c container.Summary) bool {
		return c.State != "running" && time.Since(time.Unix(c.Created, 0)) > sweepAge
	})
}

// removeMarked removes those containers of builds that are wanted gone.
func (e *engine) removeMarked(ctx context.Context, unwanted func(mark string, c container.Summary) bool) error {
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ContainerList(bounded, container.ListOptions{All: true})
	if err != nil {
		return e.failed(ctx, "list containers", err)
	}
	for _, c := range list {
		if _, ours := c.Labels[labelRole]; ours {
			continue
		}
		full, err := e.ContainerInspect(bounded, c.ID)
		if gone(err) {
			continue
		}
		if err != nil {
			return e.failed(ctx, "inspect container", err)
		}
		if mark := markOf(full); mark == "" || !unwanted(mark, c) {
			continue
		}
		if err := e.remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// markOf is the mark of a build's container, empty for others.
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
