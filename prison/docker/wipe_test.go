package docker

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"github.com/docker/docker/api/types/filters"
	images "github.com/docker/docker/api/types/image"
)

// TestWipeWithoutImage removes a workspace of another user after its image has gone. No image must stay behind.
func TestWipeWithoutImage(t *testing.T) {
	for name, host := range map[string]string{"docker": "", "podman": cmp.Or(os.Getenv("AIRLOCK_TEST_PODMAN"), "unix:///run/podman/podman.sock")} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root can make files of another user")
			}
			ctx := t.Context()
			e, err := New(host).engine(ctx, nil)
			prisontest.Need(t, name, err)
			s := prison.Spec{ID: "wipe", Workspace: filepath.Join(t.TempDir(), "work")}
			outside := filepath.Join(filepath.Dir(s.Workspace), "outside")
			closed := filepath.Join(s.Workspace, "closed", strings.Repeat("deep/", 50))
			err = errors.Join(os.MkdirAll(closed, 0o700), os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(closed, "link")),
				os.Chown(s.Workspace, 4242, 4242), os.Chmod(filepath.Dir(closed), 0))
			if err != nil {
				t.Fatal(err)
			}
			if err := e.wipe(ctx, "workspace-no-such-image", "0123456789abcdef", s); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(s.Workspace); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the workspace: %v", err)
			}
			if _, err := os.Lstat(outside); err != nil {
				t.Error(err)
			}
			left, err := e.ImageList(ctx, images.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("reference", "*workspace-remover*"))})
			if err != nil || len(left) > 0 {
				t.Errorf("images: %v, %v", left, err)
			}
		})
	}
}

// TestWipeRefusal checks that a user is told how to remove a workspace that the engine does not empty.
func TestWipeRefusal(t *testing.T) {
	e, err := New("").engine(t.Context(), nil)
	prisontest.Need(t, "docker", err)
	s := prison.Spec{ID: "wipe", Workspace: filepath.Join(t.TempDir(), "it's here")}
	if err := errors.Join(os.Mkdir(s.Workspace, 0o700), os.WriteFile(filepath.Join(s.Workspace, "kept"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	refusal := stays(errors.New("why"), s.Workspace)
	var u *prison.Unavailable
	if !errors.As(refusal, &u) || len(u.Mend) != 1 || !strings.HasPrefix(u.Mend[0], "sudo rm -rf '"+filepath.Dir(s.Workspace)+`/it'\''s here'`) {
		t.Errorf("%v", refusal)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.wipe(ended, "workspace-no-such-image", "0123456789abcdef", s); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
