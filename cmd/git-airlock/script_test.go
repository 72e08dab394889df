package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestMain makes this test binary the program under test as well: linked as git-airlock on PATH it is main,
// so that "git airlock" in a script goes all the way through git.
func TestMain(m *testing.M) {
	docker.Reexec() // the prison's own processes are this binary, too
	testscript.Main(hearing{m}, map[string]func(){"git-airlock": main, "rot-filter": rotFilter})
}

// hearing runs the tests with no signal ignored: whoever ran them may ignore some (nohup(1), a shell's background, many
// a CI runner), and a script's shell cannot undo that. A handler ends with execve(2), so commands of scripts get the default.
type hearing struct{ m *testing.M }

func (h hearing) Run() int {
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} { // those that the runtime leaves ignored
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return h.m.Run()
}

// onceMore says that root has run these tests before, and that this is the ordinary user's turn.
func onceMore() bool { return os.Getenv("AIRLOCK_TEST_ORDINARY") != "" }

// scripts are those in testdata/script.
func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	return files
}

// forRoot reports whether a script is for root or not for root, in part at least.
func forRoot(t *testing.T, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(content, []byte("root]"))
}

// TestScript runs the scripts, each in a world of its own. Once more it leaves out those for which it does not matter who they are run by.
func TestScript(t *testing.T) {
	needNative(t)
	files := scripts(t)
	if onceMore() {
		files = slices.DeleteFunc(files, func(file string) bool { return isLanding(file) && !forRoot(t, file) })
	}
	testscript.Run(t, testscript.Params{Files: files, Setup: setup(t), Cmds: scriptCommands, Condition: condition,
		RequireUniqueNames: true, UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != ""})
}

// TestPromptly runs the scripts that measure time, alone.
func TestPromptly(t *testing.T) {
	needNative(t)
	files, err := filepath.Glob("testdata/script/promptly/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		testscript.Run(t, testscript.Params{Files: []string{file}, Setup: setup(t), Cmds: scriptCommands, Condition: condition})
	}
}

// needNative skips a test, or fails it where CI promised the machine for it, if there can be no prison here.
func needNative(t *testing.T) {
	t.Helper()
	prisontest.Need(t, "native", native.New().Probe(t.Context()))
}

// userConfig is the configuration of the scripts' user. Their names must not turn up inside.
const userConfig = `[user]
	name = Ursula User
	email = ursula@host.example
[init]
	defaultBranch = main
[core]
	editor = true
[advice]
	detachedHead = false
`

// setup gives a script a home, an identity, more configuration, and nothing of the caller's git.
func setup(t *testing.T, more ...string) func(*testscript.Env) error {
	return func(env *testscript.Env) error {
		home := filepath.Join(env.WorkDir, "home")
		config := filepath.Join(home, ".gitconfig")
		if err := os.MkdirAll(home, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(config, []byte(userConfig+strings.Join(more, "")), 0o600); err != nil {
			return err
		}
		env.Setenv("HOME", home)
		env.Setenv("GIT_CONFIG_GLOBAL", config)
		env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
		env.Setenv("GIT_CEILING_DIRECTORIES", env.WorkDir)
		env.Setenv("LC_ALL", "C.UTF-8")
		env.Setenv("TMPDIR", filepath.Join(env.WorkDir, ".tmp"))
		env.Values[worldKey{}] = &world{kept: map[string]string{}, excludes: map[string]string{}}
		vars := slices.Clone(env.Vars)
		env.Defer(func() { clearAll(t, env.WorkDir, vars) })
		return nil
	}
}

// clearAll ends what a script left running: the prisons and daemons of its own repositories.
func clearAll(t *testing.T, workDir string, vars []string) {
	program, err := exec.LookPath("git-airlock")
	if err != nil {
		t.Error(err)
		return
	}
	_ = filepath.WalkDir(workDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // a workspace is closed to an ordinary user
		}
		if d.IsDir() && workspaceName.MatchString(d.Name()) {
			return fs.SkipDir
		}
		if d.Name() != ".git" {
			return nil
		}
		cmd := exec.Command(program, "clear", "--discard-pending")
		cmd.Dir, cmd.Env = filepath.Dir(path), vars
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 1) {
			t.Logf("clear %s: %v\n%s", path, err, out)
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "network":
		return prisontest.Required("network") || openNetwork(), nil
	case "built", "brief": // see TestLanguages
		return false, nil
	case "all-languages":
		return prisontest.Required("languages"), nil
	case "languages":
		return prisontest.Required("languages") || hasLanguages(), nil
	case "reftable":
		return hasReftable(), nil
	}
	return false, errors.New("unknown condition " + name)
}

// openNetwork reports whether the native prison can have an open network here.
func openNetwork() bool {
	_, slirp := exec.LookPath("slirp4netns")
	_, pasta := exec.LookPath("pasta")
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return tun.Close() == nil && (slirp == nil || pasta == nil)
}
