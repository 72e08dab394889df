package main

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

// show lets a command show what it was asked for, coloured as git would, and on a terminal through git's pager, if the
// command is one that pages; pager.airlock.<command> says otherwise: a boolean, or the pager.
func (a *app) show(ctx context.Context, command string, pages bool, print func(out io.Writer, p paint) error) error {
	p := paint(wantsColour(a.config, stdout, "color.airlock", "color.ui"))
	out, wait, err := a.page(ctx, command, pages)
	if err != nil {
		return err
	}
	if shows, err := a.config.Bool("color.pager", true); out != stdout && (err != nil || !shows) {
		p = false
	}
	err = print(out, p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		err = nil // the reader has seen enough
	}
	return errors.Join(err, wait())
}

// page starts the pager. wait closes its input and waits for it.
func (a *app) page(ctx context.Context, command string, pages bool) (out io.Writer, wait func() error, err error) {
	none := func() error { return nil }
	pager, err := a.pager(ctx, command, pages)
	if err != nil || pager == "" || pager == "cat" || !isTerminal(stdout) {
		return stdout, none, err
	}
	shell, err := hostenv.Program("sh")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(shell, "-c", pager) //nolint:forbidigo,noctx // ^C is its own business
	cmd.Env = os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // as git does, git-config(1) core.pager
		if _, set := os.LookupEnv(name); !set {
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
	return in, func() error {
		_ = in.Close()
		err := cmd.Wait()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return nil // how it ends is its own business, as for git
		}
		return err
	}, nil
}

// pager is the program to page a command's output with; empty for none. GIT_PAGER goes before all settings, git-config(1).
func (a *app) pager(ctx context.Context, command string, pages bool) (string, error) {
	for _, key := range []string{"pager.airlock." + command, "pager.airlock"} {
		value := a.config.String(key, "")
		if value == "" {
			continue
		}
		wants, err := gitops.Config{"pager.airlock": value}.Bool("pager.airlock", pages)
		if _, given := os.LookupEnv("GIT_PAGER"); err != nil && !given {
			return value, nil // no boolean: the pager itself
		}
		pages = err != nil || wants
		break
	}
	if !pages {
		return "", nil
	}
	return a.repo.Pager(ctx)
}
