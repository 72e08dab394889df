package ui

import (
	"fmt"
	"os/exec"
	"runtime"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// OpenPage opens a file, an absolute path, in the user's browser, and does not wait for it. The program is never one of the work
// tree, and does not run there: what it starts could load files of its current folder.
func OpenPage(file string) error {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	program, err := hostenv.UserProgram(name)
	if err != nil {
		return fmt.Errorf("open the page: %w", err)
	}
	cmd := exec.Command(program, file) //nolint:forbidigo,noctx // it outlives this process
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return cmd.Process.Release()
}
