package dialect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
)

// Platform describes what an engine can do for prisons.
type Platform struct {
	system.Info
	podman   bool              // the engine is Podman's service, which differs in a few ways
	rootless bool              // the engine runs as an ordinary user
	Weaker   []prison.Weakness // measures that this engine or machine cannot provide, see [Platform.Lacks]
}

// Platform returns the abilities of the engine. It returns an error if the phantom would have another uid on the disk, or if the engine
// does not have the runtime. It reuses a recent result as long as the engine answers: a start calls Platform three times, and each answer
// makes the engine examine all its objects.
func (e *Engine) Platform(ctx context.Context, runtime string) (*Platform, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.platform == nil || time.Since(e.examined) > platformPatience {
		platform, err := e.examine(ctx)
		if err != nil {
			return nil, err
		}
		e.platform, e.examined = platform, time.Now()
	}
	p := *e.platform
	return &p, p.refuse(e.Host, runtime)
}

// examine reads the kind and the abilities of the engine with one call: Podman runs about ten programs for an answer, which takes seconds
// on a busy machine.
func (e *Engine) examine(ctx context.Context) (*Platform, error) {
	bounded, cancel := Call(ctx)
	defer cancel()
	read := make(chan engineInfo, 1)
	go func() { read <- e.info() }() // info ends after callPatience, even if bounded ends first
	var i engineInfo
	select {
	case i = <-read:
	case <-bounded.Done():
		i.err = bounded.Err()
	}
	if i.err != nil {
		return nil, e.Failed(ctx, "ask the engine", i.err)
	}
	p := &Platform{Info: i.Info, podman: i.podman}
	p.rootless = p.Security("rootless") || i.Rootless
	return p, nil
}

// engineInfo is the engine's answer about itself.
type engineInfo struct {
	system.Info
	Rootless bool // in Podman's answer only

	podman bool
	err    error
}

const (
	// podmanHeader is a header of all answers of Podman's service.
	podmanHeader = "Libpod-Api-Version"
	podmanName   = "Podman"
	maxInfo      = 1 << 20
	statusOK     = 200
)

// info reads the engine's answer about itself. It does not use the API's client, which drops podmanHeader and Rootless.
func (e *Engine) info() (i engineInfo) {
	c := e.HTTPClient()
	c.Timeout = callPatience
	answer, err := c.Get(base(e.Host) + "/info") //nolint:noctx // the client has a time limit, and a context needs another package
	if err != nil {
		return engineInfo{err: err}
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxInfo))
	if err == nil && answer.StatusCode != statusOK {
		err = errors.New(answer.Status)
	}
	if err == nil {
		err = json.Unmarshal(content, &i)
	}
	i.podman, i.err = answer.Header.Get(podmanHeader) != "", err
	return i
}

// refuse returns an error if the engine cannot make prisons.
func (p *Platform) refuse(host, runtime string) error {
	_, known := p.Runtimes[runtime]
	switch {
	case p.OSType != "linux":
		return Unavailable(fmt.Sprintf("the engine runs containers of %s", p.OSType), "switch it to Linux containers")
	case p.rootless:
		return Unavailable(fmt.Sprintf("%s at %s runs without root: the phantom's uid is not among those it has", p.Product(), host), p.withRoot()...)
	case p.Security("userns"):
		// A container could be excluded from the mapping, but the archives that the engine unpacks for us could not.
		return Unavailable("the engine maps user ids (userns-remap): on the disk the phantom would be somebody else",
			withoutEngine, "sudo \"${EDITOR:-vi}\" /etc/docker/daemon.json  # take userns-remap out, then: sudo systemctl restart docker")
	case runtime != "" && !known:
		return Unavailable(fmt.Sprintf("the engine has no runtime %q, only %s", runtime, strings.Join(slices.Sorted(maps.Keys(p.Runtimes)), ", ")),
			"sudo dockerd --validate --add-runtime "+runtime+"=/path/to/"+runtime+"  # then the same in /etc/docker/daemon.json")
	}
	return nil
}

// Product returns the name of the engine as users know it.
func (p *Platform) Product() string {
	if p.podman {
		return podmanName
	}
	return "Docker"
}

// withoutEngine is the command for a prison that needs no engine.
const withoutEngine = "git airlock start --backend native"

// startPodman are the commands for Podman's service that can use every uid. Only root can use its socket.
var startPodman = []string{"sudo systemctl start podman.socket", "export DOCKER_HOST=unix:///run/podman/podman.sock"}

// withRoot returns the commands for a user whose engine cannot use every uid.
func (p *Platform) withRoot() []string {
	switch {
	case !p.podman:
		return []string{"export DOCKER_HOST=" + client.DefaultDockerHost}
	case os.Geteuid() != 0:
		return []string{withoutEngine}
	}
	return startPodman
}

// Security reports whether a name is among the engine's security options, as "name=seccomp,profile=default".
func (p *Platform) Security(option string) bool {
	return slices.ContainsFunc(p.SecurityOptions, func(o string) bool {
		return slices.Contains(strings.Split(o, ","), "name="+option)
	})
}

// Lacks records a measure that this engine or machine cannot provide.
func (p *Platform) Lacks(kind prison.Missing, text string) {
	p.Weaker = append(p.Weaker, prison.Weakness{Kind: kind, Text: text})
}

// RuntimeOf returns the name of the runtime for a prison's container.
func (p *Platform) RuntimeOf(s prison.Spec) string { return cmp.Or(s.Runtime, p.DefaultRuntime) }

// Foreign reports whether the containers run under a runtime other than the engine's usual one, with a kernel or a
// virtual machine of its own.
func (p *Platform) Foreign(runtime string) bool {
	runtime = cmp.Or(runtime, p.DefaultRuntime)
	return runtime != "" && OwnKernel(runtime)
}

// HidesPaths reports whether a runtime is known to show no path of the host in mountinfo. gVisor's kernel shows its own mounts there.
func (p *Platform) HidesPaths(runtime string) bool {
	return strings.HasPrefix(cmp.Or(runtime, p.DefaultRuntime), "runsc")
}

// OwnKernel reports whether a runtime is not one of those known to run containers on this machine's kernel. The
// name is as in [prison.Isolation].
func OwnKernel(runtime string) bool {
	switch runtime {
	case "runc", "crun", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux":
		return false
	}
	return true
}
