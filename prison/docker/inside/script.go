package inside

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/prison"
)

// Shell is the shell that every image of a prison must have.
const Shell = "/bin/sh"

// Modes of the script that starts a command. They can be combined.
const (
	modeTerminal = "t" // wait for a line of input, which is sent when the terminal has its size
	modeMerged   = "m" // standard error goes where standard output goes
	modeCheck    = "c" // only look up the command, and remove the status of the last launched command
)

// Answers of the script: the first byte of the first line of its output. With modeTerminal there is a second line.
const (
	saysRuns          = 'p' // followed by the process id, which is also the session's
	saysNotFound      = 'n'
	saysNotExecutable = 'x'
	saysNoFolder      = 'd'
	saysNoVariables   = 'v'
	saysNothing       = 0 // no answer: the script did not start
)

// startScript looks up a command; the script that follows it becomes the command. It removes the variables that Podman adds to every
// environment. Its arguments are the mode, the working directory and the command. It works in every POSIX shell and needs no other
// program. The names of its own variables occur in no environment.
const startScript = `
_mode=$1
cd -- "$2" 2>/dev/null || { echo d; exit 0; }
unset OLDPWD
[ "$container" != podman ] || unset container
read -r _name </proc/sys/kernel/hostname
[ "$HOSTNAME" != "$_name" ] || unset HOSTNAME
shift 2
case $1 in
*/*) _file=$1 ;;
*)
	_file=
	IFS=:
	set -f
	for _dir in $PATH; do
		_try=${_dir:-.}/$1
		[ -f "$_try" ] || continue
		_file=$_try
		[ -x "$_try" ] && break
	done
	unset IFS
	;;
esac
if [ -z "$_file" ] || ! [ -e "$_file" ]; then echo n; exit 0; fi
if [ -d "$_file" ] || ! [ -x "$_file" ]; then echo x; exit 0; fi
echo "p$$"
case $_mode in *t*) read -r _line; echo g ;; esac
case $_mode in *m*) exec 2>&1 ;; esac
case $_mode in *c*) echo >` + statusFile + `; exit 0 ;; esac
`

// becomeScript follows startScript for a command with a waiting caller. launchScript follows it for a command that leaves its exit status
// in a file: its shell must survive an interrupt from the terminal, which reaches the launched command, too. So the shell has a trap with
// a command. The launched command would inherit an ignored signal, but does not inherit a trap.
const (
	becomeScript = `exec "$@"`
	launchScript = `
trap : INT QUIT
(exec "$@")
_exit=$?
echo "$_exit" >` + statusFile + `
exit "$_exit"`
)

// command returns the arguments with which the engine starts a command through a script.
func command(script, mode, dir string, argv []string) []string {
	return append([]string{Shell, "-c", script, "sh", mode, dir}, argv...)
}

// encode keeps bytes that are not text out of the API, which uses JSON. For such bytes it returns a prelude, shell commands that create
// the arguments and variables inside.
func encode(argv, env []string) (prelude string, rest []string) {
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !utf8.ValidString(entry) && prison.IsVariableName(name) {
			fmt.Fprintf(&b, "_v=$(printf %%b '%sx'); export %s=\"${_v%%x}\"\n", octal(value), name)
		}
	}
	text := true
	for _, arg := range argv {
		text = text && utf8.ValidString(arg)
	}
	if text {
		return b.String(), argv
	}
	for _, arg := range argv {
		fmt.Fprintf(&b, "_v=$(printf %%b '%sx'); set -- \"$@\" \"${_v%%x}\"\n", octal(arg))
	}
	return b.String(), nil
}

// octal encodes bytes for %b of printf(1). The caller appends a character, since a command substitution removes trailing newlines.
func octal(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\0%03o`, s[i])
	}
	return b.String()
}

// texts returns the variables of an environment that are not in encode's prelude.
func texts(env []string) []string {
	var out []string
	for _, entry := range env {
		if utf8.ValidString(entry) {
			out = append(out, entry)
		}
	}
	return out
}

// hangupScript sends SIGHUP to every process of the session in its argument, once.
const hangupScript = `
for _stat in /proc/[0-9]*/stat; do
	read -r _line <"$_stat" || continue
	_pid=${_line%% *}
	set -- "$1" ${_line##*) }
	[ "$5" = "$1" ] || continue
	kill -HUP "$_pid"
	kill -CONT "$_pid"
done 2>/dev/null
exit 0
`

// killScript kills every process of the session in its argument. It repeats while it finds any, since processes may start others. Dead
// processes stay in the list until they are reaped.
const killScript = `
_round=0
while [ $_round -lt 50 ]; do
	_round=$((_round + 1))
	_found=
	for _stat in /proc/[0-9]*/stat; do
		read -r _line <"$_stat" || continue
		_pid=${_line%% *}
		set -- "$1" ${_line##*) }
		[ "$5" = "$1" ] && [ "$2" != Z ] || continue
		kill -9 "$_pid" && _found=1
	done 2>/dev/null
	[ "$_found" ] || exit 0
done
exit 1
`
