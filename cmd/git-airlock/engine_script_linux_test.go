package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

func init() { scriptCommands["engine"] = cmdEngine }

// ownEngine is a Docker Engine that belongs to a script, which may kill it.
type ownEngine struct {
	dir     string
	options []string
	process *exec.Cmd
}

type engineKey struct{}

func (e *ownEngine) host() string { return "unix://" + e.dir + "/socket" }

// remapped returns a user whose subordinate ids an engine can use. No file of that user is changed.
func remapped() (string, error) {
	for line := range strings.Lines(readOr("/etc/subuid", "")) {
		name, _, _ := strings.Cut(line, ":")
		if _, err := user.Lookup(name); err == nil && strings.Contains("\n"+readOr("/etc/subgid", ""), "\n"+name+":") {
			return name, nil
		}
	}
	return "", errors.New("nobody has a range in /etc/subuid and /etc/subgid")
}

// TestEngine runs the scripts that stop, kill and freeze a Docker Engine, and start it with other options.
func TestEngine(t *testing.T) {
	needDocker(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can run an engine of its own")
	}
	_, err := exec.LookPath("dockerd")
	prisontest.Need(t, "docker", err)
	owner, err := remapped()
	prisontest.Need(t, "rootless", err)
	t.Parallel()
	files := scriptsIn(t, "script/engine")
	if testing.Short() { // an engine of its own for each script
		t.Run("remapped", func(t *testing.T) { t.Skip("one engine is enough (scripts/test --everywhere)") })
		files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "remapped.txtar" })
	}
	runScripts(t, files, testscript.Params{
		Setup: func(env *testscript.Env) error {
			if err := withImage(setup(t))(env); err != nil {
				return err
			}
			// The socket's path must be short.
			dir, err := os.MkdirTemp("/tmp", "engine")
			if err != nil {
				return err
			}
			// An engine that maps ids must reach its data as another user.
			if err := os.Chmod(dir, 0o711); err != nil {
				return err
			}
			e := &ownEngine{dir: dir}
			env.Values[engineKey{}] = e
			env.Setenv("DOCKER_HOST", e.host())
			env.Setenv("REMAPPED", owner)
			env.Defer(func() { e.remove(t) })
			vars := append([]string{}, env.Vars...)
			env.Defer(func() { clearAll(t, env.WorkDir, vars) })
			return nil
		}})
}

// engine start|stop|kill|freeze|thaw controls the script's own engine. start takes options.
func cmdEngine(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) == 0 || len(args) > 1 && args[0] != "start", "engine start [options]|stop|kill|freeze|thaw")
	e := ts.Value(engineKey{}).(*ownEngine)
	var err error
	switch args[0] {
	case "start":
		e.options = args[1:]
		err = e.start()
	case "stop":
		err = e.end(syscall.SIGTERM)
	case "kill":
		err = e.end(syscall.SIGKILL)
	case "freeze":
		err = e.process.Process.Signal(syscall.SIGSTOP)
	case "thaw":
		err = e.process.Process.Signal(syscall.SIGCONT)
	}
	ts.Check(err)
}

func (e *ownEngine) start() error {
	in := func(name string) string { return filepath.Join(e.dir, name) }
	log, err := os.OpenFile(in("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// The engine has its own network. Without a bridge it would remove the machine's bridge.
	e.process = exec.Command("dockerd", append([]string{"--host", e.host(), "--data-root", in("data"), "--exec-root", in("run"),
		"--pidfile", in("pid"), "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"}, e.options...)...)
	e.process.Stdout, e.process.Stderr = log, log
	e.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET}
	if err := e.process.Start(); err != nil {
		return err
	}
	c, err := client.NewClientWithOpts(client.WithHost(e.host()), client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer c.Close()
	for end := time.Now().Add(2 * patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err = c.Ping(context.Background()); err == nil {
			return e.giveImage(c)
		}
		if time.Now().After(end) {
			return fmt.Errorf("dockerd does not start: %w; %s", err, readOr(in("log"), ""))
		}
	}
}

// giveImage copies the tests' image from the machine's engine on first use.
func (e *ownEngine) giveImage(c *client.Client) error {
	ctx := context.Background()
	if _, err := c.ImageInspect(ctx, testImage()); err == nil {
		return nil
	}
	machine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer machine.Close()
	image, err := machine.ImageSave(ctx, []string{testImage()})
	if err != nil {
		return err
	}
	defer image.Close()
	said, err := c.ImageLoad(ctx, image)
	if err != nil {
		return err
	}
	defer said.Body.Close()
	if _, err := io.Copy(io.Discard, said.Body); err != nil { // the image is loaded at the end of the body
		return err
	}
	_, err = c.ImageInspect(ctx, testImage())
	return err
}

func (e *ownEngine) end(s syscall.Signal) error {
	if e.process == nil {
		return nil
	}
	err := e.process.Process.Signal(s)
	_ = e.process.Wait()
	e.process = nil
	// containerd dies with the engine. On some machines the first process is slow to reap it, and the next engine would find its
	// pid still in use.
	_ = os.Remove(filepath.Join(e.dir, "run", "containerd", "containerd.pid"))
	return err
}

// remove ends the engine, which ends its containers, and removes its files.
func (e *ownEngine) remove(t *testing.T) {
	if e.process == nil { // only a running engine can end the containers of a killed one
		if err := e.start(); err != nil {
			t.Error(err)
		}
	}
	_ = e.process.Process.Signal(syscall.SIGCONT)
	if err := e.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	mounts := strings.Fields(readOr("/proc/self/mounts", ""))
	for _, m := range mounts {
		if strings.HasPrefix(m, e.dir) {
			_ = syscall.Unmount(m, syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(e.dir); err != nil {
		t.Error(err)
	}
}
