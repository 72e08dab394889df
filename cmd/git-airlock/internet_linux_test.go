package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/git-airlock/git-airlock/prison/egress/control"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() {
	scriptCommands["internet"] = cmdInternet
	scriptCommands["rules"] = cmdRules
}

var internets atomic.Int64

// systemBundle is the file with the certificates that this machine trusts, where the tests run.
const systemBundle = "/etc/ssl/certs/ca-certificates.crt"

// internet FOLDER makes two network namespaces, as root: one that plays this machine, and one with the servers of the program
// internet-servers, also at addresses that are nobody's to reach. No packet leaves the machine. $HOST becomes a program that runs
// others in the first namespace, with the DNS server of the second and trust in the certificates of its servers.
func cmdInternet(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "internet FOLDER")
	folder := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Join(folder, "www"), 0o755))
	ts.Check(os.WriteFile(filepath.Join(folder, "resolv.conf"), []byte("nameserver "+publicServer+"\nsearch corp.test\n"), 0o644))
	near := fmt.Sprintf("airlock%d-%d", os.Getpid(), internets.Add(1))
	far := near + "-far"
	ts.Defer(func() { exec.Command("sh", "-c", "ip netns del "+near+"; ip netns del "+far).Run() })
	succeed(ts, false, "sh", "-euc", `
		ip netns add $1; ip netns add $2
		ip -n $1 link add uplink type veth peer name downlink netns $2
		ip -n $1 addr add 198.51.100.1/24 dev uplink; ip -n $2 addr add 198.51.100.10/24 dev downlink
		for n in $1 $2; do ip -n $n link set lo up; done
		ip -n $1 link set uplink up; ip -n $2 link set downlink up
		ip -n $1 route add default via 198.51.100.10
		for a in 169.254.169.254 10.9.9.9; do ip -n $2 addr add $a/32 dev lo; done`, "sh", near, far)
	host := filepath.Join(folder, "host")
	script := "#!/bin/sh\nexec nsenter --net=/run/netns/" + near + " unshare -m sh -euc '" +
		"mount --bind " + filepath.Join(folder, "resolv.conf") + " /etc/resolv.conf; " +
		"mount --bind " + filepath.Join(folder, "bundle.pem") + " " + systemBundle + "; exec \"$@\"' sh \"$@\"\n"
	ts.Check(os.WriteFile(host, []byte(script), 0o755))
	ts.Setenv("HOST", host)
	program, err := exec.LookPath("internet-servers")
	ts.Check(err)
	servers := exec.Command("nsenter", "--net=/run/netns/"+far, program, folder)
	ts.Check(servers.Start())
	ts.Defer(func() { servers.Process.Kill(); servers.Wait() })
	cmdWaitFor(ts, false, []string{"test -e $1", filepath.Join(folder, "ready")})
	succeed(ts, false, "sh", "-euc", "cat "+systemBundle+" $1/ca.pem >$1/bundle.pem", "sh", folder)
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
