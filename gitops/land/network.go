package land

import (
	"cmp"
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
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/words"
)

// An agent wrote the input of the filters in a landing. If a filter can reach the network, this input may select the address. So a landing runs
// the filters without a network, where the kernel allows this. git-lfs needs the network. It keeps the network as long as no file of the tree
// can give it another address: while .lfsconfig is the same as when the airlock began, or if the user's own configuration has lfs.url, which
// has precedence.

// landingNetwork is the setting that gives all filters the network.
const landingNetwork = "airlock.landingNetwork"

// FilterError means that files could not be written as a checkout writes them, because of a filter or of what the commit contains.
type FilterError struct {
	Filters   []string // the filters that had no network
	Changed   bool     // whether git-lfs is one of them because .lfsconfig has changed
	Uncreated bool     // no filter is the reason: git could not create a file of the commit
	error
}

func (e *FilterError) Unwrap() error { return e.error }

// Error begins with the file and names the filter, if git did. It suggests the network only if that filter had none.
func (e *FilterError) Error() string {
	file, filter, text := gitops.SmudgeFailure(e.error)
	if file != "" { // shorten it, so that the rest is not cut off
		file = words.Shorten(strings.TrimSuffix(file, ": "), 200) + ": "
	}
	filters, changed := e.Filters, e.Changed
	if filter != "" {
		filters = slices.DeleteFunc(slices.Clone(filters), func(name string) bool { return name != filter })
		changed = changed && filter == "lfs"
	}
	why := ""
	switch {
	case len(filters) == 0 && !changed, e.Uncreated:
		return file + text
	case changed:
		why = "; .lfsconfig has changed since the airlock began, if git-lfs may go on: git config lfs.url URL"
	}
	return fmt.Sprintf("%sa landing has no network for filter %s (if it needs one: git config %s true%s): %s",
		file, gitops.Text(strings.Join(filters, ", ")), landingNetwork, why, text)
}

// filterFault returns the error of a checkout, as a [FilterError] if a filter or the commit may be the reason.
func (l *landing) filterFault(err error) error {
	uncreated := gitops.Uncreated(err)
	if gitops.Status(err) > 0 && (uncreated || len(filters(l.Config)) > 0) {
		return &FilterError{filterNames(l.Config, false, l.filters.lfs), !l.filters.lfs, uncreated, err}
	}
	return err
}

// StartMerge starts a merge of request.New in the working tree, as [gitops.Repository.StartMerge] does, with the user's filters as a landing runs
// them.
func StartMerge(ctx context.Context, r *gitops.Repository, request Landing) (err error) {
	l := &landing{Landing: request}
	if l.filters, err = filtersOf(ctx, r, nil, l.Config, cmp.Or(l.Begun, l.Old), l.Old, l.New); err != nil {
		return err
	}
	return l.filterFault(r.StartMerge(ctx, l.New, l.filters.config...))
}

// filters lists the keys of the commands that a checkout runs.
func filters(c gitops.Config) []string {
	return slices.DeleteFunc(c.Keys(), func(key string) bool {
		return !strings.HasPrefix(key, "filter.") || !strings.HasSuffix(key, ".smudge") && !strings.HasSuffix(key, ".process") || c[key] == ""
	})
}

// reaches reports whether a filter keeps the network. lfs is whether git-lfs does.
func reaches(c gitops.Config, key string, lfs bool) bool {
	return reachesAll(c) || lfs && isLFS(c, key) || unshareCommand() == nil
}

// CheckSettings returns an error for a setting of this package that cannot be read.
func CheckSettings(c gitops.Config) error {
	_, err := c.Bool(landingNetwork, false)
	return err
}

// reachesAll reports whether the user's settings give all filters the network.
func reachesAll(c gitops.Config) bool {
	all, err := c.Bool(landingNetwork, false)
	return err == nil && all
}

// isLFS reports whether the command of a filter is git-lfs.
func isLFS(c gitops.Config, key string) bool {
	program, _, _ := strings.Cut(c[key], " ")
	return strings.HasPrefix(key, "filter.lfs.") && path.Base(program) == "git-lfs"
}

// noAddress is the lfs.url for a git-lfs that must not read an address from the tree. It has precedence over .lfsconfig.
const noAddress = "file:///airlock-lfsconfig-has-changed"

// landingFilters are the user's filters, as a landing runs them.
type landingFilters struct {
	lfs    bool     // whether git-lfs keeps the network
	config []string // "key=value" pairs for git
}

// filtersOf returns the user's filters, as a landing runs them. begun is the commit with the .lfsconfig that
// git-lfs may use. now are the commits whose .lfsconfig may be in the work tree. If inspector is nil, git reads these commits.
func filtersOf(ctx context.Context, r *gitops.Repository, inspector *quarantine.Inspector, config gitops.Config, begun gitops.OID, now ...gitops.OID) (landingFilters, error) {
	f := landingFilters{lfs: true}
	if config.String("lfs.url", "") == "" && !reachesAll(config) && slices.ContainsFunc(config.Keys(), func(key string) bool { return isLFS(config, key) }) {
		first, err := lfsConfig(ctx, r, inspector, begun)
		for _, commit := range now {
			file := first
			if err == nil && commit != begun {
				file, err = lfsConfig(ctx, r, inspector, commit)
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

// lfsConfig returns the mode and the object name of the .lfsconfig of a commit, empty if there is none. It starts git only if the
// inspector does not find the commit.
func lfsConfig(ctx context.Context, r *gitops.Repository, inspector *quarantine.Inspector, commit gitops.OID) (string, error) {
	const name = ".lfsconfig"
	if entries, err := topEntries(ctx, inspector, commit); err == nil {
		if i := slices.IndexFunc(entries, func(e gitops.TreeEntry) bool { return e.Name == name }); i >= 0 {
			return entries[i].Mode.String() + " " + string(entries[i].OID), nil
		}
		return "", nil
	}
	records, err := r.Records(ctx, gitops.Call{Args: []string{"ls-tree", "-z", "--full-tree", "--format=%(objectmode) %(objectname)", string(commit), name}})
	return strings.Join(records, ""), err
}

// topEntries reads the top folder of a commit in process.
func topEntries(ctx context.Context, inspector *quarantine.Inspector, id gitops.OID) ([]gitops.TreeEntry, error) {
	if inspector == nil {
		return nil, gitops.ErrNoCommit
	}
	commit, err := inspector.Commit(ctx, id)
	if err != nil {
		return nil, err
	}
	return inspector.Tree(ctx, commit.Tree)
}

// WithoutNetwork lists the names of the user's filters that a landing runs without a network.
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

// unshareCommand is the command that runs another one in its own network namespace, or nil if this machine allows none. For
// an ordinary user it also creates a user namespace with only this user in it.
var unshareCommand = sync.OnceValue(func() []string {
	unshare, err := hostenv.Program("unshare")
	shell, noShell := hostenv.Program("sh")
	if err != nil || noShell != nil {
		return nil
	}
	command := []string{unshare, "--net", "--"}
	if os.Geteuid() != 0 {
		command = []string{unshare, "--user", "--map-current-user", "--net", "--"}
	}
	probe := exec.Command(command[0], append(command[1:], shell, "-c", ":")...) //nolint:forbidigo // it does nothing
	probe.Env = []string{}
	if probe.Run() != nil {
		return nil
	}
	return append(command, shell)
})

// withoutNetwork returns a shell command that runs another one without a network. Git replaces file by the name of
// a file, quoted for one shell, but here are two shells. With an empty file git replaces nothing.
func withoutNetwork(line, file string) string {
	before := ""
	if file != "" {
		before = "airlock_file=" + file + " && export airlock_file && "
		line = strings.NewReplacer("%%", "%", file, `"$airlock_file"`).Replace(line)
	}
	text := "exec "
	for _, word := range slices.Concat(unshareCommand(), []string{"-c", line}) {
		text += words.ShellQuote(word) + " "
	}
	if file != "" {
		text = strings.ReplaceAll(text, "%", "%%")
	}
	return before + text
}
