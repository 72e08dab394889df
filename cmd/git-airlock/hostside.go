package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// ownProgram refuses to go on if this program lies in a work tree of the repository: its daemon starts it again, and the user
// starts it next time.
func ownProgram() error {
	if _, err := hostenv.Self(); errors.Is(err, hostenv.ErrOwnProgram) {
		return &refusal{err.Error(), []string{"scripts/install  # or copy it to a folder outside of the repository, and start that one"}}
	}
	return nil
}

// hostSide is what doctor says of the environment that programs of the host get.
type hostSide struct {
	LeftOut []string `json:"left_out"` // leads into the work tree
	Unknown []string `json:"unknown"`  // variables that programs do not get
}

func readHostSide() hostSide {
	led, unknown := hostenv.Taken()
	h := hostSide{[]string{}, append([]string{}, unknown...)}
	for _, d := range led {
		h.LeftOut = append(h.LeftOut, fmt.Sprintf("%s leads into the work tree: programs of the host do not get %q", d.Name, d.Value))
	}
	return h
}

// print shows it to people.
func (h hostSide) print(w io.Writer, p ui.Paint) {
	for _, line := range h.LeftOut {
		fmt.Fprintf(w, "environment: %s\n", p.Yellow(gitops.Escape(line)))
	}
	if len(h.Unknown) > 0 {
		fmt.Fprintf(w, "environment: programs of the host do not get %s\n", gitops.Escape(strings.Join(h.Unknown, " ")))
		fmt.Fprintf(w, "    keep: %s\n", p.Bold("git config --global airlock.keepEnv '<NAME> <NAME>'"))
	}
}

// filterLines says which of the user's filters reach the network during a landing.
func filterLines(config gitops.Config) []string {
	var lines []string
	for _, name := range config.WithoutNetwork() {
		lines = append(lines, gitops.Escape(name)+": no network during a landing")
	}
	for _, name := range config.Reaching() {
		lines = append(lines, gitops.Escape(name)+": reaches the network during a landing")
	}
	return lines
}
