package land

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops/procstat"
)

// unsafeCommands lists the subcommands during which no landing may run. They take the lock of the index several times, and leave something half
// done if another process takes the lock in between. A test found them: it took the lock for 5 ms at a random moment of 60 commands, 40 times
// each. Other commands change nothing when they fail, or report which part they did not do (git add --patch). git commit is in the list because
// it reads the index before it takes the lock: it would write the old index over that of a landing in between. git pull reads HEAD before it fetches:
// if a landing moves HEAD meanwhile, it fails and tells the user to run git reset --hard.
var unsafeCommands = []string{"am", "cherry-pick", commit, "merge", "pull", "rebase", "revert", "stash"}

// running returns a command of the user that is running in the work tree and is one of [unsafeCommands], or nil. It finds git processes in /proc
// (proc_pid_cmdline(5)). Only processes with our user id and in our pid namespace count. An agent has no such process, so it cannot stop
// landings. A process that cannot be read has ended.
//
// Git changes to the top of the work tree before such a command does anything.
func running(top string) *CommandError {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	buffer := make([]byte, 16<<10) // enough arguments to find git's subcommand
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		dir := "/proc/" + name
		// The folder comes first, because most processes are elsewhere, and reading a link takes one system call.
		if n, err := syscall.Readlink(dir+"/cwd", buffer); err != nil || string(buffer[:n]) != top || !isGit(readHead(dir+"/comm", buffer)) {
			continue
		}
		subcommand := unsafeSubcommand(strings.Split(string(readHead(dir+"/cmdline", buffer)), "\x00"))
		if subcommand != "" && isUsers(dir) {
			if within, after := hookOf(pid); !after || subcommand != commit {
				return &CommandError{PID: pid, Subcommand: subcommand, Waits: within}
			}
		}
	}
	return nil
}

// isGit reports whether the name of a process is git's.
func isGit(name []byte) bool {
	return string(name) == "git\n" || bytes.HasPrefix(name, []byte("git-"))
}

// hookOf reports whether a process is an ancestor of this one, and runs the hook after a commit. In an earlier hook or in its editor, a landing
// would make a git commit fail.
func hookOf(pid int) (within, after bool) {
	buffer := make([]byte, 4<<10)
	for at := os.Getppid(); at != pid; {
		for _, arg := range strings.Split(string(readHead("/proc/"+strconv.Itoa(at)+"/cmdline", buffer)), "\x00") {
			after = after || filepath.Base(arg) == "post-commit" || filepath.Base(arg) == "post-rewrite"
		}
		fields, _ := procstat.Fields(at)
		if len(fields) < 2 || at <= 1 {
			return false, false
		}
		at, _ = strconv.Atoi(fields[1])
	}
	return true, after
}

// isUsers reports whether a process has our user id and is in our pid namespace.
func isUsers(dir string) bool {
	var info syscall.Stat_t
	if syscall.Stat(dir, &info) != nil || info.Uid != uint32(os.Geteuid()) {
		return false
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && linksTo(dir+"/ns/pid", ours)
}

func linksTo(name, want string) bool {
	link, err := os.Readlink(name)
	return err == nil && link == want
}

// readHead reads the beginning of a file. The package os would need twice the time for the files of all processes.
func readHead(name string, buffer []byte) []byte {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	n, err := syscall.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// withValue lists the options of git(1) before the subcommand whose value is the next argument.
var withValue = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"}

// unsafeSubcommand returns the subcommand in the arguments of git if it is one of [unsafeCommands], and otherwise an empty string.
func unsafeSubcommand(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if name, dashed := strings.CutPrefix(filepath.Base(args[0]), "git-"); dashed {
		args = []string{"git", name}
	}
	for i := 1; i < len(args); i++ {
		switch {
		case slices.Contains(withValue, args[i]):
			i++
		case strings.HasPrefix(args[i], "-"):
		case slices.Contains(unsafeCommands, args[i]):
			return args[i]
		default:
			return ""
		}
	}
	return ""
}
