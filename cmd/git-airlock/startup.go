package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// serviceLogs is where the services of [prestart] print to, in the agent's home.
const serviceLogs = ".cache/services"

// serviceScript starts its arguments as services, each with a log of its own. It fails if one of them ends at once with
// an error, and says which one on standard output, and on standard error what that had to say.
const serviceScript = `
folder=$HOME/` + serviceLogs + `
mkdir -p "$folder" || exit
session=$(command -v setsid)
n=0
for command; do
	n=$((n + 1))
	rm -f "$folder/$n.exit"
	(
		$session "${SHELL:-/bin/sh}" -c "$command"
		echo $? >"$folder/$n.exit"
	) >"$folder/$n.log" 2>&1 </dev/null &
done
sleep 0.3
n=0
for command; do
	n=$((n + 1))
	[ -e "$folder/$n.exit" ] || continue
	read -r status <"$folder/$n.exit"
	[ "$status" = 0 ] && continue
	tail -n 20 "$folder/$n.log" >&2
	echo "$n $status"
	exit 1
done
`

// commandError is a command of the setup that failed.
type commandError struct {
	kind    string
	number  int
	command string
	status  int
}

func (e *commandError) Error() string {
	return fmt.Sprintf("%s command %d, %q, ended with exit status %d", e.kind, e.number, e.command, e.status)
}

// awaken runs what a setup wants run in a prison: the services if it was just started, and the startup commands unless
// these have run to their end in this airlock already.
func (a *app) awaken(ctx context.Context, r airlock.Record, s commitSetup, started bool) error {
	if a.dry || len(s.Prestart)+len(s.Startup) == 0 {
		return nil
	}
	unlock, err := a.store.LockFile(ctx, r.ID, "startup.lock")
	if err != nil {
		return err
	}
	defer unlock()
	box, err := a.attach(ctx, r)
	if err != nil {
		return err
	}
	defer box.Close()
	if started && len(s.Prestart) > 0 {
		if err := a.serve(ctx, box, s.Prestart); err != nil {
			return err
		}
	}
	digest := digestOf([]byte(fmt.Sprintf("%q", s.Startup)))
	done, err := a.store.Startup(r.ID)
	if err != nil || done == digest {
		return err
	}
	for i, command := range s.Startup {
		ui.Say(a.message, "startup %d of %d: %s", i+1, len(s.Startup), gitops.Escape(command))
		status, err := a.inShell(ctx, box, command)
		if err != nil {
			return err
		}
		if status != 0 {
			return &hinted{&commandError{"startup", i + 1, command, status},
				[]string{"git airlock visit", "git airlock start  # runs the startup commands again"}}
		}
	}
	return a.store.SetStartup(r.ID, digest)
}

// inShell runs a command as the agent and shows what it prints, as text of the agent's.
func (a *app) inShell(ctx context.Context, box prison.Prison, command string) (status int, err error) {
	out := &ui.AgentText{To: a.message}
	defer out.Flush()
	return box.Exec(ctx, prison.Process{
		Argv: []string{"/bin/sh", "-c", `exec 2>&1 "${SHELL:-/bin/sh}" -c "$1"`, "sh", command}, Stdout: out,
	})
}

// serve starts services.
func (a *app) serve(ctx context.Context, box prison.Prison, commands []string) error {
	ui.Say(a.message, "starting %s", ui.Count(len(commands), "service"))
	which := prison.Capped{Max: maxSaid} // a service may write there, too
	out := &ui.AgentText{To: a.message}
	defer out.Flush()
	status, err := box.Exec(ctx, prison.Process{
		Argv: append([]string{"/bin/sh", "-c", serviceScript, "sh"}, commands...), Stdout: &which, Stderr: out,
	})
	if err != nil || status == 0 {
		return err
	}
	failed := &commandError{kind: "prestart", status: status}
	if _, err := fmt.Sscanf(which.String(), "%d %d", &failed.number, &failed.status); err != nil || failed.number < 1 || failed.number > len(commands) {
		return errors.New("the services of [prestart] cannot be started")
	}
	failed.command = commands[failed.number-1]
	return &hinted{failed, []string{"git airlock visit", "git airlock stop && git airlock start"}}
}
