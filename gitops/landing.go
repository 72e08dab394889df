package gitops

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var (
	// ErrIndexLocked says that somebody else holds the index lock.
	ErrIndexLocked = errors.New("the index is locked by another command")
	// ErrElsewhere says that the worktree does not stand on the branch, or an operation is in progress.
	ErrElsewhere = errors.New("the worktree is not ready for a landing")
	// ErrUnsettled says that the user's own command seems to be half-way through; to be tried again shortly.
	ErrUnsettled = errors.New("another git command is at work")
)

// CollisionError names paths at which a landing would overwrite something of the user's.
type CollisionError struct{ Paths []string }

func (e *CollisionError) Error() string {
	return fmt.Sprintf("%d paths in the way, the first is %s", len(e.Paths), Escape(e.Paths[0]))
}

// Landing moves a checked-out branch, its index and its working tree from one commit to a descendant.
type Landing struct {
	Branch   string      // full ref name; required
	Old, New OID         // required
	Refs     []RefUpdate // moved in the same transaction as the branch
	Message  string      // for the reflog
	Dir      string      // host-owned directory for the journal and what is prepared, on the repository's file system; required
}

// settle is how old a changed index must be: git checkout writes the index first and HEAD
// a moment later, and what lies between looks like staged changes of the user's.
const settle = 100 * time.Millisecond

// Steps, in order, at which a kill test can stop a landing; see [stopAt].
const (
	stepPrepared = "prepared"
	stepLocked   = "locked"
	stepJournal  = "journal"
	stepSwing    = "swing"
	stepTree     = "tree"
	stepRefs     = "refs"
	stepIndex    = "index"
)

// stopAt kills the process at the named step when AIRLOCK_TEST_KILL names it, so that tests can
// prove that every step is recovered from. A counter after a colon picks the n-th time ("swing:3").
func stopAt(step string) {
	if want := os.Getenv("AIRLOCK_TEST_KILL"); want != "" && killNow(want, step) {
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
}

// landing is one Land under way.
type landing struct {
	Landing
	r       *Repository
	changes []Change
	index   string // the user's index
	next    string // the index to be
	staging string // new files, ready to be renamed into place
	before  os.FileInfo
	seen    map[string]os.FileInfo
}

// Land makes the landing, or changes nothing and says why: [ErrElsewhere], [ErrRefMoved],
// [ErrIndexLocked], [ErrUnsettled] or a *[CollisionError]. Everything is built first; then index and refs
// are locked, all is checked once more, a journal is written, and the swing is made. After a
// crash [Repository.Recover] finishes it or takes it back.
func (r *Repository) Land(ctx context.Context, request Landing) error {
	if r.dry {
		return ErrDryRun
	}
	l := &landing{Landing: request, r: r, index: filepath.Join(r.GitDir, "index"),
		next: filepath.Join(request.Dir, "index"), staging: filepath.Join(request.Dir, "staging")}
	defer l.discard()
	if err := l.prepare(ctx); err != nil {
		return err
	}
	stopAt(stepPrepared)
	return l.swing(ctx)
}

// prepare builds the next index and the new files beside the user's, without a lock.
func (l *landing) prepare(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	var err error
	if l.changes, err = l.r.Diff(ctx, l.Old, l.New); err != nil {
		return err
	}
	if l.before, err = copyIndex(l.index, l.next); err != nil {
		return err
	}
	l.seen = l.r.lstatAll(l.changes)
	g := l.r.with("GIT_INDEX_FILE=" + l.next)
	if err := l.r.collisions(ctx, g, l.Old, l.changes); err != nil {
		var collision *CollisionError
		if errors.As(err, &collision) && time.Since(l.before.ModTime()) < settle {
			return fmt.Errorf("%w: %w", ErrUnsettled, err)
		}
		return err
	}
	// -i: the index alone; the working tree was checked above, with better words.
	if err := g.Change(ctx, Call{Args: []string{"read-tree", "-i", "-m", string(l.Old), string(l.New)}}); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	return l.stage(ctx)
}

// stage writes the new files below the staging directory as a checkout would write them, smudged
// by the user's own filters. Renamed into place later, each is at any instant old or new, never half.
func (l *landing) stage(ctx context.Context) error {
	if err := os.RemoveAll(l.staging); err != nil {
		return err
	}
	if err := os.Mkdir(l.staging, 0o700); err != nil {
		return err
	}
	var names bytes.Buffer
	for _, c := range l.changes {
		if c.New.present() && !c.New.gitlink() {
			names.WriteString(c.Path + "\x00")
		}
	}
	if names.Len() == 0 {
		return nil
	}
	g := l.r.with("GIT_INDEX_FILE="+l.next, "GIT_DIR="+l.r.GitDir, "GIT_WORK_TREE="+l.staging)
	g.dir = l.staging
	return g.Change(ctx, Call{Args: []string{"checkout-index", "-q", "-z", "--stdin"}, Stdin: &names, Stdout: io.Discard})
}

// check looks where the worktree stands.
func (l *landing) check(ctx context.Context) error {
	if op := l.r.Operation(); op != "" {
		return fmt.Errorf("%w: %s in progress", ErrElsewhere, op)
	}
	branch, err := l.r.output(ctx, "symbolic-ref", "-q", "HEAD")
	if err != nil || branch != l.Branch {
		return fmt.Errorf("%w: HEAD is not %s", ErrElsewhere, l.Branch)
	}
	return nil
}

// swing is the one place where a landing becomes visible.
func (l *landing) swing(ctx context.Context) error {
	token, err := newToken()
	if err != nil {
		return err
	}
	lock := l.index + ".lock"
	if err := lockIndex(lock, token); err != nil {
		return err
	}
	defer unlockIndex(lock, token)
	stopAt(stepLocked)
	updates := append([]RefUpdate{{l.Branch, l.Old, l.New}}, l.Refs...)
	tx, err := l.r.prepareRefs(ctx, l.Message, updates)
	if err != nil {
		return err
	}
	// HEAD is locked now as well: git locks it with the branch it points to.
	if err := errors.Join(l.check(ctx), l.unchanged()); err != nil {
		tx.abort()
		return err
	}
	j := journal{Version: 1, Branch: l.Branch, Old: l.Old, New: l.New, Refs: l.Refs, Token: token}
	if err := j.write(l.Dir); err != nil {
		tx.abort()
		return err
	}
	stopAt(stepJournal)
	if err := l.commit(ctx, tx); err != nil {
		return errors.Join(err, l.r.Recover(context.WithoutCancel(ctx), l.Dir))
	}
	unlockIndex(lock, token)
	return removeJournal(l.Dir)
}

// commit moves files, refs and index, in this order; the journal undoes the first without the second and
// finishes the third.
func (l *landing) commit(ctx context.Context, tx *transaction) error {
	if err := l.r.moveIn(l.changes, l.staging); err != nil {
		tx.abort()
		return fmt.Errorf("update the working tree: %w", err)
	}
	stopAt(stepTree)
	if err := l.r.refresh(ctx, l.next, l.changes); err != nil {
		tx.abort()
		return err
	}
	if err := tx.commit(); err != nil {
		return fmt.Errorf("move %s: %w", l.Branch, err)
	}
	stopAt(stepRefs)
	if err := os.Rename(l.next, l.index); err != nil {
		return fmt.Errorf("replace the index: %w", err)
	}
	stopAt(stepIndex)
	return nil
}

// unchanged makes sure that nothing moved between prepare and the locks.
func (l *landing) unchanged() error {
	now, err := os.Stat(l.index)
	if err != nil || !sameFile(l.before, now) {
		return fmt.Errorf("%w: the index changed", ErrUnsettled)
	}
	for _, c := range l.changes {
		info, _ := os.Lstat(filepath.Join(l.r.Top, c.Path))
		if !sameFile(l.seen[c.Path], info) {
			return fmt.Errorf("%w: %s changed", ErrUnsettled, Escape(c.Path))
		}
	}
	return nil
}

// discard removes what was prepared and not used, unless a journal still needs it.
func (l *landing) discard() {
	if hasJournal(l.Dir) {
		return
	}
	_ = os.RemoveAll(l.staging)
	_ = os.Remove(l.next)
}

func (r *Repository) lstatAll(changes []Change) map[string]os.FileInfo {
	seen := make(map[string]os.FileInfo, len(changes))
	for _, c := range changes {
		seen[c.Path], _ = os.Lstat(filepath.Join(r.Top, c.Path))
	}
	return seen
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// copyIndex copies the user's index and returns what the original looked like before it was read.
func copyIndex(from, to string) (os.FileInfo, error) {
	f, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return info, os.WriteFile(to, content, info.Mode().Perm())
}

func newToken() (string, error) {
	var b [16]byte
	_, err := rand.Read(b[:])
	return "airlock " + hex.EncodeToString(b[:]) + "\n", err
}

// lockIndex takes the index lock the way git does. The token inside proves later that it is ours.
func lockIndex(lock, token string) error {
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, os.ErrExist) {
		return ErrIndexLocked
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(token)
	return err
}

// unlockIndex removes the lock if it is ours.
func unlockIndex(lock, token string) {
	if content, err := os.ReadFile(lock); err == nil && string(content) == token {
		_ = os.Remove(lock)
	}
}

// killNow counts the calls for a step and tells whether it is the wanted one.
func killNow(want, step string) bool {
	name, nth, _ := strings.Cut(want, ":")
	if name != step {
		return false
	}
	kills++
	return nth == "" || fmt.Sprint(kills) == nth
}

var kills int
