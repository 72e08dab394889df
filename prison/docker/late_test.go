package docker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"

	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

// TestLateEngine executes a command in a container that has ended, while the engine reports that the container runs and its runtime
// starts nothing. A busy engine is in that state for seconds.
func TestLateEngine(t *testing.T) {
	t.Parallel()
	need(t)
	e := newLateEngine(t)
	s, p := started(t, docker.New(e.address), func(*prison.Spec) {})
	try := func() error {
		_, err := p.Exec(t.Context(), prison.Process{Argv: []string{"true"}})
		return err
	}
	e.setLate(true)
	if err := try(); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("in a container that runs: %v", err)
	}
	boxes, _ := labelled(t, s.ID)
	if len(boxes) != 1 {
		t.Fatalf("%d containers", len(boxes))
	}
	if err := engine(t).ContainerKill(t.Context(), boxes[0].ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*time.Second, func() { e.setLate(false) })
	if err := try(); !errors.Is(err, prison.ErrNotRunning) {
		t.Errorf("in a container that has ended: %v", err)
	}
}

// TestLatelyPaused executes a command in a container that the engine still reports as paused.
func TestLatelyPaused(t *testing.T) {
	t.Parallel()
	need(t)
	e := newLateEngine(t)
	b := docker.New(e.address)
	s, p := started(t, b, func(*prison.Spec) {})
	e.mu.Lock()
	e.conflicts, e.paused = 3, 3
	e.mu.Unlock()
	again, err := b.Attach(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if status, out := sh(t, p, "echo once"); status != 0 || out != "once\n" {
		t.Errorf("status %d, %q", status, out)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conflicts+e.paused != 0 {
		t.Errorf("%d conflicts and %d reports are left", e.conflicts, e.paused)
	}
}

// TestFailsOnce executes commands that the engine's runtime cannot start at the first try. A command with input that is lost fails,
// another command is tried again, and so is the one that kills a command.
func TestFailsOnce(t *testing.T) {
	t.Parallel()
	need(t)
	e := newLateEngine(t)
	_, p := started(t, docker.New(e.address), func(*prison.Spec) {})
	fails := func(times int, stdin io.Reader) (int, string, error) {
		e.mu.Lock()
		e.failures = times
		e.mu.Unlock()
		var out bytes.Buffer
		status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"echo", "once"}, Stdin: stdin, Stdout: &out})
		return status, out.String(), err
	}
	if status, out, err := fails(1, nil); status != 0 || out != "once\n" || err != nil {
		t.Errorf("status %d, %q, %v", status, out, err)
	}
	if _, out, err := fails(1, strings.NewReader("input")); err == nil || !strings.Contains(err.Error(), refusal) || out != "" {
		t.Errorf("with input: %q, %v", out, err)
	}
	ctx, end := context.WithCancel(t.Context())
	begun := func(out []byte) (int, error) {
		e.mu.Lock()
		e.failures = 1
		e.mu.Unlock()
		end()
		return len(out), nil
	}
	_, err := p.Exec(ctx, prison.Process{Argv: []string{"sh", "-c", "echo begun; sleep 7775"}, Stdout: writerFunc(begun)})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "killing it") {
		t.Errorf("killed: %v", err)
	}
	if status, err := p.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-c", "! grep -lz '^7775$' /proc/[0-9]*/cmdline"}}); status != 0 || err != nil {
		t.Errorf("not killed: status %d, %v", status, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestImageRemovedWhileBuilding builds an image. Before the second step begins, another command removes the image of the first one.
func TestImageRemovedWhileBuilding(t *testing.T) {
	t.Parallel()
	need(t)
	e := newLateEngine(t)
	build := func(losses int) error {
		e.mu.Lock()
		e.losses = losses
		e.mu.Unlock()
		return docker.New(e.address).BuildImage(t.Context(), newBuild(t, "removed", "LABEL removed=while-building"))
	}
	if err := build(2); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	if err := build(4); err == nil || !strings.Contains(err.Error(), `step 2 of 2, "RUN true": failed to get digest`) {
		t.Errorf("always removed: %v", err)
	}
}

// refusal is the message of a runtime about a command in a container that has ended.
const refusal = "cannot exec in a stopped state"

// lateEngine passes requests to the engine. While it is late, it reports the last known state of a container, and refuses to start
// commands.
type lateEngine struct {
	address string
	engine  http.Handler

	mu        sync.Mutex
	late      bool
	state     []byte // the state of the container that was inspected last
	conflicts int    // how many starts of commands are refused with a conflict
	paused    int    // how many reports still say that the container is paused
	failures  int    // how many commands cannot be started
	losses    int    // how many builds lose the image of a step
}

func newLateEngine(t *testing.T) *lateEngine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	e := &lateEngine{address: "unix://" + socket}
	e.engine = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(client.DefaultDockerHost, "unix://"))
		}},
		ModifyResponse: e.remember, FlushInterval: -1,
	}
	server := &http.Server{Handler: e}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return e
}

func (e *lateEngine) setLate(late bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = late
}

// remember stores the state of a container.
func (e *lateEngine) remember(r *http.Response) error {
	path := r.Request.URL.Path
	if r.StatusCode != http.StatusOK || !strings.Contains(path, "/containers/") || !strings.HasSuffix(path, "/json") || strings.HasSuffix(path, "/containers/json") {
		return nil
	}
	state, err := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = state
	if e.paused > 0 {
		e.paused--
		state = bytes.Replace(state, []byte(`"Paused":false`), []byte(`"Paused":true`), 1)
		r.Header.Del("Content-Length")
		r.ContentLength = -1
	}
	r.Body = io.NopCloser(bytes.NewReader(state))
	return err
}

// ServeHTTP implements [http.Handler].
func (e *lateEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	late, state := e.late, e.state
	failure := e.failures > 0 && strings.Contains(r.URL.Path, "/containers/") && strings.HasSuffix(r.URL.Path, "/exec")
	if failure {
		e.failures--
	}
	loss := e.losses > 0 && strings.HasSuffix(r.URL.Path, "/build")
	if loss {
		e.losses--
	}
	conflict := e.conflicts > 0 && strings.Contains(r.URL.Path, "/exec/") && strings.HasSuffix(r.URL.Path, "/start")
	if conflict {
		e.conflicts--
	}
	e.mu.Unlock()
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/") // without the API's version
	answer := func(status int, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write(body)
	}
	switch {
	case loss:
		io.Copy(io.Discard, r.Body)
		answer(http.StatusOK, []byte(`{"stream":"Step 1/2 : FROM base\n"}{"stream":" ---\u003e 0123456789ab\n"}`+
			`{"stream":"Step 2/2 : RUN true\n"}{"error":"failed to get digest"}`))
	case conflict:
		answer(http.StatusConflict, []byte(`{"message":"the container is paused"}`))
	case failure:
		answer(http.StatusCreated, []byte(`{"Id":"late"}`))
	case path == "exec/late/start":
		refuse(w, r)
	case path == "exec/late/json":
		answer(http.StatusOK, []byte(`{"ID":"late","Running":false,"ExitCode":126}`))
	case !late:
		e.engine.ServeHTTP(w, r)
	case strings.HasPrefix(path, "containers/") && strings.HasSuffix(path, "/exec"):
		answer(http.StatusCreated, []byte(`{"Id":"late"}`))
	case strings.HasPrefix(path, "containers/") && strings.HasSuffix(path, "/json"):
		answer(http.StatusOK, state)
	default:
		e.engine.ServeHTTP(w, r)
	}
}

// refuse answers like an engine whose runtime could not start a command.
func refuse(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	io.WriteString(stdcopy.NewStdWriter(c, stdcopy.Stdout), refusal+": unknown\r\n")
	c.(*net.UnixConn).CloseWrite()
	io.Copy(io.Discard, c) // wait until the client has closed the connection
}
