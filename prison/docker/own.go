package docker

import (
	"context"
	"slices"
)

// OfImage tells what the image of a prison brings along: its variables, as NAME=VALUE, and the folders that it wants to be
// writable and that are so. They are those of the image that the container was made of, whatever its name means by now.
func (r *running) OfImage(ctx context.Context) (env, volumes []string, err error) {
	bounded, cancel := call(ctx)
	defer cancel()
	c, err := r.ContainerInspect(bounded, r.id)
	if err != nil {
		return nil, nil, r.lost(ctx, "look at container", err)
	}
	i, err := r.ImageInspect(bounded, c.Image)
	if err != nil {
		return nil, nil, r.failed(ctx, "look at image", err)
	}
	if i.Config == nil {
		return nil, nil, nil
	}
	return i.Config.Env, slices.DeleteFunc(planner{image: i}.wanted(), reserved), nil
}
