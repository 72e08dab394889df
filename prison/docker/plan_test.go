package docker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"

	"github.com/docker/docker/api/types/system"
)

// everything describes an engine with all abilities.
func everything() system.Info {
	return system.Info{
		MemoryLimit: true, SwapLimit: true, CPUCfsQuota: true, PidsLimit: true, NCPU: 8, DefaultRuntime: "runc",
		SecurityOptions: []string{"name=seccomp,profile=default"},
	}
}

// TestWeaker removes one ability after the other from an engine. A plan must report each as a weakness, and must not fail.
func TestWeaker(t *testing.T) {
	const always = "mountinfo"
	for what, c := range map[string]struct {
		lack   func(*system.Info)
		weaker string
	}{
		"nothing":  {func(*system.Info) {}, ""},
		"memory":   {func(i *system.Info) { i.MemoryLimit = false }, "memory is not limited"},
		"swap":     {func(i *system.Info) { i.SwapLimit = false }, "swapped-out"},
		"cpu":      {func(i *system.Info) { i.CPUCfsQuota = false }, "cpus are not limited"},
		"pids":     {func(i *system.Info) { i.PidsLimit = false }, "processes are limited by uid"},
		"seccomp":  {func(i *system.Info) { i.SecurityOptions = nil }, "filters no system calls"},
		"selinux":  {func(i *system.Info) { i.SecurityOptions = append(i.SecurityOptions, "name=selinux") }, "SELinux"},
		"own kern": {func(i *system.Info) { i.DefaultRuntime = "runsc" }, "kernel of its own"},
	} {
		info := everything()
		c.lack(&info)
		spec := prison.Spec{UID: 1879100000, GID: 1879100000, User: "dev", Hostname: "h", Workspace: "/w", Limits: prison.Limits{CPUs: 99}}
		p, err := planner{Platform: &dialect.Platform{Info: info}, Spec: spec, state: &state{Key: "k"}, home: home{source: "/v"}}.prison()
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(p.weaker)
		if strings.Contains(said, always) == (what == "own kern") || !strings.Contains(said, c.weaker) || (c.weaker == "") != (len(p.weaker) == 1) {
			t.Errorf("without %s: %q", what, p.weaker)
		}
		r := p.host.Resources
		if (r.Memory == 0) != (what == "memory") || (r.NanoCPUs == 0) != (what == "cpu") || (r.PidsLimit == nil) != (what == "pids") {
			t.Errorf("without %s: %+v", what, r)
		}
		if what != "cpu" && r.NanoCPUs != 8e9 { // the engine would refuse more processors than the machine has
			t.Errorf("without %s: %d cpus", what, r.NanoCPUs)
		}
	}
}

// TestZeroSpec checks that a spec without any loosening has the strictest container.
func TestZeroSpec(t *testing.T) {
	p, err := planner{Platform: &dialect.Platform{Info: everything()}, Spec: prison.Spec{UID: 7, GID: 8}, state: &state{Key: "k"}, home: home{source: "/v"}}.prison()
	if err != nil {
		t.Fatal(err)
	}
	h := p.host
	if h.NetworkMode != "none" || h.Privileged || !h.ReadonlyRootfs || len(h.CapAdd) > 0 || len(h.CapDrop) != 1 || h.CapDrop[0] != "ALL" ||
		h.PidMode != "" || h.UTSMode != "" || h.IpcMode != "private" || h.CgroupnsMode != "private" || len(h.Devices) > 0 || h.AutoRemove {
		t.Errorf("%+v", h)
	}
	if h.SecurityOpt[0] != "no-new-privileges" || !strings.HasPrefix(h.SecurityOpt[1], "seccomp={") || len(h.SecurityOpt) != 2 {
		t.Errorf("security options: %.60q", h.SecurityOpt)
	}
	if p.config.User != nobody || p.config.Tty || len(h.Binds) > 0 {
		t.Errorf("%+v", p.config)
	}
	for _, m := range h.Mounts {
		own := strings.HasPrefix(m.Source, "/v/") && m.ReadOnly // the mount is in the home's volume
		if m.Type == "bind" && m.Target != prison.Workspace && !own {
			t.Errorf("shared with the host: %+v", m)
		}
	}
}

func TestContainerName(t *testing.T) {
	for name, want := range map[string]string{
		".devspace-7f3a-repo": "devspace-7f3a-repo", "..-x": "x", "": "work-id-1", "---": "work-id-1", "a b/c": "a-b-c",
		"ünï": "n-", "r" + strings.Repeat("x", 300): "r" + strings.Repeat("x", 99),
	} {
		if got := containerName(prison.Spec{Name: name, ID: "id/1"}); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
}
