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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/prison/docker/inside"
	"github.com/git-airlock/git-airlock/prison/native"
	"github.com/git-airlock/git-airlock/prison/prisontest"
	"github.com/git-airlock/git-airlock/prison/prisontest/internet"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// commands are the commands of scripts.
var commands = map[string]func(){"git-airlock": main, "rot-filter": rotFilter, "internet-servers": func() { internet.Serve(os.Args[1]) }}

// TestMain also makes this test binary the program under test. It runs main if it is linked as git-airlock on PATH, so that
// "git airlock" in a script goes through git.
func TestMain(m *testing.M) {
	files.Reexec()
	inside.Reexec() // processes of a prison run this binary, too
	testscript.Main(hearing{m}, commands)
}

// hearing runs the tests without ignored signals. The caller may ignore some (nohup(1), a shell's background job, many CI runners),
// and a script's shell cannot undo that. execve(2) resets handlers, so commands of scripts get the default action.
type hearing struct{ m *testing.M }

func (h hearing) Run() int {
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} { // the signals that the Go runtime leaves ignored
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return h.m.Run()
}

// onceMore reports whether this is the second run of the tests, as the ordinary user after root.
func onceMore() bool { return os.Getenv("AIRLOCK_TEST_ORDINARY") != "" }

// scriptsIn returns the scripts in a folder of testdata. No script may have testscript's command stop, which ends it with success: it is easily
// written in place of "git airlock stop".
func scriptsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/" + folder + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, []byte("\nstop\n")) {
			t.Errorf("%s: stop ends the script: %v", file, err)
		}
	}
	return files
}

// scriptLimit is the time that a script may take. On a machine with twenty busy processes, the longest takes a third of it.
const scriptLimit = 15 * time.Minute

// runScripts runs scripts beside each other, each in its own environment and as a test of its own. A script that hangs fails alone, at the
// line that hangs: testscript's own limit would end all scripts shortly before the limit of the test binary. params may leave out
// commands and conditions.
func runScripts(t *testing.T, files []string, params testscript.Params) {
	t.Helper()
	params.Cmds = scriptCommands
	if params.Condition == nil {
		params.Condition = condition
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			script := params
			script.Files, script.Deadline = []string{file}, time.Now().Add(scriptLimit)
			testscript.RunT(sameTest{t}, script)
		})
	}
}

// sameTest runs the only script of a call of testscript as the current test.
type sameTest struct{ *testing.T }

func (t sameTest) Run(_ string, run func(testscript.T)) { run(t) }
func (t sameTest) Parallel()                            {}
func (t sameTest) Verbose() bool                        { return testing.Verbose() }

// forRoot reports whether a part of a script depends on running as root.
func forRoot(t *testing.T, file string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(content, []byte("root]"))
}

// anyPlace lists the scripts about the command line, the history of the branch, and the records of runs. They are the same for all users and
// backends: the first run, in a native prison, is enough. The others in testdata/script depend on uids, file owners, namespaces or the network.
var anyPlace = []string{"called", "colours", "ci", "config", "doctor-recovers", "dry-run", "errors", "help", "interrupt", "limits", "moved", "net-rules", "none", "partial", "progress",
	"reasons", "replay", "report", "runs", "runs-kill", "selftest", "share", "share-hostile", "sync", "usage", "watch"}

// inAnyPlace reports whether one run of a script is enough: it is about landing or in anyPlace, and no part of it is only for root.
func inAnyPlace(t *testing.T, file string) bool {
	return (isLanding(file) || slices.Contains(anyPlace, strings.TrimSuffix(filepath.Base(file), ".txtar"))) && !forRoot(t, file)
}

// TestScript runs the scripts, each in its own environment. The second run leaves out scripts that do not depend on the user.
func TestScript(t *testing.T) {
	needNative(t)
	t.Parallel()
	files := scriptsIn(t, "script")
	if onceMore() {
		files = slices.DeleteFunc(files, func(file string) bool { return inAnyPlace(t, file) })
	}
	runScripts(t, files, testscript.Params{Setup: setup(t), RequireUniqueNames: true, UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != ""})
}

// TestPromptly runs the scripts that measure time, alone.
func TestPromptly(t *testing.T) {
	needNative(t)
	runScripts(t, scriptsIn(t, "script/promptly"), testscript.Params{Setup: setup(t)})
}

// needNative skips a test if a native prison cannot be made here, or fails it if CI requires native prisons.
func needNative(t *testing.T) {
	t.Helper()
	prisontest.Need(t, "native", native.New().Probe(t.Context()))
}

// userConfig is the configuration of the scripts' user. The user's name must not be readable inside.
const userConfig = `[user]
	name = Ursula User
	email = ursula@host.example
[init]
	defaultBranch = main
[core]
	editor = true
[advice]
	detachedHead = false
[maintenance]
	autoDetach = false
`

// setup gives a script a home, an identity and more configuration, but none of the caller's git configuration.
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
		env.Defer(func() { endAll(env.WorkDir) }) // after clearAll
		env.Defer(func() { clearAll(t, env.WorkDir, vars) })
		late := time.AfterFunc(scriptLimit, func() { endAll(env.WorkDir) })
		env.Defer(func() { late.Stop() })
		return nil
	}
}

// endAll kills the processes of the script with this folder: those that work in it, and those that have its variables. testscript
// itself kills only the first process of a command, and then waits for all processes that have the command's output.
func endAll(dir string) {
	for tries := 0; tries < 1000 && endSome(dir); tries++ { // a process may have started another one meanwhile, and a frozen one does not end
		time.Sleep(time.Millisecond)
	}
}

// endSome kills the processes that it finds, and reports whether there were some. Processes that have ended have neither folder nor variables.
func endSome(dir string) (some bool) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		cwd, _ := os.Readlink(p + "/cwd")
		if !strings.HasPrefix(cwd+"/", dir+"/") && !strings.Contains(readOr(p+"/environ", ""), "="+dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			some = true
		}
	}
	return some
}

// TestScriptsAreEnded runs a script that leaves processes behind, as a script may that fails.
func TestScriptsAreEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, pids := filepath.Join(dir, "left.txtar"), filepath.Join(dir, "pids")
	// A process that executes a program has no variables for a moment.
	text := "sh 'sleep 1000 >/dev/null 2>&1 & echo $! >>\"$1\"; (cd /; exec sleep 1000) >/dev/null 2>&1 & echo $! >>\"$1\"' " + pids + "\n" +
		"waitfor 'while read -r pid; do read -r name </proc/$pid/comm; test \"$name\" = sleep; done <\"$1\"' " + pids + "\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("all", func(t *testing.T) { runScripts(t, []string{script}, testscript.Params{Setup: setup(t)}) })
	left := strings.Fields(readOr(pids, ""))
	if len(left) != 2 {
		t.Fatalf("processes: %v", left)
	}
	for _, text := range left {
		pid, err := strconv.Atoi(text)
		for end := time.Now().Add(patience); err == nil && startTime(pid) != "gone" && time.Now().Before(end); {
			time.Sleep(2 * time.Millisecond)
		}
		if err != nil || startTime(pid) != "gone" {
			t.Errorf("process %s was left behind, %v", text, err)
		}
	}
}

// clearAll ends the prisons and daemons that a script left running in its repositories.
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
		if d.IsDir() && workspaceName().MatchString(d.Name()) {
			return fs.SkipDir
		}
		if d.Name() != ".git" {
			return nil
		}
		if _, err := os.Lstat(filepath.Join(path, "airlock")); d.IsDir() && errors.Is(err, fs.ErrNotExist) {
			return fs.SkipDir // no airlock was started here, or all are cleared
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
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return tun.Close() == nil
}
