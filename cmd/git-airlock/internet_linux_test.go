package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/prisontest/internet"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() {
	scriptCommands["internet"] = cmdInternet
	scriptCommands["rules"] = cmdRules
	scriptCommands["onlyoutside"] = cmdOnlyOutside
}

// onlyoutside TEXT checks that no process of the native prison here has a text in its memory, environment or arguments, and that the
// network's process has it in memory: otherwise the search would find nothing. "!" checks that the network's process does not have it
// either.
func cmdOnlyOutside(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) != 1, "[!] onlyoutside TEXT")
	found, inside := false, 0
	for _, p := range prisonProcesses(ts) {
		if has := bytes.Contains(memoryOf(p.pid), []byte(args[0])); p.network {
			found = has
		} else if inside++; has {
			ts.Fatalf("process %d of the prison (%s) has the text in memory", p.pid, p.name)
		}
		for _, file := range []string{"environ", "cmdline"} {
			content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.pid, file))
			if bytes.Contains(content, []byte(args[0])) {
				ts.Fatalf("process %d (%s) has the text in %s", p.pid, p.name, file)
			}
		}
	}
	if found == neg || inside == 0 {
		ts.Fatalf("%d processes inside; in the network's process: %v", inside, found)
	}
}

// prisonProcess is a process inside a prison, or that of its network.
type prisonProcess struct {
	pid     int
	name    string
	network bool
}

// prisonProcesses returns the processes of the native prison here. Those inside have the process namespace of init.
func prisonProcesses(ts *testscript.TestScript) (all []prisonProcess) {
	var state struct{ Init, Relay struct{ PID int } }
	names, err := filepath.Glob(ts.MkAbs(".git/airlock/*/prison/state.json"))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("%d prisons", len(names))
	}
	content, err := os.ReadFile(names[0])
	ts.Check(err)
	ts.Check(json.Unmarshal(content, &state))
	namespace := func(pid int) string {
		text, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		return text
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	ts.Check(err)
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		name, _ := os.ReadFile(filepath.Join(folder, "comm"))
		if pid == state.Relay.PID || namespace(pid) == namespace(state.Init.PID) {
			all = append(all, prisonProcess{pid, strings.TrimSpace(string(name)), pid == state.Relay.PID})
		}
	}
	return all
}

// memoryOf returns the writable memory of a process, as far as it is there.
func memoryOf(pid int) (all []byte) {
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n == 3 && strings.HasPrefix(mode, "rw") && to-from < 1<<28 {
			part := make([]byte, to-from)
			n, _ := memory.ReadAt(part, from)
			all = append(all, part[:n]...)
		}
	}
	return all
}

// internet FOLDER makes the world of package internet in a folder, as root. $HOST becomes a program that runs others in the
// namespace that plays this machine. With AIRLOCK_TEST_WORLD, which an ordinary user needs, the folder leads to that world, in which this
// process must be already.
func cmdInternet(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "internet FOLDER")
	if given := givenWorld(); given != "" {
		ts.Check(os.RemoveAll(filepath.Join(given, "www", "r.git")))
		ts.Check(os.Symlink(given, ts.MkAbs(args[0])))
		ts.Setenv("HOST", "env")
		return
	}
	program, err := exec.LookPath("internet-servers")
	ts.Check(err)
	w, err := internet.Make(ts.MkAbs(args[0]), program)
	ts.Defer(w.Close)
	ts.Check(err)
	ts.Setenv("HOST", w.Host)
}

// givenWorld returns the folder of a world that others have made, see scripts/try-clients.
func givenWorld() string { return os.Getenv("AIRLOCK_TEST_WORLD") }

// rules TEXT... replaces the rules of the airlock's network, and waits until they are in force. "!TEXT" denies, "lockdown" closes
// everything.
func cmdRules(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, "rules [lockdown] [[!]TEXT...]")
	dirs, err := filepath.Glob(ts.MkAbs(".git/airlock/*/prison"))
	ts.Check(err)
	if len(dirs) != 1 {
		ts.Fatalf("%d airlocks", len(dirs))
	}
	before, err := control.ReadRules(dirs[0])
	ts.Check(err)
	rules := control.Rules{Generation: before.Generation + 1}
	for _, text := range args {
		denied, deny := strings.CutPrefix(text, "!")
		switch {
		case text == "lockdown":
			rules.Lockdown = true
		case deny:
			rules.Deny = append(rules.Deny, control.Rule{Text: denied, Source: "script"})
		default:
			rules.Allow = append(rules.Allow, control.Rule{Text: text, Source: "script"})
		}
	}
	ts.Check(control.WriteRules(dirs[0], rules))
	for begun := time.Now(); ; rest(begun) {
		state, err := control.ReadState(dirs[0])
		if err == nil && state.Generation == rules.Generation {
			return
		}
		if time.Since(begun) > patience {
			ts.Fatalf("the network has generation %d, not %d: %s %v", state.Generation, rules.Generation, state.Error, err)
		}
	}
}
