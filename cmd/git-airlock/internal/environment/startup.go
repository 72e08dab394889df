package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"
)

// serviceLogs is the folder for the output of [prestart] services, in the agent's home.
const serviceLogs = ".cache/services"

// serviceScript starts its arguments as services, each with its own log. The first argument is the number of services that run already. It
// fails if a service ends at once with an error, and does not start the following ones. Then it prints the number of that service on
// standard output, and its log on standard error. On a busy machine a service needs longer to begin. Shells that do nothing, and begin
// after the service, show how long.
const serviceScript = `
folder=$HOME/` + serviceLogs + `
mkdir -p "$folder" || exit
session=$(command -v setsid)
n=$1
shift "$((n + 1))"
for command; do
	n=$((n + 1))
	rm -f "$folder/$n.exit"
	(
		$session "${SHELL:-/bin/sh}" -c "$command"
		echo $? >"$folder/$n.exit"
	) >"$folder/$n.log" 2>&1 </dev/null &
	for i in 1 2 3 4; do
		$session "${SHELL:-/bin/sh}" -c :
	done
	sleep 0.3
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

// runStartup runs the startup commands one after the other, up to the first that fails.
func (b Builder) runStartup(ctx context.Context, box prison.Prison, commands []string) error {
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

// progress is how far the setup of an airlock has come.
type progress struct {
	Finished string `json:"finished"`          // digest of the startup commands that have finished
	Running  *int   `json:"running,omitempty"` // number of services that run, if a service has failed
	Failed   string `json:"failed,omitempty"`  // message of the command that failed, which the next start runs again
}

// progressOf returns the progress in an airlock's record of it. A record from before the first start is empty.
func progressOf(record string) (p progress) {
	json.Unmarshal([]byte(record), &p) //nolint:errcheck // without a record that can be read, everything is run again
	return p
}

// FailedCommand returns the message of the command that has failed in the setup of an airlock with this record, or an empty message.
func FailedCommand(record string) string { return progressOf(record).Failed }

// Complete runs the services of a setup if the prison was just started, and its startup commands unless they have finished in this airlock
// already. The next call runs a failed service or command again. record is the airlock's record of earlier calls, and keep stores the new one.
func (b Builder) Complete(ctx context.Context, box prison.Prison, setup Setup, started bool, record string, keep func(string) error) error {
	p := progressOf(record)
	store := func(err error) error {
		if failed, ok := errors.AsType[*CommandError](err); ok {
			p.Failed = failed.Error()
		}
		text, _ := json.Marshal(p) // texts and a number
		if string(text) == record {
			return err
		}
		record = string(text)
		return errors.Join(err, keep(record))
	}
	running := len(setup.Prestart)
	if p.Running != nil {
		running = min(*p.Running, running)
	}
	if started {
		running = 0
	}
	if running < len(setup.Prestart) {
		running, err := b.serve(ctx, box, setup.Prestart, running)
		if p.Running = &running; err != nil {
			return store(err)
		}
	}
	p.Running, p.Failed = nil, ""
	digest := digestOf(fmt.Appendf(nil, "%q", setup.Startup))
	if len(setup.Startup) == 0 || p.Finished == digest {
		return store(nil)
	}
	if err := store(nil); err != nil {
		return err
	}
	if err := b.runStartup(ctx, box, setup.Startup); err != nil {
		return store(err)
	}
	p.Finished = digest
	return store(nil)
}

// serve starts the services of [prestart], except the first ones, which run already. It returns the number of services that run.
func (b Builder) serve(ctx context.Context, box prison.Prison, commands []string, running int) (int, error) {
	b.Report.Say("starting %s", words.Count(len(commands)-running, "service"))
	which := prison.Capped{Max: maxSaid} // a service may write to it, too
	out, flush := b.Report.Quoted()
	defer flush()
	status, err := box.Exec(ctx, prison.Process{
		Argv: append([]string{"/bin/sh", "-c", serviceScript, "sh", strconv.Itoa(running)}, commands...), Stdout: &which, Stderr: out,
	})
	if err != nil || status == 0 {
		return len(commands), err
	}
	failed := &CommandError{kind: "prestart", status: status}
	if _, err := fmt.Sscanf(which.String(), "%d %d", &failed.number, &failed.status); err != nil || failed.number <= running || failed.number > len(commands) {
		return running, errors.New("the services of [prestart] cannot be started")
	}
	failed.command = commands[failed.number-1]
	return failed.number - 1, Advise(failed, "git airlock visit", "git airlock start  # starts this service and the following ones again")
}
