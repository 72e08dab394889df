package docker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/system"
)

// platform is what an engine can do for prisons.
type platform struct {
	system.Info
	weaker []string
}

// platform asks the engine, and refuses one on which the phantom would be somebody else.
func (e *engine) platform(ctx context.Context, runtime string) (*platform, error) {
	bounded, cancel := call(ctx)
	defer cancel()
	info, err := e.Info(bounded)
	if err != nil {
		return nil, e.failed(ctx, "ask the engine", err)
	}
	p := &platform{Info: info}
	switch {
	case info.OSType != "linux":
		return nil, unavailable(fmt.Sprintf("the engine runs containers of %s", info.OSType), "switch it to Linux containers")
	case p.security("rootless"):
		return nil, unavailable("the engine at "+e.host+" runs without root: the phantom's uid is not among those it has",
			"export DOCKER_HOST=unix:///var/run/docker.sock")
	}
	if _, known := info.Runtimes[runtime]; runtime != "" && !known {
		return nil, unavailable(fmt.Sprintf("the engine has no runtime %q, only %s", runtime,
			strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", ")),
			"sudo dockerd --validate --add-runtime "+runtime+"=/path/to/"+runtime+" # then the same in /etc/docker/daemon.json")
	}
	return p, nil
}

// security tells whether a name is among the engine's security options, as "name=seccomp,profile=default".
func (p *platform) security(option string) bool {
	return slices.ContainsFunc(p.SecurityOptions, func(o string) bool {
		return slices.Contains(strings.Split(o, ","), "name="+option)
	})
}

// lacks notes a measure that this engine or machine cannot give.
func (p *platform) lacks(format string, args ...any) {
	p.weaker = append(p.weaker, fmt.Sprintf(format, args...))
}

// runtime names what runs a prison's container.
func (p *platform) runtime(s prison.Spec) string { return cmp.Or(s.Runtime, p.DefaultRuntime) }

// foreign tells whether another runtime than the engine's usual one, with a kernel or a machine of its
// own, runs the containers.
func (p *platform) foreign(runtime string) bool {
	if runtime == "" {
		runtime = p.DefaultRuntime
	}
	switch runtime {
	case "", "runc", "crun", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux":
		return false
	}
	return true
}

// limitInside bounds the agent's processes where the runtime's kernel counts them itself: to reach the host's limit, which is
// for that kernel as a whole, is its end.
func (e *engine) limitInside(ctx context.Context, p *platform, r *record, s prison.Spec) error {
	if !p.foreign(s.Runtime) {
		return nil
	}
	root := &running{engine: e, id: r.Container, user: "0:0"}
	limit := fmt.Sprintf("echo %d >/sys/fs/cgroup/pids/pids.max", s.Limits.OrDefault().PIDs)
	status, err := root.plain(ctx, []string{defaultSh, "-c", limit})
	if err == nil && status != 0 {
		err = unavailable(fmt.Sprintf("the runtime %q does not limit processes", p.runtime(s)), "git airlock start --runtime runsc")
	}
	return err
}
