package docker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
)

// TestVariables searches for values where an engine could store or show them, and restarts the container through the engine alone.
func TestVariables(t *testing.T) {
	t.Parallel()
	b := need(t)
	s, p := started(t, b, func(s *prison.Spec) { s.Env = []string{"TOKEN=tok-en", "UID=7"} })
	if status, out := sh(t, p, "echo $TOKEN; ! echo x >/run/variables/list && ! rm -f /run/variables/list && ! mv /run/variables /run/other"); status != 0 || !strings.HasPrefix(out, "tok-en\n") {
		t.Errorf("status %d: %s", status, out)
	}
	c := engine(t)
	defer c.Close()
	boxes, _ := labelled(t, s.ID)
	if len(boxes) != 1 {
		t.Fatalf("%d containers", len(boxes))
	}
	id := boxes[0].ID
	all, err := c.ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil || strings.Contains(string(text), "tok-en") {
		t.Errorf("%v: the engine shows the value:\n%s", err, text)
	}
	if err := c.ContainerRestart(t.Context(), id, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	var gone *prison.Unavailable
	if _, err := p.Exec(t.Context(), prison.Process{Argv: []string{"true"}}); !errors.As(err, &gone) || !strings.Contains(gone.Reason, "restarted the container") {
		t.Errorf("after a restart by somebody else: %v", err)
	}
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if status, out := sh(t, again(t, b, s), "echo $TOKEN"); status != 0 || out != "tok-en\n" {
		t.Errorf("healed: status %d, %s", status, out)
	}
}
