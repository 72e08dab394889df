package docker

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// BuiltImage is what the image of a build is called, by who had it built (8 hexadecimal digits) and by a digest of all
// that went in (24). Only the host sees the name. Others who need the same give it a name of theirs.
func BuiltImage(owner, digest string) string { return "workspace-" + owner + ":" + digest }

var builtImage = regexp.MustCompile(`^workspace-[0-9a-f]{8}:[0-9a-f]{24}$`)

// IsImageName reports whether something can be the name or the id of an image at all.
func IsImageName(name string) bool {
	_, err := reference.ParseAnyReference(name)
	return err == nil
}

// Image is an image of the engine, by one of its names.
type Image struct {
	Name    string
	ID      string
	Size    int64
	Created time.Time
	Used    bool // a container is made of it
}

// Images lists those that were built, for whomever, the newest first.
func (b *Backend) Images(ctx context.Context) ([]Image, error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	all, err := e.built(ctx, "")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	used, err := e.usedImages(ctx)
	for i := range all {
		all[i].Used = used[plainID(all[i].ID)]
	}
	return all, err
}

// ImageNames lists the images that are here under names of their own, without those that were built.
func (b *Backend) ImageNames(ctx context.Context) (names []string, err error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	list, err := e.named(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.Name != "<none>:<none>" && !builtImage.MatchString(i.Name) {
			names = append(names, strings.TrimSuffix(i.Name, ":latest"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// built lists the images that were built, those with a tag or all.
func (e *engine) built(ctx context.Context, tag string) ([]Image, error) {
	all, err := e.named(ctx)
	all = slices.DeleteFunc(all, func(i Image) bool {
		return !builtImage.MatchString(i.Name) || tag != "" && !strings.HasSuffix(i.Name, ":"+tag)
	})
	slices.SortFunc(all, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name))
	})
	return all, err
}

// named lists the images that are here, each by all its names.
func (e *engine) named(ctx context.Context) (all []Image, err error) {
	bounded, cancel := call(ctx)
	defer cancel()
	list, err := e.ImageList(bounded, image.ListOptions{})
	if err != nil {
		return nil, e.failed(ctx, "list images", err)
	}
	for _, i := range list {
		for _, name := range i.RepoTags {
			name = strings.TrimPrefix(name, "docker.io/library/") // as Podman says it
			all = append(all, Image{Name: name, ID: i.ID, Size: i.Size, Created: time.Unix(i.Created, 0)})
		}
	}
	return all, nil
}

// Reuse makes an image that was built bear the name, if there is one with the same digest, and reports whether there is.
func (b *Backend) Reuse(ctx context.Context, name string) (bool, error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return false, err
	}
	_, digest, _ := strings.Cut(name, ":")
	same, err := e.built(ctx, digest)
	if err != nil || len(same) == 0 {
		return false, err
	}
	if slices.ContainsFunc(same, func(i Image) bool { return i.Name == name }) {
		return true, nil
	}
	bounded, cancel := call(ctx)
	defer cancel()
	return true, e.failed(ctx, "name image", e.ImageTag(bounded, same[0].ID, name))
}

// RemoveImage takes the name from an image that was built. With the last name it goes, and with it the steps below
// that nothing else needs.
func (b *Backend) RemoveImage(ctx context.Context, name string) error {
	if !builtImage.MatchString(name) {
		return fmt.Errorf("remove image %q: it was not built for prisons", name)
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
		used[plainID(c.ImageID)] = true
	}
	return used, nil
}

// plainID is an image's id without the name of its hash, which not every engine tells.
func plainID(id string) string { return strings.TrimPrefix(id, "sha256:") }
