package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
)

// Apart returns an error if a shared path contains the repository or its work tree, or is in one of them. The agent could read
// files there that are not in the snapshot.
func Apart(repo *gitops.Repository, path string) error {
	for _, own := range []string{repo.Top, repo.CommonDir} {
		if gitops.Within(path, own) || gitops.Within(own, path) {
			return fmt.Errorf("%s and the repository's %s overlap; copy the needed files to another place",
				gitops.Text(path), gitops.Text(own))
		}
	}
	return nil
}

// ofKernel lists the kernel's file systems. Their files are not programs, and no other file can be mounted over them.
var ofKernel = []string{"/dev", "/proc", "/sys"}

// ParseTool parses [NAME=]PATH. If the part before "=" has a slash, it is part of the path, because a name has no slash.
func ParseTool(text string) (t prison.Tool, err error) {
	name, path, named := strings.Cut(text, "=")
	if !named || strings.Contains(name, "/") {
		path, name = text, filepath.Base(text)
	}
	t = prison.Tool{Name: name}
	if t.Path, err = RealPath(path); err != nil {
		if name, _, _ := strings.Cut(text, "="); named && strings.Contains(name, "/") {
			return t, fmt.Errorf("%w; the name of a tool cannot contain a slash", err)
		}
		return t, err
	}
	if t.Path == "/" {
		return t, errors.New("/ is the whole system, not a tool")
	}
	for _, folder := range ofKernel {
		if t.Path == folder || strings.HasPrefix(t.Path, folder+"/") && !strings.HasPrefix(t.Path, "/dev/shm/") {
			return t, fmt.Errorf("%s is a file of the kernel, not a program", gitops.Text(t.Path))
		}
	}
	if name == "" || name == "." || name == ".." || name == "/" || strings.ContainsAny(name, ":\n") {
		return t, fmt.Errorf("%q is not a name for a tool; use NAME=%s", name, path)
	}
	return t, executable(t.Path)
}

// executable returns an error if a file has no execute permission.
func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0 {
		return Advise(fmt.Errorf("%s is not executable", gitops.Text(path)), "chmod +x "+gitops.Pasteable(path))
	}
	return nil // the backend reports other errors
}

// RealPath returns an absolute path without links. The path may begin with "~/".
func RealPath(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if missing, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", gitops.Text(missing.Path), missing.Err) // without the name of the system call
	}
	return real, err
}
