package docker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison/docker"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// marked returns the containers and images, those of single steps too, in whose making a word was used.
func marked(t *testing.T, word string) (found []string) {
	t.Helper()
	c := engine(t)
	ctx := context.Background()
	images, err := c.ImageList(ctx, image.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images {
		steps, _ := c.ImageHistory(ctx, i.ID) // somebody else's may be gone by now
		if slices.ContainsFunc(steps, func(s image.HistoryResponseItem) bool { return strings.Contains(s.CreatedBy, word) }) {
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

func newBuild(t *testing.T, word string, steps ...string) docker.Build {
	t.Helper()
	text := "FROM " + testImage() + "\n"
	for _, s := range steps {
		text += s + "\n"
	}
	w := docker.Build{Digest: word, Dockerfile: []byte(text), Network: "none"}
	t.Cleanup(func() { engine(t).ImageRemove(context.Background(), docker.BuiltImage(word), image.RemoveOptions{}) })
	return w
}

func TestBuild(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	w := newBuild(t, word, "COPY a.sh /"+word, "RUN sh /"+word)
	w.Files = []docker.File{{Name: "a.sh", Content: []byte("echo said it; echo made >/file"), Mode: 0o755}}
	var told []string
	w.Progress = func(s docker.Step) { told = append(told, fmt.Sprintf("%d/%d %s|%s", s.Number, s.Of, s.What, s.Said)) }
	if err := b.BuildImage(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2/3 COPY a.sh /" + word + "|", "3/3 RUN sh /" + word + "|", "3/3 RUN sh /" + word + "|said it"} {
		if !slices.Contains(told, want) {
			t.Errorf("%q was not told: %q", want, told)
		}
	}
	if id, err := b.ImageID(t.Context(), docker.BuiltImage(word)); err != nil || id == "" {
		t.Errorf("there is no image: %q, %v", id, err)
	}
	images, err := b.Images(t.Context())
	if err != nil || !slices.ContainsFunc(images, func(i docker.Image) bool { return i.Name == docker.BuiltImage(word) && !i.Used && i.Size > 0 }) {
		t.Errorf("%+v, %v", images, err)
	}
	if err := b.RemoveImage(t.Context(), testImage()); err == nil {
		t.Error("an image was removed that was not built")
	}
	if err := b.RemoveImage(t.Context(), docker.BuiltImage(word)); err != nil {
		t.Error(err)
	}
	if left := marked(t, word); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestBuildFails(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	w := newBuild(t, word, "RUN : "+word, "RUN echo because of this; exit 7")
	err := b.BuildImage(t.Context(), w)
	var failed *docker.BuildError
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

// TestBuildStopped gives up in the middle of a step.
func TestBuildStopped(t *testing.T) {
	b := need(t)
	word := fmt.Sprintf("word%d", time.Now().UnixNano())
	w := newBuild(t, word, "RUN : "+word, "RUN echo begun "+word+"; sleep 100")
	ctx, stop := context.WithCancel(t.Context())
	w.Progress = func(s docker.Step) {
		if strings.HasPrefix(s.Said, "begun") {
			stop()
		}
	}
	if err := b.BuildImage(ctx, w); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var left []string
	for range 50 {
		if left = marked(t, word); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("left: %q", left)
}
