package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

func init() {
	scriptCommands["onengine"] = cmdOnEngine
	scriptCommands["killprison"] = cmdKillPrison
	scriptCommands["paused"] = cmdPaused
	scriptCommands["tagimage"] = cmdTagImage
	scriptCommands["imagewith"] = cmdImageWith
}

// testImage returns the name of an image with git and a shell for tests.
func testImage() string {
	if image := os.Getenv("AIRLOCK_TEST_IMAGE"); image != "" {
		return image
	}
	return "airlock-test-base"
}

func needDocker(t *testing.T) {
	t.Helper()
	err := prisons.Containers().Probe(t.Context())
	if err == nil {
		err = prisons.Containers().CheckImage(t.Context(), testImage())
	}
	prisontest.Need(t, "docker", err)
}

// TestDocker runs the scripts about containers, which choose their backend and image.
func TestDocker(t *testing.T) {
	needDocker(t)
	t.Parallel()
	runScripts(t, scriptsIn(t, "script/docker"), testscript.Params{Setup: withImage(setup(t)), RequireUniqueNames: true})
}

// elsewhere lists the scripts about the native prison or about none, and the script that searches for the workspace's path, which a
// container shows. [TestOtherEngines] tests selftest in containers, and home-full tests the watchdog. Of [anyPlace] only interrupt, moved and sync are
// left, which end containers, find them, and write into them.
var elsewhere = []string{"advice", "agent-missing", "agents", "agents-key", "called", "ci", "colours", "config", "doctor", "doctor-recovers", "dry-run", "errors", "filter-network", "foreign", "freeze-interrupt", "freeze-restless", "frozen", "full", "hard-limits", "help", "hidden", "home-disk", "kept-options", "kept-settings", "languages", "limits",
	"net-live", "net-rules", "net-unneeded", "network", "network-allowlist", "network-credentials", "network-fetched", "network-guess", "network-hidden", "network-limit", "network-logins", "network-model", "network-pair", "network-proxy", "network-proxy-fails", "network-proxy-silent", "network-refused", "network-requests", "no-range", "none", "partial", "places-bytes", "progress", "proxy-typed", "read-only", "reasons", "replay", "report",
	"run-output-lost", "runs", "runs-kill", "selftest", "share", "share-hostile", "tools", "umask", "usage", "user-git", "watch", "whole", "workspace-full"}

// landingOnly lists the prefixes of scripts about landing and about landed commits, which is the same for all backends and users.
var landingOnly = []string{"brought", "clear-hang", "clear-refuses", "compare", "drain", "engine-", "events", "exact-", "exclude", "hold-", "hooks", "hygiene", "identity", "include", "init",
	"kill-daemon", "kill-promote", "kill-sync", "list", "log", "names", "pager-place", "policy-", "pr.", "push-", "recipe", "refs-deleted", "rescue", "review", "rewritten", "scan", "second-worktree", "settings-tree", "several", "sha256", "sign.", "snapshot", "state-of-affairs", "status-", "submodule-diff", "undo", "upto", "user-"}

// again lists the scripts that depend on file owners. An ordinary user runs them in containers, too.
var again = []string{"basic", "clear-discards", "home-full", "stop-start", "worktrees"}

// isLanding reports whether a script is about landing.
func isLanding(file string) bool {
	return slices.ContainsFunc(landingOnly, func(prefix string) bool { return strings.HasPrefix(filepath.Base(file), prefix) })
}

// TestScriptInContainers runs the general scripts once more, with the user's settings asking for prisons.Containers().
func TestScriptInContainers(t *testing.T) {
	needDocker(t)
	t.Parallel()
	files := slices.DeleteFunc(scriptsIn(t, "script"), func(file string) bool {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		return slices.Contains(elsewhere, name) || isLanding(file) || os.Geteuid() != 0 && !slices.Contains(again, name)
	})
	config := "[airlock]\n\tbackend = docker\n\timage = " + testImage() + "\n"
	runScripts(t, files, testscript.Params{Setup: withImage(setup(t, config))})
}

// TestOtherEngines runs the lifecycle with other runtimes and engines than Docker's default.
func TestOtherEngines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, host, runtime, config string }{
		{"runsc", os.Getenv("AIRLOCK_TEST_RUNSC"), "runsc", "\truntime = runsc\n"},
		{"podman", cmp.Or(os.Getenv("AIRLOCK_TEST_PODMAN"), "unix:///run/podman/podman.sock"), "runc", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prisontest.Need(t, c.name, usable(t, c.host, c.runtime))
			config := "[airlock]\n\tbackend = docker\n\timage = " + testImage() + "\n" + c.config
			prepare := withImage(setup(t, config))
			runScripts(t, scriptsIn(t, "script/engines"), testscript.Params{
				Setup: func(env *testscript.Env) error {
					err := prepare(env)
					env.Setenv("RUNTIME", c.runtime)
					if c.host != "" {
						env.Setenv("DOCKER_HOST", c.host)
					}
					return err
				}})
		})
	}
}

// usable returns an error if prisons cannot be made on an engine.
func usable(t *testing.T, host, runtime string) error {
	b := docker.New(host)
	return errors.Join(b.CheckRuntime(t.Context(), runtime), b.CheckImage(t.Context(), testImage()))
}

// withImage adds the image to the environment of scripts.
func withImage(setup func(*testscript.Env) error) func(*testscript.Env) error {
	return func(env *testscript.Env) error {
		env.Setenv("IMAGE", testImage())
		env.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
		return setup(env)
	}
}

// onengine [-soon] N checks that the last started airlock has N containers, volumes and networks. The container of an exporter, which
// is used if a native one is not possible, does not count.
func cmdOnEngine(ts *testscript.TestScript, neg bool, args []string) {
	within := time.Duration(0)
	if len(args) == 2 && args[0] == "-soon" {
		within, args = patience, args[1:]
	}
	usage(ts, neg || len(args) != 1, "onengine [-soon] N")
	airlocks := worldOf(ts).airlocks
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		boxes, others := onEngine(ts, airlocks[len(airlocks)-1])
		all := boxes
		if args[0] != "0" {
			boxes = slices.DeleteFunc(boxes, func(b container.Summary) bool { return b.Labels["workspace.role"] == "look" })
		}
		if strconv.Itoa(len(boxes)+others) == args[0] {
			return
		}
		if time.Since(begun) > within {
			for _, b := range all {
				ts.Logf("%v %s %v", b.Names, b.State, b.Labels)
			}
			ts.Fatalf("%d containers, %d volumes and networks", len(boxes), others)
		}
	}
}

// paused pauses the container of the last started airlock. "! paused" unpauses it.
func cmdPaused(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) != 0, "[!] paused")
	airlocks := worldOf(ts).airlocks
	c := engineClient(ts)
	defer c.Close()
	id := prisonOnEngine(ts, airlocks[len(airlocks)-1])
	if neg {
		ts.Check(c.ContainerUnpause(context.Background(), id))
		return
	}
	// On version 1 of control groups, the runtime gives up early if processes start all the time.
	err := c.ContainerPause(context.Background(), id)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		err = c.ContainerPause(context.Background(), id)
	}
	ts.Check(err)
}

// tagimage IMAGE NAME gives an image another name until the end of the script. The name is taken from the image that has it.
func cmdTagImage(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "tagimage IMAGE NAME")
	c := engineClient(ts)
	defer c.Close()
	ts.Check(c.ImageTag(context.Background(), args[0], args[1]))
	host := engineClient(ts)
	ts.Defer(func() {
		host.ImageRemove(context.Background(), args[1], image.RemoveOptions{}) // an earlier call may have removed it
		host.Close()
	})
}

// imagewith NAME VARIABLE=VALUE... makes an image from $IMAGE with more variables, until the script ends.
func cmdImageWith(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 2, "imagewith NAME VARIABLE=VALUE...")
	c, ctx := engineClient(ts), context.Background()
	ts.Defer(func() { c.Close() })
	box, err := c.ContainerCreate(ctx, &container.Config{Image: ts.Getenv("IMAGE"), Cmd: []string{"true"}}, nil, nil, nil, "")
	ts.Check(err)
	o := container.CommitOptions{Reference: args[0], Config: &container.Config{}} // Podman wants one
	for _, variable := range args[1:] {
		o.Changes = append(o.Changes, "ENV "+variable)
	}
	_, err = c.ContainerCommit(ctx, box.ID, o)
	ts.Check(errors.Join(err, c.ContainerRemove(ctx, box.ID, container.RemoveOptions{Force: true})))
	ts.Defer(func() { c.ImageRemove(ctx, args[0], image.RemoveOptions{Force: true}) })
}

func engineClient(ts *testscript.TestScript) *client.Client {
	opts := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if host := ts.Getenv("DOCKER_HOST"); host != "" {
		opts = append(opts, client.WithHost(host))
	}
	c, err := client.NewClientWithOpts(opts...)
	ts.Check(err)
	return c
}

// onEngine returns the containers of an airlock, and the number of its volumes and networks.
func onEngine(ts *testscript.TestScript, r remembered) (boxes []container.Summary, others int) {
	if r.key == "" {
		return nil, 0
	}
	c := engineClient(ts)
	defer c.Close()
	ctx, f := context.Background(), filters.NewArgs(filters.Arg("label", "workspace.key="+r.key))
	boxes, err := c.ContainerList(ctx, container.ListOptions{All: true, Filters: f})
	ts.Check(err)
	volumes, err := c.VolumeList(ctx, volume.ListOptions{Filters: f})
	ts.Check(err)
	networks, err := c.NetworkList(ctx, network.ListOptions{Filters: f})
	ts.Check(err)
	return boxes, len(volumes.Volumes) + len(networks)
}

// prisonOnEngine returns the id of an airlock's prison. Other containers of an airlock read its workspace for a moment,
// and may end before a test can do anything with them.
func prisonOnEngine(ts *testscript.TestScript, r remembered) string {
	boxes, _ := onEngine(ts, r)
	others := len(boxes)
	boxes = slices.DeleteFunc(boxes, func(b container.Summary) bool { return b.Labels["workspace.role"] != "prison" })
	if len(boxes) != 1 {
		ts.Fatalf("%d containers of prisons among %d, want one", len(boxes), others)
	}
	return boxes[0].ID
}

func killContainer(ts *testscript.TestScript, r remembered) {
	c := engineClient(ts)
	defer c.Close()
	id := prisonOnEngine(ts, r)
	ts.Check(c.ContainerKill(context.Background(), id, "KILL"))
	ended, errs := c.ContainerWait(context.Background(), id, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case err := <-errs:
		ts.Check(err)
	}
}
