package cmdline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/promote/daemon"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

// TestSplitCommand checks that words of a task or of the agent's command are not taken for commands of this program.
func TestSplitCommand(t *testing.T) {
	for line, want := range map[string]string{
		"git-airlock run -p log -- make all":                       "make all",
		"git-airlock start log -- x":                               "x",
		"git-airlock -n run -- log -- x":                           "log -- x",
		"git-airlock visit -- git log -- x":                        "git log -- x",
		"git-airlock log -- x":                                     "",
		"git-airlock --dry-run log -1 -- x":                        "",
		"git-airlock net log -- x":                                 "",
		"git-airlock net check log -- x":                           "x",
		"git-airlock":                                              "",
		"git-airlock run -p review --tool ~/bin/claude claude -- ": "",
	} {
		if _, inside := splitCommand(strings.Fields(line)); strings.Join(inside, " ") != want {
			t.Errorf("%s: %q, want %q", line, inside, want)
		}
	}
}

func TestToolWithoutValue(t *testing.T) {
	for line, want := range map[string]string{
		"git-airlock review --tool 2":                  "git-airlock review --tool= 2",
		"git-airlock -n review 2 --tool":               "git-airlock -n review 2 --tool=",
		"git-airlock run -p review --tool /bin/x name": "git-airlock run -p review --tool /bin/x name",
	} {
		if got := withoutValue(strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestNextCommandsComeFromError checks that the commands come from the error itself, however far below it is.
func TestNextCommandsComeFromError(t *testing.T) {
	for hint, err := range map[string]error{
		"git airlock promote": &ledger.TwiceError{Inner: "a", Outer: "b"},
		"git airlock status":  &daemon.BusyError{},
	} {
		var out strings.Builder
		report(&out, fmt.Errorf("promote: %w", err))
		if !strings.Contains(out.String(), "hint: "+hint+"\n") {
			t.Errorf("%s: %s", hint, out.String())
		}
	}
}
