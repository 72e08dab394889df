// Package dialect talks to a container engine of this machine. It determines the engine's address, version and product (Docker or
// Podman), and what the engine can do for prisons. It also contains the parts of the API that all rooms need: kinds of errors, time
// limits, and archives. Begin reading at [Connect] and [Engine.Platform].
package dialect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

const (
	// Name is the name of this backend in flags and messages.
	Name = "docker"
	// minAPI is the API version of Docker Engine 20.10.
	minAPI = "1.41"
	// pingPatience limits the time for checking whether an engine answers at all. An engine that is stopped by a
	// signal accepts connections and never answers.
	pingPatience = 5 * time.Second
	// platformPatience is how long the abilities of an engine that answers are not read again. They change only when the engine restarts.
	platformPatience = time.Minute
	// callPatience limits the time of a call without a stream.
	callPatience = 30 * time.Second
	// KillPatience is how long a killed command may take to end, or the engine to report its end.
	KillPatience = 10 * time.Second
	// StartPatience limits the time for a container to start or end, which may have to wait for the disk.
	StartPatience = 2 * time.Minute
)

// Engine is the connection to an engine on this machine.
type Engine struct {
	*client.Client
	Host string // address of the engine

	podman atomic.Bool // the engine was Podman's service earlier, see [Engine.Expect]

	mu      sync.Mutex
	pinged  time.Time // when the engine was last pinged
	pingErr error     // the result of that ping

	platform *Platform // the last known abilities of the engine
	examined time.Time // when they were read
}

// Connect returns a connection to the engine at an address. It does not contact the engine yet.
func Connect(host string) (*Engine, error) {
	if err := checkLocal(host); err != nil {
		return nil, err
	}
	opts := []client.Opt{client.WithAPIVersionNegotiation()}
	if strings.HasPrefix(host, "tcp:") {
		opts = append(opts, client.WithTLSClientConfigFromEnv())
	}
	c, err := client.NewClientWithOpts(append(opts, client.WithHost(host))...)
	if err != nil {
		return nil, Unavailable(fmt.Sprintf("the engine at %s cannot be used: %v", host, err), "unset DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH")
	}
	return &Engine{Client: c, Host: host}, nil
}

// checkLocal returns an error for an engine on another machine, which cannot share a folder of this one.
func checkLocal(host string) error {
	u, err := url.Parse(host)
	switch {
	case err != nil, u.Scheme == "", u.Scheme == "npipe", u.Scheme == "unix" && u.Host+u.Path == "":
		return Unavailable(fmt.Sprintf("%q is not the address of an engine on this machine", host), "export DOCKER_HOST="+client.DefaultDockerHost)
	case u.Scheme == "unix":
		return nil
	case u.Scheme == "tcp", u.Scheme == "http", u.Scheme == "https":
		if h := u.Hostname(); h == "localhost" || h == "::1" || strings.HasPrefix(h, "127.") {
			return nil
		}
	}
	return Unavailable("the engine at "+host+" is on another machine, which cannot share a folder of this one",
		"export DOCKER_HOST="+client.DefaultDockerHost)
}

// Unavailable returns the error for an engine that cannot make prisons, or not the requested one. mend are the commands that fix that.
func Unavailable(reason string, mend ...string) error {
	return &prison.Unavailable{Backend: Name, Reason: reason, Mend: mend}
}

// Failed adds a step to an error of the engine. If the error means that no engine answers, Failed returns a
// [prison.Unavailable]. The context is the caller's, without the time limit of a single call.
func (e *Engine) Failed(ctx context.Context, step string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", step, ctx.Err())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		service := "docker"
		if e.podman.Load() {
			service = "podman"
		}
		return &prison.Unavailable{Backend: Name, Silent: true, Reason: "the engine at " + e.Host + " does not answer",
			Mend: []string{"sudo systemctl restart " + service}}
	}
	if Unreachable(err) {
		return e.down(err)
	}
	return fmt.Errorf("%s: %w", step, err)
}

// Unreachable reports whether an error is about the connection to the engine.
func Unreachable(err error) bool {
	causes := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.ENOENT, syscall.EACCES}
	return client.IsErrConnectionFailed(err) || slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
}

// down returns the error for an engine that cannot be reached, with the commands that fix that.
func (e *Engine) down(err error) error {
	const start = "sudo systemctl start docker"
	if e.podman.Load() && !errors.Is(err, os.ErrPermission) {
		return Unavailable("Podman's service at "+e.Host+" does not run", startPodman...)
	}
	socket, isSocket := strings.CutPrefix(e.Host, "unix://")
	switch _, statErr := os.Stat(socket); {
	case errors.Is(err, os.ErrPermission) && (e.podman.Load() || path.Base(socket) != path.Base(client.DefaultDockerHost)):
		return Unavailable("you may not use the engine at "+e.Host, withoutEngine) // group docker has no rights there
	case errors.Is(err, os.ErrPermission):
		return Unavailable("you may not use the engine at "+e.Host,
			"sudo usermod -aG docker \"$USER\"  # then log in again; members of this group are as powerful as root")
	case isSocket && errors.Is(statErr, os.ErrNotExist):
		return Unavailable("there is no engine at "+e.Host, "sudo apt-get install docker.io", start)
	}
	return Unavailable("the engine at "+e.Host+" does not run", start)
}

// Expect sets the product of an engine that has not answered yet, as [Platform.Product] has named it earlier.
func (e *Engine) Expect(product string) { e.podman.Store(product == podmanName) }

// Call returns a context with a time limit for one API call without a stream.
func Call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callPatience)
}

// Inspect returns the engine's description of a container. It waits as long as [Call] allows.
func (e *Engine) Inspect(ctx context.Context, id string) (container.InspectResponse, error) {
	bounded, cancel := Call(ctx)
	defer cancel()
	return e.ContainerInspect(bounded, id)
}

// Containers lists containers.
func (e *Engine) Containers(ctx context.Context, o container.ListOptions) ([]container.Summary, error) {
	bounded, cancel := Call(ctx)
	defer cancel()
	list, err := e.ContainerList(bounded, o)
	return list, e.Failed(ctx, "list containers", err)
}

// Awake returns an error if no engine answers, or if the engine is too old. It reuses a recent error, so that a caller with several calls
// waits only once for an engine that does not answer. An error because ctx has ended is not reused, since it says nothing about the
// engine.
func (e *Engine) Awake(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pingErr != nil && time.Since(e.pinged) <= pingPatience {
		return e.pingErr
	}
	err := e.ping(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if e.pingErr, e.pinged = err, time.Now(); err != nil {
		e.platform = nil
	}
	return err
}

func (e *Engine) ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	p, err := e.Ping(bounded)
	if err != nil {
		return e.Failed(ctx, "ask the engine", err)
	}
	if p.APIVersion != "" && versions.LessThan(p.APIVersion, minAPI) {
		return Unavailable(fmt.Sprintf("the engine speaks version %s of the API, %s is needed", p.APIVersion, minAPI),
			"install Docker Engine 20.10 or newer")
	}
	e.NegotiateAPIVersionPing(p)
	return nil
}

// Gone reports whether an error means that the requested object does not exist, or no longer exists.
func Gone(err error) bool { return errdefs.IsNotFound(err) }

// NotNow reports whether an error means that a container is in the wrong state for the request.
func NotNow(err error) bool {
	return errdefs.IsConflict(err) || errdefs.IsNotModified(err) || err != nil && strings.HasSuffix(err.Error(), noUpgrade)
}

// noUpgrade is the end of the client's error if the engine refuses a request for a stream as a conflict. The client does not mark that
// error as a conflict.
const noUpgrade = "received 409"

// Refused reports whether an error means that the request is invalid and can never succeed.
func Refused(err error) bool { return errdefs.IsInvalidArgument(err) }

// Create creates a container. If name is empty, the engine chooses one. The call goes on after ctx has ended, and then removes the
// container: if the call were cut short, the engine would still make a container, and nobody would know its id. Create also removes a
// container in which another folder of the host would be mounted than the given one.
func (e *Engine) Create(ctx context.Context, config *container.Config, host *container.HostConfig, name string) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	said, err := e.exact(ctx, host)
	if err != nil {
		return "", err
	}
	whole := context.WithoutCancel(ctx)
	bounded, cancel := Call(whole)
	defer cancel()
	c, err := e.ContainerCreate(bounded, config, said, nil, nil, name)
	if err == nil {
		if err = cmp.Or(ctx.Err(), e.checkMounts(bounded, c.ID, host.Mounts)); err != nil {
			err = errors.Join(err, e.Remove(whole, c.ID))
		}
	}
	if err != nil {
		return "", err
	}
	return c.ID, nil
}

// Remove removes a container in any state, with its anonymous volumes.
func (e *Engine) Remove(ctx context.Context, id string) error {
	bounded, cancel := context.WithTimeout(ctx, StartPatience)
	defer cancel()
	for deadline := time.Now().Add(KillPatience); ; time.Sleep(50 * time.Millisecond) {
		err := e.ContainerRemove(bounded, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || Gone(err) {
			return nil
		}
		if NotNow(err) { // the engine is removing it already
			return e.awaitRemoval(ctx, id)
		}
		// Podman refuses while it is about to remove the container itself.
		if Unreachable(err) || bounded.Err() != nil || time.Now().After(deadline) {
			return e.Failed(ctx, "remove container", err)
		}
	}
}

// awaitRemoval waits until the engine has removed a container.
func (e *Engine) awaitRemoval(ctx context.Context, id string) error {
	bounded, cancel := context.WithTimeout(ctx, StartPatience)
	defer cancel()
	ended, errs := e.ContainerWait(bounded, id, container.WaitConditionRemoved)
	select {
	case <-ended:
		return nil
	case err := <-errs:
		if Gone(err) {
			return nil
		}
		return e.Failed(ctx, "wait for the container's removal", err)
	}
}

// SweepAge is the age from which a container that does not run counts as left over. Every helper ends earlier, and every container is
// started earlier.
const SweepAge = 10 * time.Minute
