package quarantine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/gitops/packing"
)

// Bridge builds objects from accepted objects of the quarantine and from the user's objects. It reads both stores.
// New objects stay in memory, or in a store of the bridge if git creates them. [Bridge.Give] copies the requested
// ones to the outer repository, and Close removes the others. So neither store gets an object that it must not have.
type Bridge struct {
	*gitops.Git
	Memory     int64       // bytes that git may allocate for a merge; 0: no limit
	Time       busy.Budget // of the merges
	dir        string
	quarantine string
	outer      *gitops.Repository
	handover   *Handover
	merger     merger // nil if git does every merge
	made       map[gitops.OID]object
	kept       int          // the number of objects in made that are also in the store
	held       int          // the size of made in bytes
	merged     []gitops.OID // trees in made that git must have before it merges again, signs or compares
}

// Bridge creates a bridge between the quarantine and a repository. config is the repository's, or nil to read it when it is needed. dir
// is a folder for the bridge in the host state. A dry run has a temporary folder instead, and a bridge that gives nothing.
func (q *Store) Bridge(r *gitops.Repository, config gitops.Config, dir string) (*Bridge, error) {
	handover, err := q.handover(r, config, &dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "pack"), 0o700); err != nil {
		return nil, err
	}
	b := &Bridge{dir: dir, quarantine: q.Dir, outer: r, handover: handover, made: map[gitops.OID]object{}}
	b.Git = q.With(b.environment()...)
	b.merger, err = b.newMerger()
	return b, err
}

// handover opens the handover of a bridge, and empties the bridge's folder. A dry run has none, and another folder.
func (q *Store) handover(r *gitops.Repository, config gitops.Config, dir *string) (h *Handover, err error) {
	if r.Dry {
		*dir, err = os.MkdirTemp("", "bridge-")
		return nil, err
	}
	if h, err = OpenHandover(r, filepath.Dir(*dir)); err != nil {
		return nil, err
	}
	h.config = config
	return h, os.RemoveAll(*dir) // from before a crash
}

// stores returns the stores that the bridge reads in addition to its own.
func (b *Bridge) stores() []string {
	return []string{filepath.Join(b.quarantine, "objects"), filepath.Join(b.outer.CommonDir, "objects")}
}

// environment returns the variables that make git read all the stores and write to the bridge's store.
func (b *Bridge) environment() []string { return Writing(b.dir, b.stores()...) }

// Writing returns the variables that make git write objects to a folder. Git reads the objects of that folder and of the other stores.
func Writing(folder string, stores ...string) []string {
	var quoted []string
	for _, store := range stores {
		quoted = append(quoted, quoteStore(store))
	}
	return []string{"GIT_OBJECT_DIRECTORY=" + folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoted, ":")}
}

// quoteStore quotes a path for GIT_ALTERNATE_OBJECT_DIRECTORIES, git(1).
func quoteStore(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// Close removes the objects that were not given.
func (b *Bridge) Close() error {
	var err error
	if b.merger != nil {
		err = b.merger.close()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// Make creates an object of a kind (commit, tree or blob), and returns its name.
func (b *Bridge) Make(kind string, content []byte) gitops.OID {
	id := gitops.HashObject(b.outer.Format, kind, content)
	if b.held+len(content) > madeHeld && b.writeLoose(id, kind, content) == nil {
		return id
	}
	b.held += len(content)
	b.made[id] = object{Kind: kind, Content: content}
	return id
}

// madeHeld bounds the bytes of new objects in memory: each of the agent's messages may have a megabyte.
const madeHeld = 32 << 20

// writeLoose writes an object to the bridge's store as a loose object. Git may have written the same one, to a file that nobody may open for writing.
func (b *Bridge) writeLoose(id gitops.OID, kind string, content []byte) error {
	dir := filepath.Join(b.dir, string(id[:2]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, string(id[2:]))
	if err := os.WriteFile(name+".new", packing.Loose(kind, content), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// makeMerged creates a tree of a merge that was made in process. Git needs it only if it makes one of the next merges, or signs.
func (b *Bridge) makeMerged(content []byte) gitops.OID {
	id := b.Make("tree", content)
	b.merged = append(b.merged, id)
	return id
}

// writeMerged writes the trees of earlier merges to the bridge's store.
func (b *Bridge) writeMerged() error {
	for _, id := range b.merged {
		if o, held := b.made[id]; held {
			if err := b.writeLoose(id, o.Kind, o.Content); err != nil {
				return err
			}
		}
	}
	b.merged = nil
	return nil
}

// ShowTrees is [gitops.Git.ShowTrees], also for trees of merges.
func (b *Bridge) ShowTrees(ctx context.Context, out io.Writer, colour bool, limit int64, from, to gitops.OID) error {
	if err := b.writeMerged(); err != nil {
		return err
	}
	return b.Git.ShowTrees(ctx, out, colour, limit, from, to)
}

// PatchIDs is [gitops.Git.PatchIDs] for commits that the bridge may have made.
func (b *Bridge) PatchIDs(ctx context.Context, commits []gitops.OID) (map[gitops.OID]string, error) {
	if err := b.flush(ctx); err != nil {
		return nil, err
	}
	return b.Git.PatchIDs(ctx, commits)
}

// flush writes the new objects to the bridge's store, where git finds them.
func (b *Bridge) flush(ctx context.Context) error {
	if b.kept == len(b.made) {
		return nil
	}
	objects := slices.Collect(maps.Values(b.made))
	if err := packing.Store(ctx, b.Git, b.outer.Format, objects, len(objects) <= packedHere); err != nil {
		return err
	}
	b.kept = len(objects)
	return nil
}

// Inspect returns an inspector of all objects that the bridge can read. It shares the caches of the quarantine's inspector, if there
// is one. Then one goroutine uses both.
func (b *Bridge) Inspect(ctx context.Context, quarantine *Inspector) *Inspector {
	i := Inspect(ctx, b.Git)
	i.made = b.made
	i.stores = openFolders(b.outer.Format, append([]string{b.dir}, b.stores()...)...)
	if quarantine != nil {
		i.read = quarantine.read
		copy(i.stores[min(1, len(i.stores)):], quarantine.stores) // there are none for SHA-256
	}
	return i
}

// Merge describes a three-way merge of trees.
type Merge struct {
	Base, Ours, Theirs gitops.OID
	// NoDirectoryRenames keeps a file that one side adds in its folder, even if the other side has renamed all other files of this folder. It is
	// for merges in which both sides are the agent's. Without it, git reports a conflict in this case, and the user must decide.
	NoDirectoryRenames bool
	// Change is the tree of the commit that is merged, if Base or Theirs differ each time. It only names the commit, see [busy.Work].
	Change gitops.OID
}

// Merge merges trees. It uses no configuration, attributes or drivers, and changes no working tree. If paths
// conflict, it returns these paths and no tree.
func (b *Bridge) Merge(ctx context.Context, m Merge) (tree gitops.OID, conflicts []string, err error) {
	switch m.Base {
	case m.Ours:
		return m.Theirs, nil, nil
	case m.Theirs:
		return m.Ours, nil, nil
	}
	if b.merger != nil {
		if tree, err := b.merger.merge(ctx, m); err == nil && tree != "" {
			return tree, nil, nil
		} // git may read what the merger cannot
	}
	tree, all, err := b.mergeByGit(ctx, m)
	if err != nil || all == nil {
		return tree, nil, err
	}
	conflicts = []string{}
	for _, c := range all {
		conflicts = append(conflicts, c.path)
	}
	slices.Sort(conflicts)
	return "", slices.Compact(conflicts), nil
}

// conflict is a path with a conflict. Git gives a file the name inTree, path~COMMIT, if the other side has a folder there.
type conflict struct {
	path, inTree string
	stages       [3]gitops.Entry
}

// mergeByGit merges trees with git merge-tree. If there are conflicts, the tree has marks in the files.
func (b *Bridge) mergeByGit(ctx context.Context, m Merge) (tree gitops.OID, conflicts []conflict, err error) {
	// git merge-tree 2.39 takes only commits, and finds their merge base itself.
	base, err := b.synthetic(m.Base)
	if err != nil {
		return "", nil, err
	}
	ours, err := b.synthetic(m.Ours, base)
	if err != nil {
		return "", nil, err
	}
	theirs, err := b.synthetic(m.Theirs, base)
	if err != nil {
		return "", nil, err
	}
	var unmerged []gitops.Unmerged
	err = b.inTime("trees", m, func(t *busy.Meter) (err error) {
		git := b.WithMemory(b.Memory).Metered(t)
		if m.NoDirectoryRenames {
			git = git.Configured("merge.directoryRenames=false")
		}
		tree, unmerged, err = git.MergeTree(ctx, ours, theirs)
		return err
	})
	switch {
	case gitops.Spent(err):
		return "", nil, err
	case err != nil:
		return "", nil, fmt.Errorf("merge %s and %s: %w", m.Ours, m.Theirs, err)
	}
	if unmerged != nil {
		conflicts = []conflict{}
	}
	for _, u := range unmerged {
		path, _, _ := strings.Cut(u.Path, "~"+string(ours))
		path, _, _ = strings.Cut(path, "~"+string(theirs))
		conflicts = append(conflicts, conflict{path, u.Path, u.Stages})
	}
	return tree, conflicts, nil
}

// inTime merges objects of a kind in limited processor time.
func (b *Bridge) inTime(kind string, m Merge, merge func(*busy.Meter) error) error {
	return b.Time.Do(busy.Work{Kind: kind, From: string(m.Base), To: string(m.Theirs), Onto: string(m.Ours), Change: string(m.Change)}, merge)
}

// merger merges trees without a git process. git merge-tree is the reference: a merger returns the same tree, or
// leaves the merge to git.
type merger interface {
	// merge returns an empty tree if the merge is left to git.
	merge(ctx context.Context, m Merge) (gitops.OID, error)
	close() error
}

// synthetic stores a commit that is used only here, without starting a process for it, and the trees of earlier merges. A merge
// needs three of them.
func (b *Bridge) synthetic(tree gitops.OID, parents ...gitops.OID) (gitops.OID, error) {
	const nobody = "nobody <nobody@localhost> 0 +0000"
	content := gitops.Commit{Tree: tree, Parents: parents, Author: nobody, Committer: nobody}.Bytes()
	id := gitops.HashObject(b.outer.Format, "commit", content)
	return id, errors.Join(b.writeMerged(), b.writeLoose(id, "commit", content))
}
