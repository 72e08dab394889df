package dialect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/system"
)

// TestRefuse checks the error for each engine that cannot have the phantom. The error must name the engine, and a way to get another one.
func TestRefuse(t *testing.T) {
	for what, c := range map[string]struct {
		is              Platform
		runtime, reason string
	}{
		"fit":             {Platform{}, "", ""},
		"of another kind": {Platform{Info: system.Info{OSType: "windows"}}, "", "windows"},
		"without root":    {Platform{rootless: true}, "", "Docker at h runs without root"},
		"Podman's":        {Platform{rootless: true, podman: true}, "", "Podman at h runs without root"},
		"mapping":         {Platform{Info: system.Info{SecurityOptions: []string{"name=userns"}}}, "", "userns-remap"},
		"runtime":         {Platform{Info: system.Info{Runtimes: map[string]system.RuntimeWithStatus{"runc": {}}}}, "runsc", `no runtime "runsc", only runc`},
	} {
		if c.is.OSType == "" {
			c.is.OSType = "linux"
		}
		err := c.is.refuse("h", c.runtime)
		var u *prison.Unavailable
		if (err == nil) != (c.reason == "") || err != nil && (!errors.As(err, &u) || !strings.Contains(u.Reason, c.reason) || len(u.Mend) == 0) {
			t.Errorf("an engine that is %s: %v", what, err)
		}
	}
}

// TestDownMends checks that a hint fits the socket that cannot be used.
func TestDownMends(t *testing.T) {
	for host, want := range map[string]string{
		"unix:///var/run/docker.sock":         "sudo usermod -aG docker",
		"unix:///run/podman/podman.sock":      withoutEngine,
		"unix:///run/user/1/podman/other":     withoutEngine,
		"unix:///elsewhere/of/it/docker.sock": "sudo usermod -aG docker",
	} {
		var u *prison.Unavailable
		e := &Engine{Host: host}
		if err := e.down(syscall.EACCES); !errors.As(err, &u) || len(u.Mend) != 1 || !strings.HasPrefix(u.Mend[0], want) {
			t.Errorf("%s: %v", host, err)
		}
	}
	p := &Platform{podman: true}
	if os.Geteuid() != 0 && !slices.Equal(p.withRoot(), []string{withoutEngine}) {
		t.Errorf("an ordinary user with Podman: %q", p.withRoot())
	}
}

// TestEngineHost checks that the engine is selected as docker(1) selects it.
func TestEngineHost(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT"} {
		t.Setenv(name, "")
	}
	t.Setenv("DOCKER_CONFIG", dir)
	expect := func(want string) {
		t.Helper()
		if got, err := Address(""); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	usual, err := Address("")
	if err != nil || !strings.Contains(usual, "docker") {
		t.Errorf("%q, %v", usual, err)
	}
	digest := sha256.Sum256([]byte("mine"))
	meta := filepath.Join(dir, "contexts", "meta", hex.EncodeToString(digest[:]))
	write(t, filepath.Join(meta, "meta.json"), `{"Name":"mine","Endpoints":{"docker":{"Host":"unix:///run/mine.sock"}}}`)
	write(t, filepath.Join(dir, "config.json"), `{"currentContext":"mine"}`)
	expect("unix:///run/mine.sock")
	t.Setenv("DOCKER_CONTEXT", "default")
	expect(usual)
	t.Setenv("DOCKER_HOST", "unix:///run/other.sock")
	expect("unix:///run/other.sock")
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "gone")
	if got, err := Address(""); err == nil {
		t.Errorf("a context that is not there: %q", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPlatformIsOneCall checks that reading an engine's abilities takes one call. Podman's service takes seconds for each.
func TestPlatformIsOneCall(t *testing.T) {
	for _, c := range []struct {
		header, answer, reason string
		podman                 bool
	}{
		{"", `{"OSType":"linux","Runtimes":{"runc":{}}}`, "", false},
		{"4.3.1", `{"OSType":"linux","Runtimes":{"runc":{}},"Rootless":false}`, "", true},
		{"4.3.1", `{"OSType":"linux","Rootless":true}`, "Podman at", true},
		{"", `{"OSType":"linux","SecurityOptions":["name=rootless"]}`, "Docker at", false},
		{"", `{"OSType":`, "unexpected end", false},
	} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			if c.header != "" {
				w.Header().Set(podmanHeader, c.header)
			}
			io.WriteString(w, c.answer)
		}))
		defer server.Close()
		e, err := Connect("tcp://" + server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Platform(t.Context(), "")
		if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) || p != nil && p.FillsLate() != c.podman {
			t.Errorf("%s: %+v, %v", c.answer, p, err)
		}
		if !slices.Equal(asked, []string{"/info"}) {
			t.Errorf("%s: requests %q", c.answer, asked)
		}
	}
}

// TestAbilitiesAreReused checks that the abilities are read again only if the engine has not answered in between.
func TestAbilitiesAreReused(t *testing.T) {
	read, down := 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down:
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/info":
			read++
			io.WriteString(w, `{"OSType":"linux"}`)
		default:
			w.Header().Set("Api-Version", minAPI)
		}
	}))
	defer server.Close()
	e, err := Connect("tcp://" + server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for want, before := range []func(){nil, func() {}, func() { down = true }} {
		if before != nil {
			before()
			if err := e.Awake(t.Context()); (err != nil) != down {
				t.Errorf("down %v: %v", down, err)
			}
			down = false
		}
		if _, err := e.Platform(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if want = max(want, 1); read != want {
			t.Errorf("read %d times, want %d", read, want)
		}
	}
}

// TestImpatientCaller checks that the error of a caller that has given up is not reused for the next caller.
func TestImpatientCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() == nil {
			cancel()
			<-r.Context().Done()
		}
		w.Header().Set("Api-Version", minAPI)
	}))
	defer server.Close()
	e, err := Connect("tcp://" + server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Awake(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who gave up: %v", err)
	}
	if err := e.Awake(t.Context()); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}
