package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/docker/image"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/container"
	api "github.com/docker/docker/api/types/image"
)

// TestImages checks that images without the programs of a prison are refused.
func TestImages(t *testing.T) {
	t.Parallel()
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
		// Start must return the error, and leave no process.
		if _, err := b.Start(t.Context(), s); !errors.As(err, &u) || !strings.Contains(u.Reason, want) {
			t.Errorf("start of %s: %v", ref, err)
		}
		if _, err := b.Attach(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
			t.Errorf("after it: %v", err)
		}
	}
}

// TestClosedScratchFolders starts prisons from an image whose scratch folders only root may write to, as in an archive of a folder that
// mkdir(1) made.
func TestClosedScratchFolders(t *testing.T) {
	onEach(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := preparedFrom(t, b, o, `USER root
RUN chmod 0755 /tmp && chmod 0700 /var/tmp
ENV TMPDIR=/nowhere`)
		for range 2 { // the second start has the container of the first
			p := again(t, b, s)
			if status, out := sh(t, p, `touch /tmp/x /var/tmp/x && stat -c %a /tmp /var/tmp`); status != 0 || out != "1777\n1777\n" {
				t.Errorf("status %d, %q", status, out)
			}
			if err := b.Stop(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestImageVolumes starts prisons from an image that declares volumes at the prison's own folders. Accounts and
// home must be there, files must be kept or lost as in any other prison, and the engine must not have anonymous
// volumes afterwards.
func TestImageVolumes(t *testing.T) {
	onEach(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := preparedFrom(t, b, o, `RUN echo made >/etc/made
ENV TZ=Asia/Tokyo
VOLUME /etc /home /tmp /var/tmp /run /home/dev /etc/alternatives /srv /workspace`)
		p := again(t, b, s)
		status, out := sh(t, p, `cat /etc/made && id -un && echo $HOME && touch ~/kept /tmp/x /var/tmp/x /srv/x /workspace/x /run/x && ls -d /etc/alternatives/pager >/dev/null`)
		if status != 0 || out != "made\ndev\n/home/dev\n" {
			t.Errorf("status %d, %q", status, out)
		}
		env, volumes, err := p.(interface {
			OfImage(context.Context) (env, volumes []string, err error)
		}).OfImage(t.Context())
		if err != nil || !slices.Contains(env, "TZ=Asia/Tokyo") || !slices.Equal(volumes, []string{"/srv"}) {
			t.Errorf("of the image: %q, %q, %v", env, volumes, err)
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if status, out = sh(t, again(t, b, s), "ls ~/kept && id -un"); status != 0 || out != "/home/dev/kept\ndev\n" {
			t.Errorf("after a stop: status %d, %q", status, out)
		}
	})
}

func discard(t *testing.T, ref string) {
	t.Cleanup(func() { engine(t).ImageRemove(context.Background(), ref, api.RemoveOptions{Force: true}) })
}

// empty creates an image with a single file.
func empty(t *testing.T) string {
	t.Helper()
	ref := fmt.Sprintf("airlock-test-empty:%d", os.Getpid())
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644}), w.Close()); err != nil {
		t.Fatal(err)
	}
	said, err := engine(t).ImageImport(t.Context(), api.ImportSource{Source: &b, SourceName: "-"}, ref, api.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said.Close()
	discard(t, ref)
	return ref
}

// withoutGit creates an image that is the test image without git.
// preparedFrom prepares a prison from a new image: the test image, and what steps of a Dockerfile add to it.
func preparedFrom(t *testing.T, b *docker.Backend, o prisontest.Options, steps string) prison.Spec {
	t.Helper()
	o.Image = image.BuiltName("0000"+fmt.Sprintf("%04x", os.Getpid()&0xffff), fmt.Sprintf("%024x", o.UID))
	err := b.BuildImage(t.Context(), image.Build{Name: o.Image, Network: "none", Dockerfile: []byte("FROM " + testImage() + "\n" + steps + "\n")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.RemoveImage(context.Background(), o.Image); err != nil {
			t.Error(err)
		}
	})
	s := prisontest.NewSpec(t, b, o)
	if err := b.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the image is removed
		if err := errors.Join(b.Stop(context.Background(), s), b.Wipe(context.Background(), s)); err != nil {
			t.Error(err)
		}
	})
	return s
}

func withoutGit(t *testing.T) string {
	return altered(t, fmt.Sprintf("airlock-test-without-git:%d", os.Getpid()), `rm "$(command -v git)"`)
}

// altered creates an image from another one with a script.
func altered(t *testing.T, ref, script string) string {
	t.Helper()
	if _, err := engine(t).ContainerCommit(t.Context(), once(t, script), container.CommitOptions{Reference: ref}); err != nil {
		t.Fatal(err)
	}
	discard(t, ref)
	return ref
}

// once runs a script as root in a new container, and waits for its end.
func once(t *testing.T, script string, binds ...string) (id string) {
	t.Helper()
	c, ctx := engine(t), t.Context()
	box, err := c.ContainerCreate(ctx, &container.Config{Image: testImage(), Cmd: []string{"/bin/sh", "-c", script}},
		&container.HostConfig{NetworkMode: "none", Binds: binds}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.ContainerRemove(context.Background(), box.ID, container.RemoveOptions{Force: true}) })
	ended, errs := c.ContainerWait(ctx, box.ID, container.WaitConditionNextExit)
	if err := c.ContainerStart(ctx, box.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-errs:
		t.Fatal(err)
	case end := <-ended:
		if end.StatusCode != 0 {
			t.Fatalf("%s: status %d", script, end.StatusCode)
		}
	}
	return box.ID
}
