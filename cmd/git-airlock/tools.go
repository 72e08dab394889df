package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// toolKey is the setting, given any number of times, of what a prison gets of the host's tools.
const toolKey = "airlock.tool"

// hostProgramFlags are the options for what a prison gets of the host besides the workspace.
func hostProgramFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "tool", Usage: "share the program or folder `[NAME=]PATH` read-only, below /tools, on the PATH"},
		&cli.StringFlag{Name: "rootfs", Usage: "take the system from the `folder`, in place of this host's; it must hold sh and git"},
	}
}

// hostPrograms reads these options, or the settings airlock.tool (any number) and airlock.rootfs.
func hostPrograms(c *cli.Context, s *session.Session) (tools []airlock.Tool, rootfs string, err error) {
	listed, err := listedValues(c, s, "tool", toolKey)
	if err != nil {
		return nil, "", err
	}
	for _, text := range listed {
		t, err := parseTool(text)
		if err == nil {
			err = outside(s, "--tool", t.Path)
		}
		if err != nil {
			return nil, "", err
		}
		if slices.ContainsFunc(tools, func(o airlock.Tool) bool { return o.Name == t.Name }) {
			return nil, "", ui.Usagef("--tool: two tools are called %q; say NAME=%s", t.Name, gitops.Escape(t.Path))
		}
		tools = append(tools, t)
	}
	root := s.Config.String("airlock.rootfs", "")
	if c.IsSet("rootfs") {
		root = c.String("rootfs")
	}
	if root == "" {
		return tools, "", nil
	}
	if rootfs, err = realPath(root); err != nil {
		return nil, "", ui.Usagef("--rootfs: %v", err)
	}
	if rootfs == "/" { // which it is without
		return tools, "", nil
	}
	return tools, rootfs, outside(s, "--rootfs", rootfs)
}

// outside refuses to share a path that the repository or its work tree is in, or that is in one of them: the agent would
// see what no snapshot took.
func outside(s *session.Session, option, path string) error {
	for _, own := range []string{s.Repo.Top, s.Repo.CommonDir} {
		if lies(path, own) || lies(own, path) {
			return ui.Usagef("%s: %s and the repository's %s are not apart; copy what is needed to another place",
				option, gitops.Escape(path), gitops.Escape(own))
		}
	}
	return nil
}

// lies reports whether a path is a folder or lies below it.
func lies(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// ofKernel are the folders whose files are no programs: nothing can be laid over them either.
var ofKernel = []string{"/dev", "/proc", "/sys"}

// parseTool reads [NAME=]PATH. A name cannot hold a slash, so neither can what is before "=".
func parseTool(text string) (t airlock.Tool, err error) {
	name, path, named := strings.Cut(text, "=")
	if !named || strings.Contains(name, "/") {
		path, name = text, filepath.Base(text)
	}
	t = airlock.Tool{Name: name}
	if t.Path, err = realPath(path); err != nil {
		if name, _, _ := strings.Cut(text, "="); named && strings.Contains(name, "/") {
			return t, ui.Usagef("--tool: %v; a tool's name has no slash", err)
		}
		return t, ui.Usagef("--tool: %v", err)
	}
	if t.Path == "/" {
		return t, ui.Usagef("--tool: / is this whole system, not a tool")
	}
	for _, folder := range ofKernel {
		if t.Path == folder || strings.HasPrefix(t.Path, folder+"/") && !strings.HasPrefix(t.Path, "/dev/shm/") {
			return t, ui.Usagef("--tool: %s is of the kernel's, not of programs", gitops.Escape(t.Path))
		}
	}
	if name == "" || name == "." || name == ".." || name == "/" || strings.ContainsAny(name, ":\n") {
		return t, ui.Usagef("--tool: %q is no name for a tool; say NAME=%s", name, path)
	}
	return t, executable(t.Path)
}

// executable refuses a file that nobody can execute.
func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0 {
		return environment.Advise(ui.Usagef("--tool: %s is not executable", gitops.Escape(path)), "chmod +x "+gitops.Pasteable(path))
	}
	return nil // what else may be wrong with it the backend says
}

// realPath is where a path leads, which may begin with the user's home.
func realPath(path string) (string, error) {
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
	return filepath.EvalSymlinks(path)
}
