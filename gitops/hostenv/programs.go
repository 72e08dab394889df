package hostenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrOwnProgram means that this program is in a work tree of the repository.
var ErrOwnProgram = errors.New("git-airlock is started from a work tree of the repository, where an agent could replace it")

// systemPath lists the system's folders for programs.
const systemPath = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin"

// programs are all programs that this program starts on the host, and those that git starts for our commands. A
// test puts a canary for each of them where PATH leads into the work tree.
var programs = []string{
	"git", "git-airlock", "sh", "less", "unshare", // by name
	"newuidmap", "newgidmap", // for prisons
	"apt-get", "dnf", "zypper", "pacman", "apk", // looked for, to name the command that installs
	"gpg", "gpgsm", "ssh-keygen", "ssh", "editor", "vi", "pager", "git-lfs", "gh", "cat", "sleep", // by git, or because a setting names them
	"git-remote-https", "git-remote-http", "git-upload-pack", "git-merge-tree", "git-index-pack",
}

// Program returns the absolute path of a program, from one of the system's folders, or else from PATH.
func Program(name string) (string, error) { return find(name, systemPath, os.Getenv("PATH")) }

// UserProgram returns the absolute path of a program that the user may have replaced by another than the system's:
// the first on PATH, as in the user's own shell.
func UserProgram(name string) (string, error) { return find(name, os.Getenv("PATH"), systemPath) }

func find(name string, paths ...string) (string, error) {
	process.Lock()
	trees := process.trees
	process.Unlock()
	for _, dir := range filepath.SplitList(strings.Join(paths, ":")) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !touches(new(Walk), file, trees) {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: no such program outside of the work tree", name)
}
