package docker_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
)

// TestHomeRemoved removes the container and the volume of a stopped prison, as a user who cleans up an engine. The next start must make
// both again. Inside, the account files must be unchangeable.
func TestHomeRemoved(t *testing.T) {
	t.Parallel()
	b := need(t)
	s, p := started(t, b, func(*prison.Spec) {})
	e := engine(t)
	for round := range 2 {
		status, out := sh(t, p, `exec 2>/dev/null
			id -un && touch ~/x && ! echo y >>/etc/passwd && ! touch /home/.accounts/x && ! rm /home/.accounts/passwd && ls -AI .enter /home`)
		if want := s.User + "\n.accounts\n.run\n" + s.User + "\n"; status != 0 || out != want {
			t.Errorf("round %d: status %d, %q, want %q", round, status, out, want)
		}
		if round > 0 {
			return
		}
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		containers, _ := labelled(t, s.ID)
		if len(containers) != 1 {
			t.Fatalf("containers: %+v", containers)
		}
		if err := e.ContainerRemove(t.Context(), containers[0].ID, container.RemoveOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := e.VolumeRemove(t.Context(), homeVolume(t, s), false); err != nil {
			t.Fatal(err)
		}
		p = again(t, b, s)
	}
}

// TestHomeEmptied empties the volume of a stopped prison, and removes a single entry of another. The next start must restore the entries,
// even if only the engine can read the volume.
func TestHomeEmptied(t *testing.T) {
	t.Parallel()
	b := need(t)
	s, _ := started(t, b, func(*prison.Spec) {})
	for _, gone := range []string{"/home/.accounts", "/home/.accounts/group", "/home/.accounts /home/.run /home/" + s.User} {
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		once(t, "rm -r "+gone, homeVolume(t, s)+":/home")
		status, out := sh(t, again(t, b, s), "exec 2>/dev/null; id -un && touch ~/x && ls -AI .enter /home /home/.accounts")
		if want := s.User + "\n/home:\n.accounts\n.run\n" + s.User + "\n\n/home/.accounts:\ngroup\npasswd\n"; status != 0 || out != want {
			t.Errorf("without %s: status %d, %q, want %q", gone, status, out, want)
		}
	}
}

// homeVolume returns the path of the volume with a prison's home.
func homeVolume(t *testing.T, s prison.Spec) string {
	t.Helper()
	left, err := engine(t).VolumeList(t.Context(), volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "workspace.id="+s.ID))})
	if err != nil || len(left.Volumes) != 1 {
		t.Fatalf("volumes: %+v, %v", left.Volumes, err)
	}
	return left.Volumes[0].Name
}

// TestImageRemoved removes the image of a stopped prison, and everything created from it. A start must fail with the name of the image,
// and make nothing. When the image exists again, the next start must make the prison again.
func TestImageRemoved(t *testing.T) {
	t.Parallel()
	b, e := need(t), engine(t)
	ref := altered(t, fmt.Sprintf("airlock-test-removed:%d", os.Getpid()), "touch /made")
	s, _ := started(t, b, func(s *prison.Spec) { s.Image = ref })
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	saved, err := e.ImageSave(t.Context(), []string{ref})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := io.ReadAll(saved)
	if err := errors.Join(err, saved.Close()); err != nil {
		t.Fatal(err)
	}
	containers, _ := labelled(t, s.ID)
	for _, c := range containers {
		if err := e.ContainerRemove(t.Context(), c.ID, container.RemoveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, imageErr := e.ImageRemove(t.Context(), ref, image.RemoveOptions{})
	if err := errors.Join(imageErr, e.VolumeRemove(t.Context(), homeVolume(t, s), false)); err != nil {
		t.Fatal(err)
	}
	_, err = b.Start(t.Context(), s)
	var u *prison.Unavailable
	if !errors.As(err, &u) || !strings.Contains(u.Reason, ref) || !slices.Equal(u.Mend, []string{fmt.Sprintf("docker pull %q", ref)}) {
		t.Errorf("without its image: %v", err)
	}
	if c, rest := labelled(t, s.ID); len(c)+rest != 0 {
		t.Errorf("left: %+v, %d others", c, rest)
	}
	loaded, err := e.ImageLoad(t.Context(), bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, loaded.Body)
	if err := errors.Join(err, loaded.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if status, out := sh(t, again(t, b, s), "id -un"); status != 0 || out != s.User+"\n" {
		t.Errorf("status %d, %q", status, out)
	}
}

// TestHomeOfEverybody uses an image whose /home is writable for everybody. In the volume, nobody may create or rename files, so that no
// start mounts account files written by the agent.
func TestHomeOfEverybody(t *testing.T) {
	t.Parallel()
	b := need(t)
	ref := altered(t, fmt.Sprintf("airlock-test-everybody:%d", os.Getpid()), "chmod 777 /home && touch /home/of-the-image")
	s, p := started(t, b, func(s *prison.Spec) { s.Image = ref })
	for round := range 2 {
		if status, out := sh(t, p, "stat -c %u:%a /home; ls -AI .enter /home; ! mv /home/.accounts /home/.other 2>/dev/null"); status != 0 || out != "0:755\n.accounts\n.run\n"+s.User+"\n" {
			t.Errorf("round %d: status %d, %q", round, status, out)
		}
		if round > 0 {
			return
		}
		// As if a user had emptied the home by hand.
		if err := b.Stop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		once(t, "chmod 777 /home; rm -r /home/.accounts /home/.run /home/"+s.User, homeVolume(t, s)+":/home")
		p = again(t, b, s)
	}
}
