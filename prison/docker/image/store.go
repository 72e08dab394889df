// Package image builds, downloads, lists and removes the images of an engine, and reads the volumes that an image declares. Begin reading
// at [Store.BuildImage].
package image

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison/docker/dialect"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// BuiltName returns the name of a built image. It consists of an owner (8 hexadecimal digits) and a digest of all inputs of the build (24
// digits). The name is visible on the host only. Two owners of the same content have two names for it.
func BuiltName(owner, digest string) string { return "workspace-" + owner + ":" + digest }

var builtImage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^workspace-[0-9a-f]{8}:[0-9a-f]{24}$`) })

// IsName reports whether a string can be the name or the id of an image.
func IsName(name string) bool {
	_, err := reference.ParseAnyReference(name)
	return err == nil
}

// Store manages the images of an engine. Several goroutines may call its methods at the same time.
type Store struct {
	// Connect returns the connection to the engine, once the engine answers.
	Connect func(context.Context) (*dialect.Engine, error)
	// NotOf is a label that containers of builds do not have.
	NotOf string
}

// engine adds methods for images to a connection.
type engine struct{ *dialect.Engine }

func (s Store) connect(ctx context.Context) (engine, error) {
	e, err := s.Connect(ctx)
	return engine{e}, err
}

// Image is an image of the engine, under one of its names.
type Image struct {
	Name    string
	ID      string
	Size    int64 // bytes
	Created time.Time
	Used    bool // a container uses it
}

// Images lists the built images of all owners, the newest first.
func (s Store) Images(ctx context.Context) ([]Image, error) {
	e, err := s.connect(ctx)
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

// ImageNames lists the names of the images that the engine has, except built images.
func (s Store) ImageNames(ctx context.Context) (names []string, err error) {
	e, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.named(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.Name != "<none>:<none>" && !builtImage().MatchString(i.Name) {
			names = append(names, strings.TrimSuffix(i.Name, ":latest"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// built lists the built images, either with one tag or all.
func (e engine) built(ctx context.Context, tag string) ([]Image, error) {
	all, err := e.named(ctx)
	all = slices.DeleteFunc(all, func(i Image) bool {
		return !builtImage().MatchString(i.Name) || tag != "" && !strings.HasSuffix(i.Name, ":"+tag)
	})
	slices.SortFunc(all, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Name, b.Name))
	})
	return all, err
}

// named lists the images that the engine has, each under all its names.
func (e engine) named(ctx context.Context) (all []Image, err error) {
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	list, err := e.ImageList(bounded, image.ListOptions{})
	if err != nil {
		return nil, e.Failed(ctx, "list images", err)
	}
	for _, i := range list {
		for _, name := range i.RepoTags {
			name = strings.TrimPrefix(name, "docker.io/library/") // the form of Podman
			all = append(all, Image{Name: name, ID: i.ID, Size: i.Size, Created: time.Unix(i.Created, 0)})
		}
	}
	return all, nil
}

// Reuse adds the name to an existing built image with the same digest, and reports whether there is one.
func (s Store) Reuse(ctx context.Context, name string) (bool, error) {
	e, err := s.connect(ctx)
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
	bounded, cancel := dialect.Call(ctx)
	defer cancel()
	return true, e.Failed(ctx, "name image", e.ImageTag(bounded, same[0].ID, name))
}

// RemoveImage removes the name from a built image. When the last name is removed, the engine also removes the image, and the images of
// its steps that nothing else uses. Podman returns an error when it removed the image, and a build that runs uses one of those steps.
func (s Store) RemoveImage(ctx context.Context, name string) error {
	if !builtImage().MatchString(name) {
		return fmt.Errorf("remove image %q: it was not built for prisons", name)
	}
	e, err := s.connect(ctx)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, dialect.StartPatience)
	defer cancel()
	_, err = e.ImageRemove(bounded, name, image.RemoveOptions{PruneChildren: true})
	if err == nil || dialect.Gone(err) {
		return nil
	}
	if _, there := e.ImageInspect(bounded, name); dialect.Gone(there) {
		return nil
	}
	return e.Failed(ctx, "remove image", err)
}

// usedImages returns the images of all containers, running or not.
func (e engine) usedImages(ctx context.Context) (map[string]bool, error) {
	list, err := e.Containers(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, c := range list {
		used[plainID(c.ImageID)] = true
	}
	return used, nil
}

// plainID returns the id of an image without the name of the hash, which not every engine includes.
func plainID(id string) string { return strings.TrimPrefix(id, "sha256:") }
