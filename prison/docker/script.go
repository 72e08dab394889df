package docker

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Modes of the script that starts a command; any of them together.
const (
	modeTerminal = "t" // wait for a line of input, which says that the terminal has its size
	modeMerged   = "m" // standard error goes where standard output goes
	modeCheck    = "c" // only look the command up, and forget how the last one launched ended
)

// Answers of the script, the first of its output's first line. modeTerminal adds a second line.
const (
	saysRuns          = 'p' // followed by the process id, which is the session's, too
	saysNotFound      = 'n'
	saysNotExecutable = 'x'
	saysNoFolder      = 'd'
	saysNothing       = 0 // it never began
)

// startScript becomes a command. What Podman adds to every environment is taken out again. Its arguments are the mode, the working directory and the command. It is written
// for any POSIX shell and needs no other program, and its variables have names that no environment has.
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

// becomeScript follows it for a command that somebody waits for, launchScript for one that leaves
// its exit status in a file. What is typed to interrupt it is sent to the shell that waits for it, too, which has to live on: a trap that does
// something is not passed on to the command, as one that ignores would be.
const (
	becomeScript = `exec "$@"`
	launchScript = `
trap : INT QUIT
(exec "$@")
_exit=$?
echo "$_exit" >` + statusFile + `
exit "$_exit"`
)

// command is what the engine executes to start argv.
func command(script, mode, dir string, argv, env []string) []string {
	prelude, rest := encode(argv, env)
	args := []string{defaultSh, "-c", prelude + startScript + script, "sh", mode, dir}
	return append(args, rest...)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// encode keeps bytes that are not text out of the API, which speaks JSON: if there are any, a prelude makes
// arguments and variables of them inside.
func encode(argv, env []string) (prelude string, rest []string) {
	var b strings.Builder
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !utf8.ValidString(entry) && identifier.MatchString(name) {
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

// octal spells bytes for printf's %b. What follows in the command substitution keeps line ends at the end.
func octal(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\0%03o`, s[i])
	}
	return b.String()
}

// texts leaves out of an environment what encode has taken care of.
func texts(env []string) []string {
	var out []string
	for _, entry := range env {
		if utf8.ValidString(entry) {
			out = append(out, entry)
		}
	}
	return out
}

// killScript kills every process of the session that is its argument. It takes more than one round as long as
// there are any that are still starting others; the dead stay in the list until they are reaped.
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
