package ui

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// browserPatience is how long an error of the program that opens a browser is waited for. The program itself may be the browser.
const browserPatience = 2 * time.Second

// OpenPage opens a file, an absolute path, in the user's browser, and does not wait for the end of the browser. The program is never one
// of the work tree, and does not run there: what it starts could load files of its current folder.
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
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s has opened no browser: %w", name, err)
		}
	case <-time.After(browserPatience):
	}
	return nil
}
