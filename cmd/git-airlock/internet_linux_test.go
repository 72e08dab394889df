package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"
	"github.com/git-airlock/git-airlock/prison/prisontest/internet"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() {
	scriptCommands["internet"] = cmdInternet
	scriptCommands["rules"] = cmdRules
}

// internet FOLDER makes the world of package internet in a folder, as root. $HOST becomes a program that runs others in the
// namespace that plays this machine.
func cmdInternet(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "internet FOLDER")
	program, err := exec.LookPath("internet-servers")
	ts.Check(err)
	w, err := internet.Make(ts.MkAbs(args[0]), program)
	ts.Defer(w.Close)
	ts.Check(err)
	ts.Setenv("HOST", w.Host)
}

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
	for begun := time.Now(); ; rest(begun, patience) {
		state, err := control.ReadState(dirs[0])
		if err == nil && state.Generation == rules.Generation {
			return
		}
		if time.Since(begun) > patience {
			ts.Fatalf("the network has generation %d, not %d: %s %v", state.Generation, rules.Generation, state.Error, err)
		}
	}
}
