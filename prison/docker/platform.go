package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/walls"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"
)

// platform is what an engine can do for prisons.
type platform struct {
	system.Info
	podman   bool // it is Podman's service, which differs in a few things
	rootless bool // it is an ordinary user's
	weaker   []prison.Weakness
}

// platform asks the engine, and refuses one on which the phantom would be somebody else. What it says of
// itself holds for a moment: a start asks three times, and each time the engine looks at all that it has.
func (e *engine) platform(ctx context.Context, runtime string) (*platform, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.facts == nil || time.Since(e.told) > pingPatience {
		facts, err := e.examine(ctx)
		if err != nil {
			return nil, err
		}
		e.facts, e.told = facts, time.Now()
	}
	p := *e.facts
	return &p, p.refuse(e.host, runtime)
}

// examine asks the engine what it is and can do.
func (e *engine) examine(ctx context.Context) (*platform, error) {
	bounded, cancel := call(ctx)
	defer cancel()
	var version types.Version
	var versionErr error
	var beside sync.WaitGroup
	beside.Go(func() { version, versionErr = e.ServerVersion(bounded) })
	info, err := e.Info(bounded)
	beside.Wait()
	if err := cmp.Or(err, versionErr); err != nil {
		return nil, e.failed(ctx, "ask the engine", err)
	}
	p := &platform{Info: info, podman: slices.ContainsFunc(version.Components, func(c types.ComponentVersion) bool {
		return strings.HasPrefix(c.Name, "Podman")
	})}
	p.rootless = p.security("rootless")
	if p.podman {
		if p.rootless, err = e.podmanRootless(); err != nil {
			return nil, e.failed(ctx, "ask the engine", err)
		}
	}
	return p, nil
}

// podmanRootless asks Podman for what Docker's form of the answer has no field for.
func (e *engine) podmanRootless() (bool, error) {
	c := e.HTTPClient()
	c.Timeout = callPatience
	answer, err := c.Get("http://engine/v" + minAPI + "/info")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	var info struct{ Rootless bool }
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&info)
	return info.Rootless, err
}

// refuse tells why an engine cannot make prisons, if so.
func (p *platform) refuse(host, runtime string) error {
	_, known := p.Runtimes[runtime]
	switch {
	case p.OSType != "linux":
		return unavailable(fmt.Sprintf("the engine runs containers of %s", p.OSType), "switch it to Linux containers")
	case p.rootless:
		return unavailable(fmt.Sprintf("%s at %s runs without root: the phantom's uid is not among those it has", p.product(), host), p.withRoot()...)
	case p.security("userns"):
		// A container can be taken out of the map; the archives that the engine unpacks for us cannot.
		return unavailable("the engine maps user ids (userns-remap): on the disk the phantom would be somebody else",
			"git airlock start --backend native", "sudo \"${EDITOR:-vi}\" /etc/docker/daemon.json # take userns-remap out, then: sudo systemctl restart docker")
	case runtime != "" && !known:
		return unavailable(fmt.Sprintf("the engine has no runtime %q, only %s", runtime, strings.Join(slices.Sorted(maps.Keys(p.Runtimes)), ", ")),
			"sudo dockerd --validate --add-runtime "+runtime+"=/path/to/"+runtime+" # then the same in /etc/docker/daemon.json")
	}
	return nil
}

// Runtimes lists those that the engine knows.
func (b *Backend) Runtimes(ctx context.Context) ([]string, error) {
	e, err := b.engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	p, err := e.platform(ctx, "")
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(p.Runtimes)), nil
}

// product is what people call the engine.
func (p *platform) product() string {
	if p.podman {
		return "Podman"
	}
	return "Docker"
}

// withRoot are the commands that lead to an engine that has every uid.
func (p *platform) withRoot() []string {
	if p.podman {
		return []string{"sudo systemctl start podman.socket", "export DOCKER_HOST=unix:///run/podman/podman.sock"}
	}
	return []string{"export DOCKER_HOST=" + client.DefaultDockerHost}
}

// security reports whether a name is among the engine's security options, as "name=seccomp,profile=default".
func (p *platform) security(option string) bool {
	return slices.ContainsFunc(p.SecurityOptions, func(o string) bool {
		return slices.Contains(strings.Split(o, ","), "name="+option)
	})
}

// lacks notes a measure that this engine or machine cannot give.
func (p *platform) lacks(kind prison.Missing, text string) {
	p.weaker = append(p.weaker, prison.Weakness{Kind: kind, Text: text})
}

// runtime names what runs a prison's container.
func (p *platform) runtime(s prison.Spec) string { return cmp.Or(s.Runtime, p.DefaultRuntime) }

// filterName is the file of the prison's folder from which Podman, on this machine, reads the filter that Docker is given as text.
const filterName = "seccomp.json"

// layFilter puts it there.
func (p *platform) layFilter(s prison.Spec) error {
	if !p.podman {
		return nil
	}
	filter, err := walls.Profile()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, filterName), []byte(filter), 0o600)
}

// foreign reports whether another runtime than the engine's usual one, with a kernel or a machine of its
// own, runs the containers.
func (p *platform) foreign(runtime string) bool {
	if runtime == "" {
		runtime = p.DefaultRuntime
	}
	return runtime != "" && OwnKernel(runtime)
}

// OwnKernel reports whether a runtime is not known to run containers on this machine's kernel, as an [prison.Isolation] names it.
func OwnKernel(runtime string) bool {
	switch runtime {
	case "runc", "crun", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux":
		return false
	}
	return true
}
