package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
)

// TestImages refuses images in which nobody could work.
func TestImages(t *testing.T) {
	b := need(t)
	s := prisontest.NewSpec(t, b, options())
	s.Image = "no-such-image-anywhere"
	var u *prison.Unavailable
	if err := b.Prepare(t.Context(), s); !errors.As(err, &u) || !strings.Contains(u.Reason, "is not on this machine") || len(u.Mend) == 0 {
		t.Errorf("no image: %v", err)
	}
	if _, err := os.Lstat(s.Workspace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after that there is a workspace: %v", err)
	}
	for ref, want := range map[string]string{empty(t): "no /bin/sh", withoutGit(t): "no git"} {
		s := prisontest.NewSpec(t, b, options())
		s.Image = ref
		if err := b.Prepare(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		// Start finds out, and leaves nothing that runs.
		if _, err := b.Start(t.Context(), s); !errors.As(err, &u) || !strings.Contains(u.Reason, want) {
			t.Errorf("start of %s: %v", ref, err)
		}
		if _, err := b.Attach(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
			t.Errorf("after it: %v", err)
		}
	}
}

func discard(t *testing.T, ref string) {
	t.Cleanup(func() { engine(t).ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) })
}

// empty makes an image with one file in it.
func empty(t *testing.T) string {
	t.Helper()
	const ref = "airlock-test-empty"
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644}), w.Close()); err != nil {
		t.Fatal(err)
	}
	said, err := engine(t).ImageImport(t.Context(), image.ImportSource{Source: &b, SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said.Close()
	discard(t, ref)
	return ref
}

// withoutGit makes an image of the test's without its git.
func withoutGit(t *testing.T) string {
	t.Helper()
	const ref = "airlock-test-without-git"
	c, ctx := engine(t), t.Context()
	box, err := c.ContainerCreate(ctx, &container.Config{Image: testImage(), Cmd: []string{"/bin/sh", "-c", `rm "$(command -v git)"`}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.ContainerRemove(ctx, box.ID, container.RemoveOptions{Force: true})
	ended, errs := c.ContainerWait(ctx, box.ID, container.WaitConditionNextExit)
	if err := c.ContainerStart(ctx, box.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-errs:
		t.Fatal(err)
	case <-ended:
	}
	if _, err := c.ContainerCommit(ctx, box.ID, container.CommitOptions{Reference: ref}); err != nil {
		t.Fatal(err)
	}
	discard(t, ref)
	return ref
}
