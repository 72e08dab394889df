package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"

	"github.com/docker/docker/api/types/system"
)

// everything is an engine that can do all there is.
func everything() system.Info {
	return system.Info{
		MemoryLimit: true, SwapLimit: true, CPUCfsQuota: true, PidsLimit: true, NCPU: 8, DefaultRuntime: "runc",
		SecurityOptions: []string{"name=seccomp,profile=default"},
	}
}

// TestWeaker takes one thing after the other away from an engine: each is said, and nothing fails.
func TestWeaker(t *testing.T) {
	const always = "mountinfo"
	for what, c := range map[string]struct {
		lack   func(*system.Info)
		weaker string
	}{
		"nothing":  {func(*system.Info) {}, ""},
		"memory":   {func(i *system.Info) { i.MemoryLimit = false }, "memory is not limited"},
		"swap":     {func(i *system.Info) { i.SwapLimit = false }, "swapped out"},
		"cpu":      {func(i *system.Info) { i.CPUCfsQuota = false }, "cpus are not limited"},
		"pids":     {func(i *system.Info) { i.PidsLimit = false }, "processes are limited by uid"},
		"seccomp":  {func(i *system.Info) { i.SecurityOptions = nil }, "filters no system calls"},
		"selinux":  {func(i *system.Info) { i.SecurityOptions = append(i.SecurityOptions, "name=selinux") }, "SELinux"},
		"own kern": {func(i *system.Info) { i.DefaultRuntime = "runsc" }, "kernel of its own"},
	} {
		info := everything()
		c.lack(&info)
		spec := prison.Spec{UID: 1879100000, GID: 1879100000, User: "dev", Hostname: "h", Workspace: "/w", Limits: prison.Limits{CPUs: 99}}
		p, err := planner{platform: &platform{Info: info}, Spec: spec, record: &record{Key: "k"}, home: home{source: "/v"}}.prison()
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(p.weaker)
		if !strings.Contains(said, always) || !strings.Contains(said, c.weaker) || (c.weaker == "") != (len(p.weaker) == 1) {
			t.Errorf("without %s: %q", what, p.weaker)
		}
		r := p.host.Resources
		if (r.Memory == 0) != (what == "memory") || (r.NanoCPUs == 0) != (what == "cpu") || (r.PidsLimit == nil) != (what == "pids") {
			t.Errorf("without %s: %+v", what, r)
		}
		if what != "cpu" && r.NanoCPUs != 8e9 { // more than there are would be refused
			t.Errorf("without %s: %d cpus", what, r.NanoCPUs)
		}
	}
}

// TestRefuse names each engine that cannot have the phantom, and how to come to one that can.
func TestRefuse(t *testing.T) {
	for what, c := range map[string]struct {
		is              platform
		runtime, reason string
	}{
		"fit":             {platform{}, "", ""},
		"of another kind": {platform{Info: system.Info{OSType: "windows"}}, "", "windows"},
		"without root":    {platform{rootless: true}, "", "Docker at h runs without root"},
		"Podman's":        {platform{rootless: true, podman: true}, "", "Podman at h runs without root"},
		"mapping":         {platform{Info: system.Info{SecurityOptions: []string{"name=userns"}}}, "", "userns-remap"},
		"runtime":         {platform{Info: system.Info{Runtimes: map[string]system.RuntimeWithStatus{"runc": {}}}}, "runsc", `no runtime "runsc", only runc`},
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

// TestZeroSpec sees that a container for a spec with nothing loosened is as closed as it can be.
func TestZeroSpec(t *testing.T) {
	p, err := planner{platform: &platform{Info: everything()}, Spec: prison.Spec{UID: 7, GID: 8}, record: &record{Key: "k"}, home: home{source: "/v"}}.prison()
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
		own := strings.HasPrefix(m.Source, "/v/") && m.ReadOnly // its volume
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

// TestEngineHost finds the engine as docker(1) does.
func TestEngineHost(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT"} {
		t.Setenv(name, "")
	}
	t.Setenv("DOCKER_CONFIG", dir)
	expect := func(want string) {
		t.Helper()
		if got, err := engineHost(""); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	usual, err := engineHost("")
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
	if got, err := engineHost(""); err == nil {
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
