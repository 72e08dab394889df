package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

const (
	name = "docker"
	// minAPI is Docker Engine 20.10's.
	minAPI = "1.41"
	// pingPatience bounds the question whether an engine answers at all. One that is stopped by a signal accepts
	// connections and never does.
	pingPatience = 5 * time.Second
	// callPatience bounds a call that has no stream.
	callPatience = 30 * time.Second
	// startPatience bounds a container's start or end, which may have to wait for the disk.
	startPatience = 2 * time.Minute
)

// engine is a Docker engine on this machine.
type engine struct {
	*client.Client
	host string

	mu    sync.Mutex
	asked time.Time // when it was last asked whether it answers
	said  error     // what came of it

	facts *platform // what it said of itself
	told  time.Time // when
}

// connect returns a client for the engine at an address. Nothing is said to it yet.
func connect(host string) (*engine, error) {
	if err := checkLocal(host); err != nil {
		return nil, err
	}
	opts := []client.Opt{client.WithAPIVersionNegotiation()}
	if strings.HasPrefix(host, "tcp:") {
		opts = append(opts, client.WithTLSClientConfigFromEnv())
	}
	c, err := client.NewClientWithOpts(append(opts, client.WithHost(host))...)
	if err != nil {
		return nil, unavailable(fmt.Sprintf("the engine at %s cannot be used: %v", host, err), "unset DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH")
	}
	return &engine{Client: c, host: host}, nil
}

// checkLocal refuses engines elsewhere: they cannot share a folder of this machine.
func checkLocal(host string) error {
	u, err := url.Parse(host)
	if err != nil {
		return noAddress(host)
	}
	switch u.Scheme {
	case "unix":
		if u.Host+u.Path == "" {
			return noAddress(host)
		}
		return nil
	case "":
		return noAddress(host)
	case "npipe":
		if runtime.GOOS != "windows" {
			return noAddress(host)
		}
		return nil
	case "tcp", "http", "https":
		if h := u.Hostname(); h == "localhost" || h == "::1" || strings.HasPrefix(h, "127.") {
			return nil
		}
	}
	return unavailable("the engine at "+host+" is on another machine, which cannot share a folder of this one",
		"export DOCKER_HOST="+client.DefaultDockerHost)
}

// noAddress is about an address that no engine of this machine can have.
func noAddress(host string) error {
	return unavailable(fmt.Sprintf("%q is not the address of an engine on this machine", host), "export DOCKER_HOST="+client.DefaultDockerHost)
}

func unavailable(reason string, mend ...string) error {
	return &prison.Unavailable{Backend: name, Reason: reason, Mend: mend}
}

// failed adds a step to an error of the engine's; if it says that nobody answers, it becomes an
// [prison.Unavailable]. ctx is the caller's, without the bounds of a single call.
func (e *engine) failed(ctx context.Context, step string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", step, ctx.Err())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return unavailable("the engine at "+e.host+" does not answer", "sudo systemctl restart docker")
	}
	if unreachable(err) {
		return e.down(err)
	}
	return fmt.Errorf("%s: %w", step, err)
}

// unreachable reports whether an error is about the connection to the engine.
func unreachable(err error) bool {
	if client.IsErrConnectionFailed(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	for _, cause := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.ENOENT, syscall.EACCES,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// down says what to do about an engine that cannot be reached.
func (e *engine) down(err error) error {
	const start = "sudo systemctl start docker"
	socket, isSocket := strings.CutPrefix(e.host, "unix://")
	switch _, statErr := os.Stat(socket); {
	case errors.Is(err, os.ErrPermission):
		return unavailable("you may not use the engine at "+e.host,
			"sudo usermod -aG docker \"$USER\" # then log in again; members of this group are as powerful as root")
	case isSocket && errors.Is(statErr, os.ErrNotExist):
		return unavailable("there is no engine at "+e.host, "sudo apt-get install docker.io", start)
	}
	return unavailable("the engine at "+e.host+" does not run", start)
}

// call bounds one call of the API.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callPatience)
}

// awake makes sure that an engine that is new enough answers. What it learns holds for a moment, so that whoever
// does one thing after the other waits once for an engine that does not.
func (e *engine) awake(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.said == nil || time.Since(e.asked) > pingPatience {
		e.said = e.ping(ctx)
		e.asked = time.Now()
	}
	return e.said
}

func (e *engine) ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	p, err := e.Ping(bounded)
	if err != nil {
		return e.failed(ctx, "ask the engine", err)
	}
	if p.APIVersion != "" && versions.LessThan(p.APIVersion, minAPI) {
		return unavailable(fmt.Sprintf("the engine speaks version %s of the API, %s is needed", p.APIVersion, minAPI),
			"install Docker Engine 20.10 or newer")
	}
	e.NegotiateAPIVersionPing(p)
	return nil
}

// gone reports whether an error says that what was asked for does not exist, or not any more.
func gone(err error) bool { return errdefs.IsNotFound(err) }

// notNow reports whether an error says that a container is in the wrong state for what was asked.
func notNow(err error) bool { return errdefs.IsConflict(err) || errdefs.IsNotModified(err) }
