package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/git-airlock/git-airlock/promote/evidence"
)

// world is the state that the commands of one script share.
type world struct {
	kept     map[string]string // maps a path to a description of its content
	excludes map[string]string // maps a git directory to its info/exclude before the first start
	airlocks []remembered
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// patience is the time that a script waits for an expected change. On a busy machine a change can take long.
const patience = 3 * time.Minute

// rest pauses a script before it checks again. begun is the time of the first check. Pauses get longer, because checking starts up to a dozen
// programs, which take processor time from the program under test, and more of it the longer a busy machine lets a script wait.
func rest(begun time.Time) {
	time.Sleep(min(max(time.Since(begun)/2, 20*time.Millisecond), 300*time.Millisecond))
}

// scriptCommands are the commands that the scripts have in addition to testscript's.
var scriptCommands map[string]func(ts *testscript.TestScript, neg bool, args []string)

func init() {
	scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"git":        cmdGit,
		"fsck":       cmdFsck,
		"sh":         cmdShell,
		"agent":      cmdAgent,
		"exits":      cmdExits,
		"repo":       cmdRepo,
		"start":      cmdStart,
		"status":     cmdStatus,
		"json":       cmdJSON,
		"waitstatus": cmdWaitStatus,
		"waitfor":    cmdWaitFor,
		"sameday":    cmdSameDay,
		"landed":     cmdLanded,
		"pending":    cmdPending,
		"settled":    cmdSettled,
		"keep":       cmdKeep,
		"kept":       cmdKept,
		"next":       cmdNext,
		"exact":      cmdExact,
		"remember":   cmdRemember,
		"noairlock":  cmdNoAirlock,
		"getenv":     cmdGetenv,
		"for":        cmdFor,
		"help":       cmdHelp,
		"refused":    cmdRefused,
		"dead":       cmdDead,
		"ended":      cmdEnded,
		"absent":     cmdAbsent,
		"plain":      cmdPlain,
		"keys":       cmdKeys,
		"mounted":    cmdMounted,
		"hinted":     cmdHinted,
		"unhinted":   cmdUnhinted,
	}
}

func usage(ts *testscript.TestScript, wrong bool, text string) {
	if wrong {
		ts.Fatalf("usage: %s", text)
	}
}

// succeed runs a program that must succeed, or with "!" must fail.
func succeed(ts *testscript.TestScript, neg bool, program string, args ...string) {
	err := ts.Exec(program, args...)
	if (err != nil) != neg {
		ts.Fatalf("%s: unexpected result: %v", program, err)
	}
}

// git ARGS runs git.
func cmdGit(ts *testscript.TestScript, neg bool, args []string) { succeed(ts, neg, "git", args...) }

// prelude goes before each shell script: "set -e" lets a failing "! command" pass, and a failing "not command" not.
const prelude = `not() { ! "$@"; }
`

// checking also goes before those of the user. git fsck reads objects before refs, so that it complains about a note of the daemon that it meets
// meanwhile, and fsck runs it again then.
const checking = `fsck() {
	until refs=$(git for-each-ref); git fsck --strict --no-dangling --no-progress; do
		test "$refs" != "$(git for-each-ref)" || return
	done
}
`

// fsck checks the user's repository.
func cmdFsck(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 0, "fsck")
	cmdShell(ts, neg, []string{"fsck"})
}

// sh TEXT runs a shell script as the user.
func cmdShell(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 0, "sh TEXT [ARGS]")
	succeed(ts, neg, "sh", append([]string{"-euc", prelude + checking + args[0], "sh"}, args[1:]...)...)
}

// agent TEXT runs a shell script in the prison as the agent.
func cmdAgent(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 0, "agent TEXT [ARGS]")
	succeed(ts, neg, "git", append([]string{"airlock", "visit", "--", "sh", "-euc", prelude + args[0], "sh"}, args[1:]...)...)
}

// exits STATUS PROGRAM ARGS checks the exit status of a program.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 2, "exits STATUS PROGRAM [ARGS]")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// repo DIR makes a repository from the archive's files in a folder, and changes to it.
func cmdRepo(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "repo DIR")
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Chdir(dir))
	succeed(ts, false, "git", "init", "-q")
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 {
		ts.Check(os.WriteFile(filepath.Join(dir, "README"), []byte("one\ntwo\nthree\n"), 0o644))
	}
	succeed(ts, false, "git", "add", "-A")
	succeed(ts, false, "git", "commit", "-q", "-m", "base")
	worldOf(ts).excludes[commonDir(ts)] = excludeOf(ts)
}

func readOr(name, otherwise string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return otherwise
	}
	return string(content)
}

// start ARGS runs git airlock start, and remembers the airlock and the state before the first start.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, "start ARGS")
	if _, started := worldOf(ts).excludes[commonDir(ts)]; !started {
		worldOf(ts).excludes[commonDir(ts)] = excludeOf(ts)
	}
	succeed(ts, false, "git", append([]string{"airlock", "start"}, args...)...)
	stderr := ts.ReadFile("stderr")
	cmdRemember(ts, false, nil)
	fmt.Fprint(ts.Stderr(), stderr)
}

// statusDocument runs status --json, without git between, whose exit status must be 0 or 4.
func statusDocument(ts *testscript.TestScript) any {
	cmd := exec.Command("git-airlock", "status", "--json")
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 4) {
		ts.Fatalf("status --json: %v\n%s%s", err, out, &stderr)
	}
	var d any
	if err := json.Unmarshal(out, &d); err != nil {
		ts.Fatalf("status --json: %v in %s", err, out)
	}
	return d
}

// environ returns the variables of the script's environment that the program reads.
func environ(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"HOME", "PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES", "LC_ALL",
		"TMPDIR", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "AIRLOCK_TEST_KILL", "DOCKER_HOST", "GIT_PROGRESS_DELAY"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// field returns the value at a path such as hold.next.0 in a document. "len" is a length. A missing value is "none".
func field(document any, path string) string {
	for _, key := range strings.Split(path, ".") {
		switch d := document.(type) {
		case map[string]any:
			document = d[key]
		case []any:
			i, err := strconv.Atoi(key)
			switch {
			case key == "len":
				document = len(d)
			case err == nil && i < len(d):
				document = d[i]
			default:
				return "none"
			}
		default:
			return "none"
		}
	}
	switch d := document.(type) {
	case string:
		return d
	case float64:
		return strconv.FormatFloat(d, 'f', -1, 64)
	}
	text, _ := json.Marshal(document)
	return string(text)
}

// mismatch returns the first of the PATH VALUE pairs that a document does not have.
func mismatch(document any, pairs []string) string {
	for i := 0; i < len(pairs); i += 2 {
		if got := field(document, pairs[i]); got != pairs[i+1] {
			return fmt.Sprintf("%s is %q, want %q", pairs[i], got, pairs[i+1])
		}
	}
	return ""
}

// status PATH VALUE... compares fields of status --json.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) == 0 || len(args)%2 != 0, "status PATH VALUE...")
	d := statusDocument(ts)
	if wrong := mismatch(d, args); wrong != "" {
		text, _ := json.MarshalIndent(d, "", " ")
		ts.Fatalf("%s in\n%s", wrong, text)
	}
}

// json FILE PATH VALUE... compares fields of a JSON document.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 3 || len(args)%2 != 1, "json FILE PATH VALUE...")
	var d any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &d))
	if wrong := mismatch(d, args[1:]); wrong != "" {
		ts.Fatalf("%s in\n%s", wrong, ts.ReadFile(args[0]))
	}
}

// consistent is the time within which status has waited for a running cycle to end, as [promote.Engine.State] does.
const consistent = time.Second

// waitstatus PATH VALUE... waits until status --json has these fields. A status that took long may show what a cycle has done so far, with
// the holds of the cycle before, while git waits for the index. Then the fields must still be there when no cycle runs.
func cmdWaitStatus(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) == 0 || len(args)%2 != 0, "waitstatus PATH VALUE...")
	for begun := time.Now(); ; rest(begun) {
		asked := time.Now()
		wrong := mismatch(statusDocument(ts), args)
		if wrong == "" && time.Since(asked) >= consistent {
			cmdWaitFor(ts, false, []string{rested, commonDir(ts)})
			wrong = mismatch(statusDocument(ts), args)
		}
		if wrong == "" {
			return
		}
		if time.Since(begun) > patience {
			cmdStatus(ts, false, args)
			return
		}
	}
}

// waitfor [-within DURATION] TEXT waits until a shell script succeeds.
func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	within := patience
	if len(args) > 2 && args[0] == "-within" {
		d, err := time.ParseDuration(args[1])
		ts.Check(err)
		within, args = d, args[2:]
	}
	usage(ts, neg || len(args) == 0, "waitfor [-within DURATION] TEXT [ARGS]")
	begin := time.Now()
	for {
		cmd := exec.Command("sh", append([]string{"-euc", prelude + args[0], "sh"}, args[1:]...)...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
		at := time.Now()
		out, err := cmd.CombinedOutput()
		if err == nil {
			ts.Logf("after %s", at.Sub(begin).Round(time.Millisecond))
			return
		}
		if at.Sub(begin) > within {
			ts.Fatalf("not within %s: %v\n%s", within, err, out)
		}
		rest(begin)
	}
}

// sameday DURATION waits for midnight in UTC if it is nearer than DURATION, because the requests of a credential are counted from 0 again
// then.
func cmdSameDay(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "sameday DURATION")
	needed, err := time.ParseDuration(args[0])
	ts.Check(err)
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < needed {
		time.Sleep(left)
	}
}

// rested is the end of a shell script that succeeds when no cycle runs: after a cycle has moved refs, it writes its outcome and its events.
// Its first parameter is the common git directory.
const rested = `for lock in "$1"/airlock/*/cycle.lock; do if test -e "$lock"; then flock -n 9 9<"$lock"; fi; done`

// landed N waits until the outer branch has exactly N commits since the base, and the cycle that landed them has ended. It checks with git
// alone, because the daemon must land them without another command. The index is locked for a moment after the branch has moved.
func cmdLanded(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "landed N")
	cmdWaitFor(ts, false, []string{`n=$(git rev-list --count "$2..$3"); echo "$n landed"; test "$n" = "$4"; not test -e "$(git rev-parse --git-path index.lock)"; ` + rested,
		commonDir(ts), ts.Getenv("BASE"), "refs/heads/" + ts.Getenv("BRANCH"), args[0]})
}

// pending N waits until the airlock's ref pending has exactly N commits that are not on the branch, and the cycle that made them pending has
// ended. The number in status does not show that, because it also counts commits in the workspace that no cycle has seen yet.
func cmdPending(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "pending N")
	cmdWaitFor(ts, false, []string{`n=$(git rev-list --count "refs/airlock/$2/pending" "^refs/airlock/$2/promoted" "^$3"); echo "$n pending"; test "$n" = "$4"; ` + rested,
		commonDir(ts), ts.Getenv("ID"), "refs/heads/" + ts.Getenv("BRANCH"), args[0]})
}

// settled waits until no lock is held on the index or a ref, and no cycle runs.
func cmdSettled(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "settled")
	cmdWaitFor(ts, false, []string{`test -z "$(find "$1" -name '*.lock' ! -path "$1/airlock/*")"; ` + rested, commonDir(ts)})
}

// keep PATHS remembers the content of paths: bytes, modes, links, and everything below a folder, except the ref of evidence, which the daemon moves
// some seconds after a landing.
func cmdKeep(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) == 0, "keep PATH...")
	clear(worldOf(ts).kept)
	for _, path := range args {
		worldOf(ts).kept[ts.MkAbs(path)] = describe(ts.MkAbs(path))
	}
}

// kept checks that the kept paths are unchanged.
func cmdKept(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 0, "kept")
	for path, before := range worldOf(ts).kept {
		if now := describe(path); now != before {
			ts.Fatalf("%s has changed:\n%s\nbefore:\n%s", path, now, before)
		}
	}
}

// describe returns a description of a file or a folder tree.
func describe(path string) string {
	var b strings.Builder
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", p, errors.Unwrap(err))
			return nil
		}
		if d.Name() == filepath.Base(evidence.NotesRef) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			bytes, err := os.ReadFile(p)
			content = fmt.Sprintf("%d bytes %x %v", len(bytes), sha256.Sum256(bytes), err)
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(p)
		}
		fmt.Fprintln(&b, p, info.Mode(), content)
		return err
	})
	fmt.Fprint(&b, err)
	return b.String()
}

// next runs the next commands of the first hold in a shell, as if they were pasted.
func cmdNext(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 1, "next [N]")
	n := "0"
	if len(args) == 1 {
		n = args[0]
	}
	line := field(statusDocument(ts), "hold.next."+n)
	ts.Logf("$ %s", line)
	succeed(ts, false, "sh", "-ec", line)
}

// getenv NAME TEXT sets a variable to what a shell script prints.
func cmdGetenv(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "getenv NAME TEXT")
	succeed(ts, false, "sh", "-euc", prelude+args[1])
	ts.Setenv(args[0], strings.TrimSuffix(ts.ReadFile("stdout"), "\n"))
}

// for WORD... : COMMAND runs a command of these for each word, in the place of "{}".
func cmdFor(ts *testscript.TestScript, neg bool, args []string) {
	colon := slices.Index(args, ":")
	usage(ts, neg || colon < 0 || len(args) < colon+2 || scriptCommands[args[colon+1]] == nil, "for WORD... : COMMAND [ARGS]")
	for _, word := range args[:colon] {
		var line []string
		for _, arg := range args[colon+2:] {
			line = append(line, strings.ReplaceAll(arg, "{}", word))
		}
		ts.Logf("> %s %q", args[colon+1], line)
		scriptCommands[args[colon+1]](ts, false, line)
	}
}

// help PROGRAM ARGS checks that a program prints a help text with the exit statuses on standard output.
func cmdHelp(ts *testscript.TestScript, neg bool, args []string) {
	succeed(ts, neg, args[0], args[1:]...)
	out := ts.ReadFile("stdout")
	if !strings.Contains(out, "USAGE") || !strings.Contains(out, "Exit status") || ts.ReadFile("stderr") != "" {
		ts.Fatalf("no help")
	}
}

// refused PROGRAM ARGS checks that a program fails, with a message only on standard error, prefixed as all messages are.
func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	succeed(ts, true, args[0], args[1:]...)
	if !strings.HasPrefix(ts.ReadFile("stderr"), "airlock: ") || ts.ReadFile("stdout") != "" {
		ts.Fatalf("not told as it should be")
	}
}

// hinted PROGRAM ARGS checks that a program fails with a hint.
func cmdHinted(ts *testscript.TestScript, neg bool, args []string) {
	_ = ts.Exec(args[0], args[1:]...)
	if said := ts.ReadFile("stderr"); !strings.HasPrefix(said, "airlock: ") || neg == strings.Contains(said, "\nhint: ") {
		ts.Fatalf("not told as it should be")
	}
}

// unhinted PROGRAM ARGS checks that a program fails without a hint.
func cmdUnhinted(ts *testscript.TestScript, _ bool, args []string) { cmdHinted(ts, true, args) }

// absent PATTERN FILE checks that a file has no match, and otherwise prints the matches.
func cmdAbsent(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "absent PATTERN FILE")
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		if pattern.MatchString(line) {
			ts.Fatalf("%s: %q", args[0], line)
		}
	}
}

// mounted DIR [OPTIONS] mounts a file system in memory on a folder. It is unmounted at the end of the script in any case.
func cmdMounted(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) == 0, "mounted DIR [OPTIONS]")
	dir := ts.MkAbs(args[0])
	succeed(ts, false, "mount", append(append([]string{"-t", "tmpfs"}, args[1:]...), "none", dir)...)
	env := environ(ts)
	ts.Defer(func() {
		cmd := exec.Command("sh", "-c", `umount "$1/.git"; rm -f "$1"/.git/filler*; (cd "$1" && git airlock clear --discard-pending); umount -l "$1"`, "sh", dir)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Logf("unmount %s: %v\n%s", dir, err, out)
		}
	})
}
