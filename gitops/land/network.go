package land

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// What a filter is given by a landing was written by an agent, and a filter that reaches the network may be told by it what to
// reach. So the filters of a landing have no network, where the kernel lets us take it from them. git-lfs needs it, and keeps it
// as long as no file of the tree can tell git-lfs another address: while .lfsconfig is what it was when the airlock began, or
// where the user's own configuration has lfs.url, which counts more.

// landingNetwork is the setting that leaves the network to all filters.
const landingNetwork = "airlock.landingNetwork"

// FilterError says that files could not be written as a checkout writes them, where the user has filters.
type FilterError struct {
	Filters []string // those that had no network
	Changed bool     // git-lfs is among them, since .lfsconfig has changed
	error
}

func (e *FilterError) Unwrap() error { return e.error }

func (e *FilterError) Error() string {
	if len(e.Filters) == 0 && !e.Changed {
		return e.error.Error()
	}
	why := ""
	if e.Changed {
		why = "; .lfsconfig has changed since the airlock began, if git-lfs may go on: git config lfs.url URL"
	}
	return fmt.Sprintf("a landing has no network for filter %s (if it needs one: git config %s true%s): %v",
		gitops.Escape(strings.Join(e.Filters, ", ")), landingNetwork, why, e.error)
}

// filterFault returns the error of a checkout, as one of a filter's if there are any.
func (l *landing) filterFault(err error) error {
	if filters := filters(l.Config); len(filters) > 0 && gitops.Status(err) > 0 {
		return &FilterError{filterNames(l.Config, false, l.filters.lfs), !l.filters.lfs, err}
	}
	return err
}

// filters lists the keys of the commands that a checkout runs.
func filters(c gitops.Config) []string {
	return slices.DeleteFunc(c.Keys(), func(key string) bool {
		return !strings.HasPrefix(key, "filter.") || !strings.HasSuffix(key, ".smudge") && !strings.HasSuffix(key, ".process") || c[key] == ""
	})
}

// reaches reports whether a filter keeps the network; lfs, whether git-lfs does.
func reaches(c gitops.Config, key string, lfs bool) bool {
	return reachesAll(c) || apart() == nil || lfs && isLFS(c, key)
}

// reachesAll reports whether the user leaves the network to all filters.
func reachesAll(c gitops.Config) bool {
	all, err := c.Bool(landingNetwork, false)
	return err == nil && all
}

// isLFS reports whether a command of a filter is git-lfs.
func isLFS(c gitops.Config, key string) bool {
	program, _, _ := strings.Cut(c[key], " ")
	return strings.HasPrefix(key, "filter.lfs.") && path.Base(program) == "git-lfs"
}

// noAddress is the lfs.url of a git-lfs that must not take one from the tree. It counts more than that of .lfsconfig.
const noAddress = "file:///airlock-lfsconfig-has-changed"

// landingFilters are the user's filters as a landing runs them.
type landingFilters struct {
	lfs    bool     // git-lfs keeps the network
	config []string // "key=value" pairs for git
}

// filtersOf returns the user's filters as a landing runs them. begun is the commit whose .lfsconfig git-lfs may obey, now are
// those one of whose files may lie in the work tree.
func filtersOf(ctx context.Context, r *gitops.Repository, config gitops.Config, begun gitops.OID, now ...gitops.OID) (landingFilters, error) {
	f := landingFilters{lfs: true}
	if config.String("lfs.url", "") == "" && !reachesAll(config) && slices.ContainsFunc(config.Keys(), func(key string) bool { return isLFS(config, key) }) {
		first, err := lfsConfig(ctx, r, begun)
		for _, commit := range now {
			var file string
			if err == nil {
				file, err = lfsConfig(ctx, r, commit)
			}
			f.lfs = f.lfs && file == first && !strings.HasPrefix(file, gitops.ModeLink.String())
		}
		if err != nil {
			return f, err
		}
	}
	f.config = filtersAtTop(r, config, f.lfs)
	if !f.lfs {
		f.config = append(f.config, "lfs.url="+noAddress)
	}
	return f, nil
}

// lfsConfig returns mode and name of a commit's .lfsconfig, empty if it has none.
func lfsConfig(ctx context.Context, r *gitops.Repository, commit gitops.OID) (string, error) {
	entries, err := r.Records(ctx, gitops.Call{Args: []string{"ls-tree", "-z", "--full-tree", string(commit), ".lfsconfig"}})
	return strings.Join(entries, ""), err
}

// WithoutNetwork lists the names of the user's filters that a landing runs without a network, and Reaching those that keep it.
func WithoutNetwork(c gitops.Config) []string { return filterNames(c, false, true) }

// Reaching lists the names of the user's filters that keep the network during a landing.
func Reaching(c gitops.Config) []string { return filterNames(c, true, true) }

func filterNames(c gitops.Config, reaching, lfs bool) []string {
	var names []string
	for _, key := range filters(c) {
		name := key[len("filter."):strings.LastIndex(key, ".")]
		if reaches(c, key, lfs) == reaching && !slices.Contains(names, name) {
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
		words = append(words, gitops.ShellQuote(word))
	}
	text := "exec " + strings.Join(words, " ") + " -c " + gitops.ShellQuote(line)
	if file != "" {
		text = strings.ReplaceAll(text, "%", "%%")
	}
	return before + text
}
