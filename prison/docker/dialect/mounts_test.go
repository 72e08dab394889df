package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// TestMountsExactly creates containers on an engine that mounts the source of its choice. It checks the form in which a source reaches
// Docker and Podman, and that a container with another source does not stay.
func TestMountsExactly(t *testing.T) {
	const victim = "/home/user/victim"
	for _, c := range []struct {
		podman          bool
		source, mounted string
		asked           string // the source in the request; empty if there must be no request
		fails           bool
	}{
		{false, "/r,src=" + victim, "/r,src=" + victim, `"Source":"/r,src=` + victim + `"`, false},
		{true, "/plain:path", "/plain:path", `"Source":"/plain:path"`, false},
		{true, "/r,src=" + victim, "/r,src=" + victim, `"Binds":["/r,src=` + victim + `:/workspace:ro,rprivate"]`, false},
		{true, "/a:b,c", "", "", true},
		{false, "/\xff", "", "", true},
		{false, "/in/a/machine", "/host_mnt/in/a/machine", "/in/a/machine", false},
		{true, "/plain", victim, "/plain", true},
		{false, "/plain", victim, "/plain", true},
		{false, "/plain", "", "/plain", true},
	} {
		var asked string
		there := false
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodDelete:
				there = false
			case strings.HasSuffix(r.URL.Path, "/info"):
				if c.podman {
					w.Header().Set(podmanHeader, "4.3.1")
				}
				fmt.Fprint(w, `{"OSType":"linux"}`)
			case strings.HasSuffix(r.URL.Path, "/create"):
				body, _ := io.ReadAll(r.Body)
				asked, there = string(body), true
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, `{"Id":"made"}`)
			default:
				mounts := []container.MountPoint{{Destination: "/workspace", Source: c.mounted}}
				if c.mounted == "" {
					mounts = nil
				}
				json.NewEncoder(w).Encode(container.InspectResponse{Mounts: mounts})
			}
		}))
		e, err := Connect(strings.Replace(server.URL, "http:", "tcp:", 1))
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Create(t.Context(), &container.Config{}, &container.HostConfig{Mounts: []mount.Mount{{
			Type: mount.TypeBind, Source: c.source, Target: "/workspace", ReadOnly: true, BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		}}}, "")
		var u *prison.Unavailable
		if (err != nil) != c.fails || err != nil && !errors.As(err, &u) || there != !c.fails || !strings.Contains(asked, c.asked) || c.asked == "" && asked != "" {
			t.Errorf("%q of Podman %t, mounted as %q: asked %s, there %t, %v", c.source, c.podman, c.mounted, asked, there, err)
		}
		server.Close()
	}
}
