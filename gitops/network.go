package gitops

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// What a filter is given by a landing was written by an agent, and a filter that reaches the network may be told by it what to
// reach. So the filters of a landing have no network, where the kernel lets us take it from them: but for git-lfs, which needs
// it, and which reads addresses from the user's own configuration, and from the .lfsconfig of the work tree as it is before
// the landing (a new one is held by the gate).

// landingNetwork is the setting that leaves the network to all filters.
const landingNetwork = "airlock.landingNetwork"

// FilterError says that files could not be written as a checkout writes them, where the user has filters.
type FilterError struct {
	Filters []string // those that had no network
	error
}

func (e *FilterError) Unwrap() error { return e.error }

func (e *FilterError) Error() string {
	if len(e.Filters) == 0 {
		return e.error.Error()
	}
	return fmt.Sprintf("a landing has no network for filter %s (if it needs one: git config %s true): %v",
		Escape(strings.Join(e.Filters, ", ")), landingNetwork, e.error)
}

// filterFault returns the error of a checkout, as one of a filter's if there are any.
func (l *landing) filterFault(err error) error {
	if filters := l.Config.filters(); len(filters) > 0 && status(err) > 0 {
		return &FilterError{l.Config.WithoutNetwork(), err}
	}
	return err
}

// filters lists the keys of the commands that a checkout runs.
func (c Config) filters() []string {
	return slices.DeleteFunc(c.Keys(), func(key string) bool {
		return !strings.HasPrefix(key, "filter.") || !strings.HasSuffix(key, ".smudge") && !strings.HasSuffix(key, ".process") || c[key] == ""
	})
}

// reaches reports whether a filter keeps the network.
func (c Config) reaches(key string) bool {
	if all, err := c.Bool(landingNetwork, false); err == nil && all || apart() == nil {
		return true
	}
	program, _, _ := strings.Cut(c[key], " ")
	return strings.HasPrefix(key, "filter.lfs.") && path.Base(program) == "git-lfs"
}

// WithoutNetwork lists the names of the user's filters that a landing runs without a network, and Reaching those that keep it.
func (c Config) WithoutNetwork() []string { return c.filterNames(false) }

// Reaching lists the names of the user's filters that keep the network during a landing.
func (c Config) Reaching() []string { return c.filterNames(true) }

func (c Config) filterNames(reaching bool) []string {
	var names []string
	for _, key := range c.filters() {
		name := key[len("filter."):strings.LastIndex(key, ".")]
		if c.reaches(key) == reaching && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// apart is the command that runs another one in a network namespace of its own; nil if there can be none here. An ordinary user
// needs a user namespace for it, in which there is nobody but them.
var apart = sync.OnceValue(func() []string {
	unshare, err := hostenv.Program("unshare")
	if err != nil {
		return nil
	}
	command := []string{unshare, "--net", "--"}
	if os.Geteuid() != 0 {
		command = []string{unshare, "--user", "--map-current-user", "--net", "--"}
	}
	shell, err := hostenv.Program("sh")
	if err != nil {
		return nil
	}
	probe := exec.Command(command[0], append(command[1:], shell, "-c", ":")...) //nolint:forbidigo // it does nothing
	probe.Env = []string{}
	if probe.Run() != nil {
		return nil
	}
	return append(command, shell)
})

// withoutNetwork is a shell's line that runs another one without a network. file is what git replaces by a file's name, which it
// quotes for one shell; here are two. Without one git replaces nothing.
func withoutNetwork(line, file string) string {
	before := ""
	if file != "" {
		before = "airlock_file=" + file + " && export airlock_file && "
		line = strings.NewReplacer("%%", "%", file, `"$airlock_file"`).Replace(line)
	}
	var words []string
	for _, word := range apart() {
		words = append(words, ShellQuote(word))
	}
	text := "exec " + strings.Join(words, " ") + " -c " + ShellQuote(line)
	if file != "" {
		text = strings.ReplaceAll(text, "%", "%%")
	}
	return before + text
}
