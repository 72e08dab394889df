package environment

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"
)

// serviceLogs is the folder for the output of [prestart] services, in the agent's home.
const serviceLogs = ".cache/services"

// serviceScript starts its arguments as services, each with its own log. It fails if a service ends at once with an error. Then it
// prints the number of that service on standard output, and its log on standard error. On a busy machine a service needs longer to begin.
// Shells that do nothing, and begin after the services, show how long.
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
for i in 1 2 3 4; do
	$session "${SHELL:-/bin/sh}" -c :
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

// CommandError is a command of the setup that failed.
type CommandError struct {
	kind    string
	number  int
	command string
	status  int
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("%s command %d, %q, ended with exit status %d", e.kind, e.number, e.command, e.status)
}

// RunStartup runs the startup commands one after the other, up to the first that fails.
func (b Builder) RunStartup(ctx context.Context, box prison.Prison, commands []string) error {
	for i, command := range commands {
		b.Report.Say("startup %d of %d: %s", i+1, len(commands), gitops.Text(command))
		status, err := b.inShell(ctx, box, command)
		if err != nil {
			return err
		}
		if status != 0 {
			return Advise(&CommandError{"startup", i + 1, command, status}, "git airlock visit", "git airlock start  # runs the startup commands again")
		}
	}
	return nil
}

// inShell runs a command as the agent, and prints its output escaped.
func (b Builder) inShell(ctx context.Context, box prison.Prison, command string) (status int, err error) {
	out, flush := b.Report.Quoted()
	defer flush()
	return box.Exec(ctx, prison.Process{
		Argv: []string{"/bin/sh", "-c", `exec 2>&1 "${SHELL:-/bin/sh}" -c "$1"`, "sh", command}, Stdout: out,
	})
}

// Serve starts the services of [prestart].
func (b Builder) Serve(ctx context.Context, box prison.Prison, commands []string) error {
	b.Report.Say("starting %s", words.Count(len(commands), "service"))
	which := prison.Capped{Max: maxSaid} // a service may write to it, too
	out, flush := b.Report.Quoted()
	defer flush()
	status, err := box.Exec(ctx, prison.Process{
		Argv: append([]string{"/bin/sh", "-c", serviceScript, "sh"}, commands...), Stdout: &which, Stderr: out,
	})
	if err != nil || status == 0 {
		return err
	}
	failed := &CommandError{kind: "prestart", status: status}
	if _, err := fmt.Sscanf(which.String(), "%d %d", &failed.number, &failed.status); err != nil || failed.number < 1 || failed.number > len(commands) {
		return errors.New("the services of [prestart] cannot be started")
	}
	failed.command = commands[failed.number-1]
	return Advise(failed, "git airlock visit", "git airlock stop && git airlock start")
}
