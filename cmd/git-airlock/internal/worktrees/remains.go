package worktrees

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/prisons"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// remains are the parts that are left of an airlock without a record that can be read.
type remains struct {
	id         string
	damaged    *airlock.DamagedError // nil if no record exists
	workspaces []string              // paths
	lines      []string              // names of workspaces in the exclude file
	refs       bool
	pending    bool // the refs name pending commits
}

// Unrecorded prints the airlocks whose records are gone or cannot be read, and how to remove them.
func (b Binding) Unrecorded(ctx context.Context) error {
	all, err := b.remains(ctx)
	for _, r := range all {
		if r.damaged != nil {
			b.Report.Say("%s", r.damaged)
		} else {
			b.Report.Say("airlock %s has no state any more; left of it: %s", r.id, r.list())
		}
		b.Report.Hint(r.next()...)
	}
	return err
}

// list names the parts.
func (r remains) list() string {
	var parts []string
	for _, path := range r.workspaces {
		parts = append(parts, gitops.Text(path).String())
	}
	if r.refs {
		parts = append(parts, "refs/airlock/"+r.id)
	}
	for _, name := range r.lines {
		parts = append(parts, "the line /"+name+"/ in info/exclude")
	}
	return strings.Join(parts, ", ")
}

// next returns the commands to type.
func (r remains) next() (commands []string) {
	if r.pending {
		commands = append(commands, "git branch NAME refs/airlock/"+r.id+"/pending  # keeps its pending commits")
	}
	return append(commands, airlock.RemainsHint(r.id))
}

// EraseRemains removes the remains of an airlock that has no record that can be read. The caller holds the store's lock.
func (b Binding) EraseRemains(ctx context.Context, id string) error {
	all, err := b.remains(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(r remains) bool { return r.id == id })
	if at < 0 {
		return environment.Advise(&environment.Refusal{Text: "there are no remains of an airlock " + gitops.Text(id).String()}, "git airlock list")
	}
	r := all[at]
	if b.Dry {
		b.Report.Say("would remove what is left of airlock %s: %s", id, cmp.Or(r.list(), "its state"))
		return nil
	}
	for _, path := range r.targets(b) {
		if err := b.eraseAt(ctx, r, path); err != nil {
			return err
		}
	}
	b.Report.Say("%s is removed; landed commits stay", id)
	return nil
}

// targets returns paths of workspaces, of which some may not exist. After the erasure of an airlock with each of them nothing is left.
func (r remains) targets(b Binding) []string {
	paths := r.workspaces
	for _, name := range r.lines {
		if !slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == name }) {
			paths = append(paths, filepath.Join(b.Repo.Top, name))
		}
	}
	if len(paths) == 0 {
		paths = []string{filepath.Join(b.Store.Dir(r.id), "none")}
	}
	return paths
}

// eraseAt erases an airlock whose workspace is at path.
func (b Binding) eraseAt(ctx context.Context, r remains, path string) error {
	record, there := airlock.Record{}, b.Prisons
	if r.damaged != nil {
		record = r.damaged.Known
	}
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	record.ID, record.Workspace, record.Inside = r.id, name, dir != b.Store.Dir(r.id)
	if record.Inside && dir != b.Repo.Top {
		repo, err := gitops.Open(ctx, dir)
		if err != nil {
			return err
		}
		there.Repo, there.Store = repo, airlock.Open(repo)
	}
	return there.EraseUnrecorded(ctx, record)
}

// remains finds what is left of airlocks without a record that can be read.
func (b Binding) remains(ctx context.Context) ([]remains, error) {
	before, err := b.Store.List()
	if err != nil {
		return nil, err
	}
	found := map[string]*remains{}
	of := func(id string) *remains {
		if found[id] == nil {
			found[id] = &remains{id: id}
		}
		return found[id]
	}
	if err := b.seeRefs(ctx, of); err != nil {
		return nil, err
	}
	lines, err := b.Store.Excluded()
	if err != nil {
		return nil, err
	}
	for _, name := range lines {
		id, _ := airlock.IDOfWorkspace(name)
		of(id).lines = append(of(id).lines, name)
	}
	damaged, err := b.Store.Damaged()
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		of(d.ID).damaged = d
		of(d.ID).workspaces = airlock.WorkspacesIn(d.ID, b.Store.Dir(d.ID))
	}
	if err := b.seeWorkspaces(ctx, lines, of); err != nil {
		return nil, err
	}
	// Another command may have cleared or made an airlock meanwhile.
	after, err := b.Store.List()
	var all []remains
	for id, r := range found {
		if !slices.ContainsFunc(slices.Concat(before, after), func(r airlock.Record) bool { return r.ID == id }) {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b remains) int { return cmp.Compare(a.id, b.id) })
	return all, err
}

// seeRefs finds refs of airlocks.
func (b Binding) seeRefs(ctx context.Context, of func(id string) *remains) error {
	refs, err := b.Repo.Refs(ctx, "refs/airlock")
	for name := range refs {
		if id, rest, ok := airlock.IDOfRef(name); ok {
			of(id).refs = true
			of(id).pending = of(id).pending || rest == "pending"
		}
	}
	return err
}

// seeWorkspaces finds workspaces at the tops of the worktrees. A folder with such a name is a workspace if an agent owns it, or if the
// exclude file has it. A folder in which another repository has its work tree, too, may be that repository's.
func (b Binding) seeWorkspaces(ctx context.Context, lines []string, of func(id string) *remains) error {
	tops, err := b.Repo.Worktrees(ctx)
	for _, top := range tops {
		for _, path := range gitops.Glob(top, ".*-????") {
			id, ok := airlock.IDOfWorkspace(filepath.Base(path))
			info, err := os.Lstat(path)
			if !ok || err != nil || !info.IsDir() || !prisons.OfAgent(info) && !slices.Contains(lines, filepath.Base(path)) {
				continue
			}
			if repo, err := gitops.Open(ctx, top); err == nil && repo.CommonDir == b.Repo.CommonDir {
				of(id).workspaces = append(of(id).workspaces, path)
			}
		}
	}
	return err
}
