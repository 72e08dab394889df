package land

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
)

var (
	// ErrIndexLocked means that another process holds the lock of the index.
	ErrIndexLocked = errors.New("the index is locked by another command")
	// ErrElsewhere means that the worktree has not checked out the branch, or that an operation is in progress.
	ErrElsewhere = errors.New("the worktree is not ready for a landing")
	// ErrUnfinished means that a command of the user seems to be unfinished. The caller should try again shortly.
	ErrUnfinished = errors.New("another git command is at work")
)

// CollisionError names the paths at which a landing would overwrite the user's changes.
type CollisionError struct{ Paths []string }

func (e *CollisionError) Error() string {
	return fmt.Sprintf("%d paths in the way, the first is %s", len(e.Paths), gitops.Text(e.Paths[0]))
}

// The steps at which a test can kill a landing, in order (package killpoint).
const (
	stepPrepared  = "prepared"
	stepLocked    = "locked"
	stepJournal   = "journal"
	stepSwing     = "swing"     // before each file
	stepDisplaced = "displaced" // after each file that displaces or removes one
	stepTree      = "tree"
	stepRefs      = "refs"
	stepIndex     = "index"
	stepDropped   = "dropped"
)

// Landing moves a checked-out branch, its index and its working tree from one commit to a descendant, or back to an ancestor.
type Landing struct {
	Branch   string             // full ref name; required
	Old, New gitops.OID         // required
	First    []gitops.RefUpdate // moved in the same transaction as the branch, and visible no later than the branch
	Refs     []gitops.RefUpdate // the same, but visible no earlier than the branch
	Message  string             // for the reflog
	Begun    gitops.OID         // the commit with the .lfsconfig that git-lfs may use; empty: Old
	Config   gitops.Config      // the repository's configuration; nil: Land reads it
	// an inspector that finds both commits; nil: git reads them
	Inspector *quarantine.Inspector
	// host-owned directory for the journal and the prepared files, on the repository's file system; required
	Dir string
}

// stagedAge is the age from which a difference between the index and the branch counts as the user's staged changes. git checkout writes the index
// first and HEAD a moment later. Between the two, the index differs from the branch as well.
const stagedAge = 100 * time.Millisecond

// landing is the state of one Land.
type landing struct {
	Landing
	r       *gitops.Repository
	changes []gitops.Change
	trees   [2]gitops.OID // of the commits; empty without an inspector
	index   string        // the user's index
	scratch string        // folder of the prepared files, removed with the landing
	filters landingFilters
	before  os.FileInfo
	seen    map[string]os.FileInfo
	plain   *indexFile // the user's index, if the landing can enter its changes into it one by one; otherwise nil
	entered *indexFile // the same index with the changes entered, or nil
	writing sync.WaitGroup
	written error               // of the entered index, once nothing is writing
	copied  func() error        // copies the user's index to next, for git, unless the copy exists
	tx      *gitops.Transaction // begun
	token   token               // written
}

// next is the new index, and staged the folder of new files, ready to be renamed into place. Until it is complete, next is a copy of
// the user's index if git works on it, and otherwise not there.
func (l *landing) next() string   { return filepath.Join(l.scratch, "index") }
func (l *landing) staged() string { return treeOf(l.scratch) }

// Land makes the landing, or changes nothing and returns the reason: [ErrElsewhere], [ErrRefMoved],
// [ErrIndexLocked], [ErrUnfinished], a *[CommandError] or a *[CollisionError]. It builds everything first. Then it locks index and
// refs, checks everything once more, writes a journal, and makes the swing. After a crash [Recover] finishes the
// landing or takes it back. The caller must make sure that only one process at a time uses a Dir.
func Land(ctx context.Context, r *gitops.Repository, request Landing) error {
	if r.Dry {
		return gitops.ErrDryRun
	}
	if err := Recover(ctx, r, request.Dir); err != nil {
		return err
	}
	// The name of the folder is new each time, so that a git process that outlived its landing cannot write into
	// another landing's folder.
	scratch, err := os.MkdirTemp(request.Dir, ScratchPrefix)
	if err != nil {
		return err
	}
	l := &landing{Landing: request, r: bounded(r, 0), index: filepath.Join(r.GitDir, "index"), scratch: scratch, copied: func() error { return nil }}
	defer l.discard()
	if err := l.prepare(ctx); err != nil {
		return err
	}
	killpoint.Reach(stepPrepared)
	return l.swing(ctx)
}

// prepare builds the next index and the new files beside the user's, without a lock.
func (l *landing) prepare(ctx context.Context) error {
	var content []byte
	var err error
	if l.token, err = ownToken(l.Dir); err != nil {
		return err
	}
	l.token.placed = filepath.Join(l.scratch, "lock")
	err = gitops.Together(
		l.token.write,
		func() (err error) { content, err = l.load(); return },
		func() error { return l.check(ctx) },
		func() (err error) { l.changes, err = l.diff(ctx); return },
		func() (err error) {
			if l.Config == nil {
				l.Config, err = l.r.Config(ctx)
			}
			return err
		},
	)
	if err != nil {
		return err
	}
	l.r = bounded(l.r, len(l.changes))
	if l.filters, err = filtersOf(ctx, l.r, l.Inspector, l.Config, cmp.Or(l.Begun, l.Old), l.Old); err != nil {
		return err
	}
	guard := &guard{r: l.r, copy: l.next(), copied: l.copied, filters: l.filters}
	l.seen = lstatAll(l.r, l.changes)
	var x *indexFile
	if content != nil {
		x = parseIndex(content, l.before.ModTime(), l.r.Format, l.changes)
	}
	guard.clean = x != nil && x.clean(l.changes, l.seen)
	guard.nothingStaged = x != nil && x.has(l.trees[0])
	if err := l.collisions(ctx, guard); err != nil {
		return err
	}
	if guard.clean && l.separable() {
		l.plain = x
	}
	if l.tx, err = l.r.BeginRefs(ctx, l.Message); err != nil { // git starts while the files are written
		return err
	}
	if err = l.build(ctx, guard.flags); err != nil {
		l.tx.Abort()
	}
	return err
}

// load returns the content of the user's index. It sets copied, which copies the index when git must work on it. If the index is too large to be
// held in memory, load copies it at once, and returns nil.
func (l *landing) load() (content []byte, err error) {
	f, err := os.Open(l.index)
	if err != nil {
		return nil, gitops.Unless(err, os.ErrNotExist) // git treats it as an empty one
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > indexInHand {
		l.before, err = copyIndex(l.index, l.next())
		l.copied = sync.OnceValue(func() error { return os.Chmod(l.next(), l.mode()) })
		return nil, err
	}
	content = make([]byte, info.Size())
	n, err := io.ReadFull(f, content)
	l.before, content = info, content[:n]
	l.copied = sync.OnceValue(func() error {
		return errors.Join(writeCopy(l.next(), bytes.NewReader(content), info), os.Chmod(l.next(), l.mode()))
	})
	return content, gitops.Unless(err, io.ErrUnexpectedEOF) // unchanged finds that it was shortened
}

// mode returns the file mode that git would give the new index in this repository (core.sharedRepository).
func (l *landing) mode() os.FileMode { return l.Config.Sharing().Mode(l.before.Mode().Perm()) }

// diff lists the changes of the landing.
func (l *landing) diff(ctx context.Context) ([]gitops.Change, error) {
	if l.Inspector == nil {
		return l.r.Diff(ctx, l.Old, l.New)
	}
	old, err := l.Inspector.Commit(ctx, l.Old)
	if err != nil {
		return nil, err
	}
	after, err := l.Inspector.Commit(ctx, l.New)
	if err != nil {
		return nil, err
	}
	l.trees = [2]gitops.OID{old.Tree, after.Tree}
	return l.Inspector.Diff(ctx, old.Tree, after.Tree, quarantine.WithoutLimits)
}

// treesOf returns a function for the trees of a folder in both commits. A tree is empty if it is not known, or if the folder does not exist.
func (l *landing) treesOf(ctx context.Context) func(folder string) [2]gitops.OID {
	known := map[string][2]gitops.OID{".": l.trees}
	var find func(folder string) [2]gitops.OID
	find = func(folder string) (found [2]gitops.OID) {
		if trees, ok := known[folder]; ok {
			return trees
		}
		above, name := find(path.Dir(folder)), path.Base(folder)
		for i, tree := range above {
			if tree == "" {
				continue
			}
			entries, err := l.Inspector.Tree(ctx, tree)
			n := slices.IndexFunc(entries, func(e gitops.TreeEntry) bool { return e.Name == name && e.Folder() })
			if err == nil && n >= 0 {
				found[i] = entries[n].OID
			}
		}
		known[folder] = found
		return found
	}
	return find
}

// collisions returns an error if the landing would collide with the user's work. While the index is younger than stagedAge and differs from the
// branch, a git command may be at work. Then the error wraps [ErrUnfinished], even without a collision.
func (l *landing) collisions(ctx context.Context, guard *guard) error {
	err := guard.check(ctx, l.Old, l.changes)
	var collision *CollisionError
	if l.before == nil || !errors.As(err, &collision) && (err != nil || len(guard.staged) == 0) {
		return err
	}
	if age := time.Since(l.before.ModTime()); age >= 0 && age < stagedAge {
		return errors.Join(ErrUnfinished, err)
	}
	return err
}

// check returns an error if the worktree is not on the branch, or is in the middle of an operation.
func (l *landing) check(ctx context.Context) error {
	if op := l.r.Operation(); op != "" {
		return fmt.Errorf("%w: %s in progress", ErrElsewhere, op)
	}
	if !standsOn(ctx, l.r, l.Branch) {
		return fmt.Errorf("%w: HEAD is not %s", ErrElsewhere, l.Branch)
	}
	return nil
}

// standsOn reports whether HEAD names the branch.
func standsOn(ctx context.Context, r *gitops.Repository, branch string) bool {
	head, err := r.Branch(ctx)
	return err == nil && head == branch
}

// swing is the one place where a landing becomes visible.
func (l *landing) swing(ctx context.Context) error {
	tx, token := l.tx, l.token
	lock := l.index + ".lock"
	if err := token.lock(lock, func() error { return unhindered(l.r) }); err != nil {
		tx.Abort()
		return err
	}
	defer token.unlock(lock)
	killpoint.Reach(stepLocked)
	// Git moves the refs in this order. Recovery depends on whether the branch has moved.
	updates := slices.Concat(l.First, []gitops.RefUpdate{{Ref: l.Branch, Old: l.Old, New: l.New}}, l.Refs)
	if err := tx.Prepare(updates); err != nil {
		return err
	}
	// HEAD is locked now as well, since git locks HEAD together with the branch that it points to.
	if err := errors.Join(l.check(ctx), l.unchanged()); err != nil {
		tx.Abort()
		return err
	}
	j := journal{Version: 1, Branch: gitops.AnyName(l.Branch), Old: l.Old, New: l.New, First: l.First, Refs: l.Refs, Message: l.Message, Begun: l.Begun,
		Scratch: filepath.Base(l.scratch), Holder: holderOf(tx.Cmd.Process.Pid), Locks: refLocks(l.r, updates),
		Absent: l.absent()}
	if err := j.write(l.Dir); err != nil {
		tx.Abort()
		return err
	}
	killpoint.Reach(stepJournal)
	// From here on the landing is finished or taken back, even if the context is cancelled.
	if err := l.commit(ctx, tx); err != nil {
		return l.mend(context.WithoutCancel(ctx), err)
	}
	err := removeJournal(l.r, l.Dir)
	awaitCommits(l.r)
	return err
}

// absent lists the changed paths of the old commit that have no file in the working tree. The journal stores them, because after the landing
// nobody could distinguish them from files that existed although git was told to skip them.
func (l *landing) absent() []gitops.AnyName {
	names := []gitops.AnyName{}
	for _, c := range l.changes {
		if c.Old.Present() && l.seen[c.Path] == nil {
			names = append(names, gitops.AnyName(c.Path))
		}
	}
	return names
}

// commit moves files, refs and index, in this order, and then removes the displaced files. After a crash, the journal is used to undo the
// files if the refs have not moved, and to finish the index if they have. ctx ends only the refresh.
func (l *landing) commit(ctx context.Context, tx *gitops.Transaction) error {
	m := mover{r: l.r, dir: l.scratch, scratch: l.scratch, seen: l.seen}
	if err := m.move(l.changes); err != nil {
		tx.Abort()
		return fmt.Errorf("update the working tree: %w", err)
	}
	killpoint.Reach(stepTree)
	if err := cmp.Or(l.refresh(ctx, m.placed), m.verify()); err != nil {
		tx.Abort()
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("move %s: %w", l.Branch, err)
	}
	killpoint.Reach(stepRefs)
	inherit(l.next(), l.r.GitDir)
	if err := os.Rename(l.next(), l.index); err != nil {
		return fmt.Errorf("replace the index: %w", err)
	}
	killpoint.Reach(stepIndex)
	err := m.drop()
	killpoint.Reach(stepDropped)
	return err
}

// mend takes back or finishes a swing that failed. If it finishes the swing, the landing has not failed.
func (l *landing) mend(ctx context.Context, cause error) error {
	if err := Recover(ctx, l.r, l.Dir); err != nil {
		return errors.Join(cause, err)
	}
	if tip, err := l.r.Ref(ctx, l.Branch); err != nil || tip != l.New {
		return errors.Join(cause, err)
	}
	return nil
}

// unchanged returns an error if the index or a file at a changed path has changed since prepare.
func (l *landing) unchanged() error {
	now, err := os.Stat(l.index)
	if err != nil && !errors.Is(err, os.ErrNotExist) || !sameFile(l.before, now) {
		return fmt.Errorf("%w: the index changed", ErrUnfinished)
	}
	for _, c := range l.changes {
		info, _ := l.r.Lstat(c.Path)
		if !sameFile(l.seen[c.Path], info) {
			return fmt.Errorf("%w: %s changed", ErrUnfinished, gitops.Text(c.Path))
		}
	}
	return nil
}

// discard removes prepared files that were not used, unless a journal still needs them.
func (l *landing) discard() {
	l.writing.Wait()
	if !gitops.HasJournal(l.Dir) {
		_ = os.RemoveAll(l.scratch)
	}
}

func lstatAll(r *gitops.Repository, changes []gitops.Change) map[string]os.FileInfo {
	seen := make(map[string]os.FileInfo, len(changes))
	for _, c := range changes {
		seen[c.Path], _ = r.Lstat(c.Path)
	}
	return seen
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// copyIndex copies the user's index, and returns the file information of the original before the copy. The result is nil if there is no index,
// which git treats as an empty one. The copy gets the modification time of the original: git compares the content of files that are not older than
// the index, since they may have been changed in the same second (Documentation/technical/racy-git).
func copyIndex(from, to string) (os.FileInfo, error) {
	f, err := os.Open(from)
	if err != nil {
		return nil, gitops.Unless(err, os.ErrNotExist)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return info, writeCopy(to, f, info)
}

// writeCopy writes the copy of an index, and info is the original's.
func writeCopy(to string, from io.Reader, info os.FileInfo) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(from)
	return errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
