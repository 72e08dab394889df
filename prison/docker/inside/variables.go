package inside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker/dialect"
	"github.com/git-airlock/git-airlock/words"
)

// The variables of a prison can be secrets. If they were in the configuration of its container, engines would write them to disk, keep
// them with a stopped container, and show them to every user of the engine. So they are in a file in memory that ends with the container,
// and the script that becomes a command reads this file. Root owns the folder and the file, so that the agent cannot change what other
// users execute.
const (
	// VariablesFolder is a folder in memory that a container with variables must have, with [VariablesOptions].
	VariablesFolder = "/run/variables"
	variablesFile   = VariablesFolder + "/list"
	// VariablesOptions are the tmpfs(5) options of that folder.
	VariablesOptions = "rw,noexec,nosuid,nodev,size=8m,mode=0755"
)

// writeVariables is the script that writes its input to the file. It needs no program except the shell.
const writeVariables = `umask 022; while IFS= read -r _line; do printf '%s\n' "$_line" || exit; done >` + variablesFile

// GiveVariables passes variables, as NAME=VALUE, into a container that has just started.
func GiveVariables(ctx context.Context, e *dialect.Engine, id string, env []string) error {
	if len(env) == 0 {
		return nil
	}
	list, err := assignments(env)
	if err != nil {
		return err
	}
	root := &Container{Engine: e, ID: id, User: "0:0"}
	status, err := root.Exec(ctx, prison.Process{Argv: []string{Shell, "-c", writeVariables}, Dir: "/", Stdin: strings.NewReader(list)})
	if err == nil && status != 0 {
		err = errors.New("there is no room for them")
	}
	if err != nil {
		return fmt.Errorf("pass variables: %w", err)
	}
	return nil
}

// readOnly are variables that are read-only in some shell. An assignment would end that shell.
var readOnly = []string{"BASHOPTS", "BASH_VERSINFO", "EUID", "GROUPS", "PPID", "SHELLOPTS", "UID"}

// assignments returns shell commands that export variables, except those whose names are in the shell variable
// _set.
func assignments(env []string) (string, error) {
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !prison.IsVariableName(name) {
			return "", errors.New("a variable whose name a shell does not accept cannot be passed into a container")
		}
		guard := ""
		if slices.Contains(readOnly, name) {
			guard = "(" + name + "=) 2>/dev/null && "
		}
		fmt.Fprintf(&b, "case \" $_set \" in *\" %s \"*) ;; *) %sexport %[1]s=%[3]s ;; esac\n",
			name, guard, words.ShellQuote(value))
	}
	return b.String(), nil
}

// loadVariables returns shell commands that read the file. They precede startScript. Variables in env, which belong to the command
// itself, keep their values.
func loadVariables(env []string) string {
	names := make([]string, len(env))
	for i, entry := range env {
		names[i], _, _ = strings.Cut(entry, "=")
	}
	return fmt.Sprintf("[ -r %s ] || { echo %c; exit 0; }\n_set='%s'\n. %[1]s\n",
		variablesFile, saysNoVariables, strings.Join(slices.DeleteFunc(names, func(n string) bool { return !prison.IsVariableName(n) }), " "))
}

// restarted returns the error for a container that was restarted by somebody else, which empties its folders in memory. effect names a
// consequence.
func restarted(effect string) error {
	return dialect.Unavailable("somebody else has restarted the container, and "+effect, "git airlock stop && git airlock start")
}
