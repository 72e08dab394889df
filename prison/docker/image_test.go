package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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
	for ref, want := range map[string]string{empty(t): "no /bin/sh", withoutGit(t): "holds no git", foreign(t): "is for another architecture: "} {
		s := prisontest.NewSpec(t, b, options())
		s.Image = ref
		prepare(t, b, s)
		// Start must return the error, and leave no process.
		if _, err := b.Start(t.Context(), s); !errors.As(err, &u) || !strings.Contains(u.Reason, want) {
			t.Errorf("start of %s: %v", ref, err)
		}
		if _, err := b.Attach(t.Context(), s); !errors.Is(err, prison.ErrNotRunning) {
			t.Errorf("after it: %v", err)
		}
	}
}

// TestClosedGit checks that the refusal of an image names the reason why its git does not run.
func TestClosedGit(t *testing.T) {
	onEach(t, []string{"docker", "runsc", "podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		for steps, want := range map[string][2]string{
			"ENV PATH=/nowhere": {"/usr/bin/git, and its PATH is /nowhere", "ENV PATH=/usr/bin:$PATH"},
			`RUN chmod 0700 "$(readlink -f "$(command -v git)")"`:       {"/usr/bin/git, has mode 0700", "RUN chmod a+rx "},
			`RUN echo none >"$(readlink -f "$(command -v git)")"; sync`: {"/usr/bin/git, does not run", "--entrypoint git"},
		} {
			another := options()
			another.Runtime = o.Runtime
			s := preparedFrom(t, b, another, "USER root\n"+steps)
			var u *prison.Unavailable
			if _, err := b.Start(t.Context(), s); !errors.As(err, &u) || !strings.Contains(u.Reason, want[0]) || !strings.Contains(u.Mend[0], want[1]) {
				t.Errorf("%s: %v", steps, err)
			}
		}
	})
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
	prepare(t, b, s)
	t.Cleanup(func() { // before the image is removed
		if err := errors.Join(b.Stop(context.Background(), s), b.Wipe(context.Background(), s)); err != nil {
			t.Error(err)
		}
	})
	return s
}

func discard(t *testing.T, ref string) {
	t.Cleanup(func() { engine(t).ImageRemove(context.Background(), ref, api.RemoveOptions{Force: true}) })
}

// empty creates an image with a single file.
func empty(t *testing.T) string {
	t.Helper()
	ref := fmt.Sprintf("airlock-test-empty:%d", os.Getpid())
	said, err := engine(t).ImageImport(t.Context(), api.ImportSource{Source: archive(t, map[string]string{"file": ""}), SourceName: "-"}, ref, api.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said.Close()
	discard(t, ref)
	return ref
}

// foreign creates an image for another architecture, whose programs are the beginnings of programs for it.
func foreign(t *testing.T) string {
	t.Helper()
	ref := fmt.Sprintf("airlock-test-foreign:%d", os.Getpid())
	architecture, machine := "arm64", byte(elf.EM_AARCH64)
	if runtime.GOARCH == architecture {
		architecture, machine = "amd64", byte(elf.EM_X86_64)
	}
	program := make([]byte, 64)
	copy(program, elf.ELFMAG+"\x02\x01\x01")
	program[16], program[18] = byte(elf.ET_EXEC), machine
	layer := archive(t, map[string]string{"bin/sh": string(program), "usr/bin/git": string(program)})
	config := fmt.Sprintf(`{"architecture": %q, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`,
		architecture, sha256.Sum256(layer.Bytes()))
	manifest := fmt.Sprintf(`[{"Config": "config.json", "RepoTags": [%q], "Layers": ["layer.tar"]}]`, ref)
	answer, err := engine(t).ImageLoad(t.Context(), archive(t, map[string]string{"manifest.json": manifest, "config.json": config, "layer.tar": layer.String()}))
	if err != nil {
		t.Fatal(err)
	}
	discard(t, ref)
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return ref
}

// archive returns a tar archive of programs.
func archive(t *testing.T, files map[string]string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// withoutGit creates an image that is the test image without git.
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
