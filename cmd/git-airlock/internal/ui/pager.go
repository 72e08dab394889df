package ui

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// Paging shows the output of one command through git's pager.
type Paging struct {
	Config  gitops.Config
	Command string                                // for the setting pager.airlock.<command>
	Pages   bool                                  // whether the command is paged by default
	Git     func(context.Context) (string, error) // returns git's pager
	Dir     string                                // the top of the work tree, where git starts a pager, and relative to which the gate guards it
}

// Show calls print, with colours if git would use them. On a terminal the output of a command that pages goes through git's
// pager. pager.airlock.<command> overrides this with a boolean or a pager. whole reports whether the pager took the output to its end.
// A pager that fails has not shown it, even if the output fitted into the pipe.
func (g Paging) Show(ctx context.Context, print func(out io.Writer, p Paint) error) (whole bool, err error) {
	p := Colours(g.Config)
	out, wait, err := g.page(ctx)
	if err != nil {
		return false, err
	}
	if shows, err := g.Config.Bool("color.pager", true); out != Stdout && (err != nil || !shows) {
		p = false
	}
	err = print(out, p)
	whole = err == nil
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		err = nil // the reader has seen enough
	}
	ended, waitErr := wait()
	return whole && ended, errors.Join(err, waitErr)
}

// page starts the pager. wait closes its input, waits for it, and reports whether it ended well.
func (g Paging) page(ctx context.Context) (out io.Writer, wait func() (bool, error), err error) {
	none := func() (bool, error) { return true, nil }
	pager, err := g.pager(ctx)
	if err != nil || pager == "" || pager == "cat" || !IsTerminal(Stdout) {
		return Stdout, none, err
	}
	shell, err := hostenv.Program("sh")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(shell, "-c", pager) //nolint:forbidigo,noctx // ^C is its own business
	cmd.Dir, cmd.Env = g.Dir, os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // as git does, git-config(1) core.pager
		if !isSet(name) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return in, func() (bool, error) {
		_ = in.Close()
		err := cmd.Wait()
		if _, exited := errors.AsType[*exec.ExitError](err); exited {
			return false, nil // as in git, the pager's exit status is not the command's
		}
		return err == nil, err
	}, nil
}

// pager returns the pager for a command's output, or an empty string for none. GIT_PAGER has priority over all settings, see
// git-config(1).
func (g Paging) pager(ctx context.Context) (string, error) {
	pages := g.Pages
	for _, key := range []string{"pager.airlock." + g.Command, "pager.airlock"} {
		value := g.Config.String(key, "")
		if value == "" {
			continue
		}
		wants, err := gitops.Config{"pager.airlock": value}.Bool("pager.airlock", g.Pages)
		if err != nil && !isSet("GIT_PAGER") {
			return value, nil // not a boolean, so it is the pager
		}
		pages = err != nil || wants
		break
	}
	if !pages {
		return "", nil
	}
	return g.Git(ctx)
}
