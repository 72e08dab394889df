// Package incoming makes the commit with which the agent gets the user's newer commits. The tree of this commit is the tree of the branch,
// without the files that a snapshot leaves out. The commit is made in the quarantine, from where its objects go into the workspace.
//
// Such a commit is made only when all of the agent's commits have landed or were left out. The landing has merged both sides by then, so
// nothing remains to be merged here. The entry in [ledger.Synced] makes later plans treat the commit as the user's commits. The entry is
// written first. It has no effect while the agent's history does not have the commit, so a kill at any moment does no harm.
package incoming

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
)

var (
	// ErrNothing reports that the agent has everything already.
	ErrNothing = errors.New("the agent has all files of the branch")
	// ErrMoved reports that the agent has committed since the last cycle.
	ErrMoved = errors.New("the agent has just committed")
	// ErrBehind reports that the agent's main is an older commit than the last landed one.
	ErrBehind = errors.New("the agent has reset main to an older commit than the one that landed last, and has not committed since")
	// ErrDeleted reports that the branch does not exist.
	ErrDeleted = errors.New("the branch does not exist")
)

// Waiting reports that some of the agent's commits wait, so that the two sides cannot be equal.
type Waiting struct{ Commits int }

func (w *Waiting) Error() string { return fmt.Sprintf("%d of the agent's commits wait", w.Commits) }

// message is the message of the commit. Nothing in it is the user's.
const message = "Update from upstream\n"

// Change is the difference between the branch and the agent's main.
type Change struct {
	Outer   gitops.OID // the branch's tip
	Commits int        // number of the user's commits since the last one that the agent has
	Lines   int        // number of landed commits of other inner branches than main among what the agent gets
	Left    int        // number of the agent's commits that were left out: the agent's files lose their changes
	Paths   map[string]bool

	onto, tree gitops.OID
	merged     bool
	without    []gitops.OID
	never      gitops.Set[string] // paths that the first snapshot left out
}

// Find returns the change between the inner main, which must be the tip of the plan, and the branch without excluded files. In a
// dry run, it only counts the commits.
func Find(ctx context.Context, e *promote.Engine, s *promote.Standing, main gitops.OID, out ignore.Patterns) (*Change, error) {
	if main != s.Plan.Tip {
		return nil, ErrMoved
	}
	if n := max(len(s.Ledger.Tail), s.Plan.Waits); n > 0 {
		return nil, &Waiting{n}
	}
	newer, err := s.Inside.Quarantine.Unreached(ctx, []gitops.OID{s.Plan.Last.Inner}, []gitops.OID{main})
	if err != nil {
		return nil, err
	}
	if len(newer) > 0 {
		return nil, ErrBehind
	}
	c := &Change{onto: main, Paths: map[string]bool{}}
	if c.Outer, err = e.Repo.Ref(ctx, e.Record.Branch); err != nil {
		return nil, err
	}
	if c.Outer == "" {
		return nil, ErrDeleted
	}
	left := s.Ledger.LeftOut()
	for _, l := range s.Links {
		c.Left++
		if !slices.Contains(left, l.Commit) {
			c.without = append(c.without, l.Commit)
		}
	}
	if !e.Repo.Dry { // a dry run makes no tree without the excluded files
		if err := c.compare(ctx, e, s, out); err != nil {
			return nil, err
		}
	}
	if err := c.count(ctx, e, s); err != nil || c.Commits+c.Lines+c.Left > 0 || !e.Repo.Dry {
		return c, err
	}
	return nil, ErrNothing
}

// compare finds the tree and the changed paths.
func (c *Change) compare(ctx context.Context, e *promote.Engine, s *promote.Standing, out ignore.Patterns) error {
	bridge, inspector, err := s.Bridge(ctx)
	if err != nil {
		return err
	}
	whole, err := inspector.Commit(ctx, c.Outer)
	if err != nil {
		return err
	}
	before, err := inspector.Commit(ctx, c.onto)
	if err != nil {
		return err
	}
	restored := func(tree gitops.OID) (gitops.OID, error) { return tree, nil }
	if e.Record.Partial {
		if out, restored, err = c.leftOut(ctx, e, bridge, inspector, out); err != nil {
			return err
		}
	}
	if c.tree, err = s.Inside.Quarantine.Leave(ctx, e.Repo, whole.Tree, out); err != nil {
		return fmt.Errorf("leave files of %s out: %w", c.Outer, err)
	}
	if c.tree, err = c.withOwn(ctx, s.Inside.Quarantine, inspector, c.tree, before.Tree, whole.Tree); err != nil {
		return err
	}
	if c.tree == before.Tree {
		return ErrNothing
	}
	full, err := restored(c.tree)
	if err != nil {
		return err
	}
	c.merged = full != whole.Tree
	changes, err := inspector.Diff(ctx, before.Tree, c.tree, unlimited)
	for _, d := range changes {
		c.Paths[d.Path] = d.New.Present()
	}
	return err
}

// withOwn adds to a tree the files that it lacks and that the agent's tree and the branch have alike. The agent has committed them at excluded
// paths, and nobody has removed them. A file that differs stays out: it can be one that the user excludes. So does each file that the first snapshot
// left out: no commit of the agent's has put it on the branch, and if it stayed, the agent would see that it has guessed the content.
func (c *Change) withOwn(ctx context.Context, q *quarantine.Store, inspector *quarantine.Inspector, tree, agents, whole gitops.OID) (gitops.OID, error) {
	lost, err := inspector.Diff(ctx, agents, tree, unlimited)
	if err != nil {
		return "", err
	}
	different, err := inspector.Diff(ctx, agents, whole, unlimited)
	if err != nil {
		return "", err
	}
	differs := gitops.Set[string]{}
	for _, d := range different {
		differs[d.Path] = true
	}
	var own []gitops.Change
	for _, d := range lost {
		if !d.New.Present() && !differs[d.Path] && !c.never[d.Path] {
			own = append(own, gitops.Change{Path: d.Path, New: d.Old})
		}
	}
	if len(own) == 0 {
		return tree, nil
	}
	return quarantine.NewOverlay(inspector, filepath.Join(q.Dir, "objects"), q.Format, own).Apply(ctx, tree)
}

// unlimited are limits for the user's trees.
var unlimited = inner.Limits{Paths: 1 << 40, Path: 1 << 40, Component: 1 << 40, Depth: 1 << 40}

// leftOut adds the files that the first snapshot left out to the patterns. Every landed tree gets these files back, so the agent must not get
// them later. leftOut also returns the function that puts them back into a tree.
func (c *Change) leftOut(ctx context.Context, e *promote.Engine, bridge *quarantine.Bridge, inspector *quarantine.Inspector, out ignore.Patterns) (ignore.Patterns, func(gitops.OID) (gitops.OID, error), error) {
	base, err := inspector.Commit(ctx, e.Record.Base)
	if err != nil {
		return nil, nil, err
	}
	root, err := inspector.Commit(ctx, e.Record.Root)
	if err != nil {
		return nil, nil, err
	}
	changes, err := inspector.Diff(ctx, root.Tree, base.Tree, unlimited)
	if err != nil {
		return nil, nil, err
	}
	var lines []string
	c.never = gitops.Set[string]{}
	for _, d := range changes {
		c.never[d.Path] = true
		lines = append(lines, ignore.Exactly(d.Path))
	}
	exactly, wrong, ok := ignore.ParseAll(lines)
	if !ok {
		return nil, nil, fmt.Errorf("leave %q out: the path is not a pattern", gitops.Text(wrong))
	}
	overlay, err := bridge.Overlay(ctx, inspector, base.Tree, root.Tree)
	put := func(tree gitops.OID) (gitops.OID, error) { return overlay.Apply(ctx, tree) }
	return append(slices.Clone(out), exactly...), put, err
}

// count counts the user's commits since the newest one that the agent has, and the landed ones that main does not have.
func (c *Change) count(ctx context.Context, e *promote.Engine, s *promote.Standing) error {
	has := []gitops.OID{s.Ledger.Base.Outer}
	for _, p := range slices.Backward(s.Ledger.Synced) {
		lost, err := s.Inside.Quarantine.Unreached(ctx, []gitops.OID{p.Inner}, []gitops.OID{c.onto})
		if err != nil {
			return err
		}
		if len(lost) == 0 {
			has = append(has, p.Outer)
			break
		}
	}
	ids, err := e.Repo.Unreached(ctx, []gitops.OID{c.Outer}, has)
	off := gitops.SetOf(ledger.Outers(s.Ledger.OffMain())...)
	for _, id := range ids {
		if off[id] {
			c.Lines++
		} else if !s.Ledger.HasOuter(id) {
			c.Commits++
		}
	}
	return err
}

// Made is a commit for the agent.
type Made struct {
	From, To gitops.OID // the inner main before and after
	Pack     string     // the file with the objects that To adds
}

// Make makes the commit and its entry in the record.
func (c *Change) Make(ctx context.Context, e *promote.Engine, s *promote.Standing) (Made, error) {
	record, err := ledger.ReadSynced(e.Dir())
	if err != nil {
		return Made{}, err
	}
	record.InventColleague(e.Record.Ghost)
	who := fmt.Sprintf("%s %d +0000", record.Colleague, s.Now.Unix())
	q := s.Inside.Quarantine
	id, err := q.StoreCommit(ctx, gitops.Commit{Tree: c.tree, Parents: []gitops.OID{c.onto}, Author: who, Committer: who, Message: []byte(message)})
	if err != nil {
		return Made{}, fmt.Errorf("store the commit for the agent: %w", err)
	}
	pack, err := q.TakeChange(ctx, e.Repo, c.onto, id)
	if err != nil {
		return Made{}, err
	}
	pair := ledger.Pair{Inner: id, Outer: c.Outer, Merged: c.merged, Without: c.without}
	record.Commits = slices.DeleteFunc(record.Commits, func(x ledger.SyncedCommit) bool { return x.Pair.Inner == id })
	record.Commits = append(record.Commits, ledger.SyncedCommit{Pair: pair, Onto: c.onto, Open: true})
	return Made{c.onto, id, pack + ".pack"}, record.Write(e.Dir())
}

// Close completes the open entry of the record: the agent has its commit, or will not get it.
func Close(dir string, has bool) error {
	record, err := ledger.ReadSynced(dir)
	if err != nil || record.Open() == nil {
		return err
	}
	last := len(record.Commits) - 1
	record.Commits[last].Open = false
	if !has {
		record.Commits = record.Commits[:last]
	}
	return record.Write(dir)
}
