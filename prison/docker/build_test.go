package docker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	api "github.com/docker/docker/api/types/image"
)

// marked returns the containers and images, including those of single steps, that were created by a command with the word.
func marked(t *testing.T, word string) (found []string) {
	t.Helper()
	c := engine(t)
	ctx := context.Background()
	images, err := c.ImageList(ctx, api.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		steps, _ := c.ImageHistory(ctx, i.ID) // another user's image may have been removed by now
		if slices.ContainsFunc(steps, func(s api.HistoryResponseItem) bool { return strings.Contains(s.CreatedBy, word) }) {
			found = append(found, i.ID)
		}
	}
	boxes, err := c.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boxes {
		if strings.Contains(b.Command, word) {
			found = append(found, b.ID)
		}
	}
	return found
}

func newBuild(t *testing.T, word string, steps ...string) image.Build {
	t.Helper()
	text := "FROM " + testImage() + "\n"
	for _, s := range steps {
		text += s + "\n"
	}
	digest := fmt.Sprintf("%024x", time.Now().UnixNano())
	w := image.Build{Name: image.BuiltName("00000000", digest), Dockerfile: []byte(text), Network: "none"}
	t.Cleanup(func() { engine(t).ImageRemove(context.Background(), w.Name, api.RemoveOptions{}) })
	return w
}

func TestBuild(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	w := newBuild(t, word, "COPY a.sh /"+word, "RUN sh /"+word)
	w.Files = []image.File{{Name: "a.sh", Content: []byte("echo said it; echo made >/file"), Mode: 0o755}}
	var told []string
	w.Progress = func(s image.Step) { told = append(told, fmt.Sprintf("%d/%d %s|%s", s.Number, s.Of, s.What, s.Said)) }
	if err := b.BuildImage(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2/3 COPY a.sh /" + word + "|", "3/3 RUN sh /" + word + "|", "3/3 RUN sh /" + word + "|said it"} {
		if !slices.Contains(told, want) {
			t.Errorf("%q was not told: %q", want, told)
		}
	}
	if id, err := b.ImageID(t.Context(), w.Name); err != nil || id == "" {
		t.Errorf("there is no image: %q, %v", id, err)
	}
	// Another owner builds the same content.
	other := strings.Replace(w.Name, "00000000", "11111111", 1)
	if has, err := b.Reuse(t.Context(), other); !has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	if has, err := b.Reuse(t.Context(), image.BuiltName("11111111", strings.Repeat("f", 24))); has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	images, err := b.Images(t.Context())
	for _, name := range []string{w.Name, other} {
		if err != nil || !slices.ContainsFunc(images, func(i image.Image) bool { return i.Name == name && !i.Used && i.Size > 0 }) {
			t.Errorf("%s: %+v, %v", name, images, err)
		}
		if err := b.RemoveImage(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if err := b.RemoveImage(t.Context(), testImage()); err == nil {
		t.Error("an image was removed that was not built")
	}
	if left := marked(t, word); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestRemoveImageBesideBuild removes an image while a build runs that uses one of its steps. The image must be gone, without an error.
func TestRemoveImageBesideBuild(t *testing.T) {
	onEach(t, []string{"docker", "podman"}, func(t *testing.T, b *docker.Backend, _ prisontest.Options) {
		common := fmt.Sprintf("ENV common=%d", time.Now().UnixNano())
		removed, other := newBuild(t, "", common, "ENV mine=1"), newBuild(t, "", common, "RUN echo begun && sleep 5")
		if err := b.BuildImage(t.Context(), removed); err != nil {
			t.Fatal(err)
		}
		begun, built := make(chan bool, 1), make(chan error, 1)
		other.Progress = func(s image.Step) {
			if s.Said == "begun" {
				begun <- true
			}
		}
		go func() { built <- b.BuildImage(t.Context(), other) }()
		select {
		case <-begun:
		case err := <-built:
			t.Fatalf("the other build ended early: %v", err)
		}
		if err := b.RemoveImage(t.Context(), removed.Name); err != nil {
			t.Errorf("removed beside a build: %v", err)
		}
		if id, err := b.ImageID(t.Context(), removed.Name); id != "" || err != nil {
			t.Errorf("the image is still there: %q, %v", id, err)
		}
		if err := <-built; err != nil {
			t.Errorf("the other build: %v", err)
		}
		if err := b.RemoveImage(t.Context(), other.Name); err != nil {
			t.Errorf("removed after the build: %v", err)
		}
	})
}

// TestBuildCopiesOnlyFiles builds with a context that has the names of Dockerfiles and of files beside them. The steps of the build are
// executed, and the image has the context's files and no others.
func TestBuildCopiesOnlyFiles(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	for _, c := range []struct{ ignores, want string }{
		{"", ".build-steps .build-steps.dockerignore Dockerfile dockerfile folder"},
		{"nothing", ".build-steps .build-steps.dockerignore .dockerignore Dockerfile dockerfile folder"},
	} {
		w := newBuild(t, word, "COPY . /"+word, `RUN cd /`+word+` && echo found $(ls -A)`)
		w.Files = []image.File{{Name: "folder/.build-steps", Content: []byte("x"), Mode: 0o644}}
		for _, name := range []string{".build-steps", "Dockerfile", "dockerfile"} {
			w.Files = append(w.Files, image.File{Name: name, Content: []byte("FROM " + testImage() + "\nRUN echo other steps\n"), Mode: 0o644})
		}
		w.Files = append(w.Files, image.File{Name: ".build-steps.dockerignore", Content: []byte("*\n"), Mode: 0o644})
		if c.ignores != "" {
			w.Files = append(w.Files, image.File{Name: ".dockerignore", Content: []byte(c.ignores), Mode: 0o644})
		}
		var told []string
		w.Progress = func(s image.Step) { told = append(told, s.Said) }
		if err := b.BuildImage(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		found := slices.IndexFunc(told, func(s string) bool { return strings.HasPrefix(s, "found ") })
		if found < 0 {
			t.Fatalf("%q", told)
		}
		got := strings.Fields(told[found])[1:]
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("copied %q, want %s", got, c.want)
		}
	}
}

func TestBuildFails(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	w := newBuild(t, word, "RUN : "+word, "RUN echo because of this; exit 7")
	err := b.BuildImage(t.Context(), w)
	var failed *image.BuildError
	if !errors.As(err, &failed) || failed.Number != 3 || failed.Of != 3 || !strings.Contains(failed.Reason, "7") ||
		!slices.Contains(failed.Output, "because of this") {
		t.Errorf("%v: %+v", err, failed)
	}
	if left := marked(t, word); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if err := b.Pull(t.Context(), "no-such-registry.invalid/nothing", nil); err == nil || !strings.Contains(err.Error(), "cannot be downloaded") {
		t.Error(err)
	}
}

// TestFailedBuildKeepsImages has a step print the builder's message about a new image, with the id of an image of the user.
func TestFailedBuildKeepsImages(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	users := newBuild(t, word, "RUN : "+word+" users")
	if err := b.BuildImage(t.Context(), users); err != nil {
		t.Fatal(err)
	}
	id, err := b.ImageID(t.Context(), users.Name)
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	w := newBuild(t, word, `RUN echo " ---> `+strings.TrimPrefix(id, "sha256:")[:12]+`"; echo "--> `+strings.TrimPrefix(id, "sha256:")[:12]+`"; exit 7`)
	var failed *image.BuildError
	if err := b.BuildImage(t.Context(), w); !errors.As(err, &failed) {
		t.Error(err)
	}
	if after, err := b.ImageID(t.Context(), users.Name); err != nil || after != id {
		t.Errorf("the user's image is %q, and was %q: %v", after, id, err)
	}
}

// TestBuildStopped cancels a build in the middle of a step.
func TestBuildStopped(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	w := newBuild(t, word, "RUN : "+word, "RUN echo begun "+word+"; sleep 100")
	for name, when := range map[string]func(image.Step) bool{
		"before its container is there": func(s image.Step) bool { return s.Number == 3 },
		"when it runs":                  func(s image.Step) bool { return strings.HasPrefix(s.Said, "begun") },
	} {
		ctx, stop := context.WithCancel(t.Context())
		w.Progress = func(s image.Step) {
			if when(s) {
				stop()
			}
		}
		if err := b.BuildImage(ctx, w); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if left := marked(t, word); len(left) > 0 {
			t.Errorf("%s: left: %q", name, left)
		}
	}
}

// TestBuildOnPodman runs the same test with Podman's service.
func TestBuildOnPodman(t *testing.T) {
	mayUse(t, "podman")
	host := cmp.Or(os.Getenv("AIRLOCK_TEST_PODMAN"), "unix:///run/podman/podman.sock")
	prisontest.Need(t, "podman", docker.New(host).CheckImage(t.Context(), testImage()))
	t.Setenv("DOCKER_HOST", host)
	t.Run("whole", TestBuild)
	t.Run("copies", TestBuildCopiesOnlyFiles)
	t.Run("fails", TestBuildFails)
	t.Run("keeps", TestFailedBuildKeepsImages)
	t.Run("stopped", TestBuildStopped)
}
