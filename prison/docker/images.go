package docker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// Image is an image that was built for prisons.
type Image struct {
	Name    string
	ID      string
	Size    int64
	Created time.Time
	Used    bool // a container is made of it
}

// Images lists those that were built, the newest first.
func (b *Backend) Images(ctx context.Context) ([]Image, error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ImageList(bounded, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", builtRepository))})
	if err != nil {
		return nil, e.failed(ctx, "list images", err)
	}
	used, err := e.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, i := range list {
		for _, tag := range i.RepoTags {
			if strings.HasPrefix(tag, builtRepository+":") {
				all = append(all, Image{tag, i.ID, i.Size, time.Unix(i.Created, 0), used[i.ID]})
			}
		}
	}
	slices.SortFunc(all, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// RemoveImage removes an image that was built, with the steps below it that nothing else needs.
func (b *Backend) RemoveImage(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, builtRepository+":") {
		return fmt.Errorf("remove image %q: it was not built here", name)
	}
	e, err := b.engine(ctx, nil)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if _, err := e.ImageRemove(bounded, name, image.RemoveOptions{PruneChildren: true}); err != nil && !gone(err) {
		return e.failed(ctx, "remove image", err)
	}
	return nil
}

// usedImages are those that containers are made of, running or not.
func (e *engine) usedImages(ctx context.Context) (map[string]bool, error) {
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ContainerList(bounded, container.ListOptions{All: true})
	if err != nil {
		return nil, e.failed(ctx, "list containers", err)
	}
	used := map[string]bool{}
	for _, c := range list {
		used[c.ImageID] = true
	}
	return used, nil
}
