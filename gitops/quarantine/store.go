package quarantine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/packing"
)

// Store is the quarantine: a host-owned bare repository for objects that an agent wrote. It contains the objects of
// the snapshot and the exported ones, and has no alternates. If an object is named but not stored here, it is
// missing, even if the outer repository has it.
type Store struct {
	Dir    string
	Format string
	*gitops.Git
}

// Open returns the quarantine in dir, which [Create] created.
func Open(dir, format string) *Store {
	git := gitops.NewClosed(dir, filepath.Join(dir, "empty-config"))
	return &Store{Dir: dir, Format: format, Git: git}
}

// Create creates a quarantine in dir for objects of r's format.
func Create(ctx context.Context, r *gitops.Repository, dir string) (*Store, error) {
	if r.Dry {
		return nil, gitops.ErrDryRun
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	q := Open(dir, r.Format)
	if err := os.WriteFile(filepath.Join(dir, "empty-config"), nil, 0o444); err != nil {
		return nil, err
	}
	return q, q.Change(ctx, gitops.Call{Args: []string{"init", "-q", "--bare", "--template=", "--object-format=" + r.Format}, Stdout: io.Discard})
}

// TakeTree copies a tree with its contents, and the commit object base, from the outer repository. It copies no
// history. The quarantine is shallow at base. TakeTree returns the path of the tree's pack without its extension.
func (q *Store) TakeTree(ctx context.Context, r *gitops.Repository, tree, base gitops.OID) (string, error) {
	dir := filepath.Join(q.Dir, "objects", "pack")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	beside := make(chan error, 1)
	go func() { beside <- q.takeCommits(ctx, r, base) }()
	pack, err := q.takePack(ctx, r, "--window=0", string(tree))
	return pack, errors.Join(err, <-beside)
}

// TakeChange copies the objects that a commit of the quarantine adds to another one from the outer repository, and returns the
// path of their pack without its extension.
func (q *Store) TakeChange(ctx context.Context, r *gitops.Repository, from, to gitops.OID) (string, error) {
	return q.takePack(ctx, r, "--window=10", string(to), "^"+string(from))
}

// takePack packs objects of the outer repository and of the quarantine into the quarantine. Promised objects of a partial clone
// are fetched here, as for a checkout. The options request one pack, whatever pack size the user has configured.
func (q *Store) takePack(ctx context.Context, r *gitops.Repository, window string, revisions ...string) (string, error) {
	dir := filepath.Join(q.Dir, "objects", "pack")
	var name bytes.Buffer
	here := "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteStore(filepath.Join(q.Dir, "objects"))
	err := r.Configured("pack.packSizeLimit=0").With("GIT_NO_LAZY_FETCH=0", here).Look(ctx, gitops.Call{
		Args:  []string{"pack-objects", "-q", "--revs", window, "--delta-base-offset", filepath.Join(dir, "pack")},
		Stdin: strings.NewReader(strings.Join(revisions, "\n") + "\n"), Stdout: &name,
	})
	if err != nil {
		err = fmt.Errorf("pack %s: %w", revisions[0], err)
	}
	return filepath.Join(dir, "pack-"+strings.TrimSpace(name.String())), err
}

// takeCommits copies commit objects without their trees and parents, and makes the quarantine shallow there.
func (q *Store) takeCommits(ctx context.Context, r *gitops.Repository, commits ...gitops.OID) error {
	for _, commit := range commits {
		var content bytes.Buffer
		if err := r.Look(ctx, gitops.Call{Args: []string{"cat-file", "commit", string(commit)}, Stdout: &content}); err != nil {
			return err
		}
		if _, err := q.store(ctx, content.Bytes()); err != nil {
			return err
		}
	}
	before, err := os.ReadFile(filepath.Join(q.Dir, "shallow"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(q.Dir, "shallow"), append(before, gitops.Lines(commits)...), 0o600)
}

// TakeBases copies commits with their trees from the outer repository, without a history. The quarantine is shallow at each of
// them.
func (q *Store) TakeBases(ctx context.Context, r *gitops.Repository, commits []gitops.OID) error {
	trees := make([]string, len(commits))
	for i, commit := range commits {
		trees[i] = string(commit) + "^{tree}"
	}
	if _, err := q.takePack(ctx, r, "--window=0", trees...); err != nil {
		return err
	}
	return q.takeCommits(ctx, r, commits...)
}

// ReceiveFrom receives commits of the outer repository with the objects that their trees add, as if they came from an agent. bases are the parents
// of the commits that are not among the commits. The quarantine must have them already, see [Store.TakeBases].
func (q *Store) ReceiveFrom(ctx context.Context, r *gitops.Repository, commits, bases []gitops.OID, limits inner.Limits) error {
	var list strings.Builder
	for _, base := range bases { // without its parents, so that it excludes its tree alone
		fmt.Fprintf(&list, "--shallow %s\n^%s\n", base, base)
	}
	list.WriteString(gitops.Lines(commits))
	in, out := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := r.Look(ctx, gitops.Call{Args: []string{"pack-objects", "-q", "--revs", "--stdout", "--window=0", "--delta-base-offset"},
			Stdin: strings.NewReader(list.String()), Stdout: out, Limit: math.MaxInt64})
		out.CloseWithError(err)
		packed <- err
	}()
	err := q.Receive(ctx, in, limits)
	in.Close()
	if failed := <-packed; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return failed
	}
	return err
}

// PackHistory packs all objects that an inner commit reaches, and returns the pack's path without extension.
func (q *Store) PackHistory(ctx context.Context, tip gitops.OID) (string, error) {
	dir := filepath.Join(q.Dir, "objects", "pack")
	var name bytes.Buffer
	err := q.Change(ctx, gitops.Call{Args: []string{"pack-objects", "-q", "--revs", "--delta-base-offset", filepath.Join(dir, "pack")},
		Stdin: strings.NewReader(string(tip) + "\n"), Stdout: &name})
	return filepath.Join(dir, "pack-"+strings.TrimSpace(name.String())), err
}

// StoreCommit stores a commit object and returns its name.
func (q *Store) StoreCommit(ctx context.Context, c gitops.Commit) (gitops.OID, error) {
	return q.store(ctx, c.Bytes())
}

func (q *Store) store(ctx context.Context, content []byte) (gitops.OID, error) {
	return gitops.HashObject(q.Format, "commit", content), packing.Store(ctx, q.Git, q.Format, []object{{Kind: "commit", Content: content}}, true)
}

// Receive stores a pack. While it is read, the hashes, fsck rules and path rules of every object are checked
// ("--strict"). If a pack fails, nothing of it is stored.
func (q *Store) Receive(ctx context.Context, pack io.Reader, limits inner.Limits) error {
	err := q.Configured(gitops.StreamLarge).WithMemory(limits.Memory).Change(ctx, gitops.Call{
		Args:  []string{"index-pack", "--stdin", "--strict", "--fix-thin", "--max-input-size=" + strconv.FormatInt(limits.Pack, 10)},
		Stdin: pack, Stdout: io.Discard, For: limits.Time,
	})
	if err == nil {
		return nil
	}
	q.Sweep()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return inner.TookTooLong(limits)
	}
	if failed, ok := errors.AsType[*gitops.Error](err); ok && !gitops.NoRoom(err) {
		if gitops.OutOfMemory(failed) {
			return inner.Beyondf("reading the new commits and files takes more memory than airlock.limit.memory allows (%d bytes)", limits.Memory)
		}
		if gitops.TooLarge(failed) {
			return inner.Beyondf("the new commits and files take more than airlock.limit.pack allows (%d bytes)", limits.Pack)
		}
		return inner.Invalidf("the exported objects are refused: %s", failed.Said())
	}
	return err
}

// Sweep removes the files that git leaves behind from a pack that it refused, or that it was writing when it was
// killed. Otherwise many such packs could fill the disk. No git process may be running in the quarantine.
func (q *Store) Sweep() {
	for _, temporary := range []string{"tmp_*", ".tmp-*"} {
		for _, name := range gitops.Glob(filepath.Join(q.Dir, "objects", "pack"), temporary) {
			_ = os.Remove(name)
		}
	}
}

// Size returns the bytes of all packs, and so of everything that was ever received. It does not count a pack that is
// being received: that pack may be refused, or its objects may already be here.
func (q *Store) Size() (bytes int64) {
	for _, name := range gitops.Glob(filepath.Join(q.Dir, "objects", "pack"), "pack-*") {
		if info, err := os.Lstat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// packsKept is the number of packs above which small packs are combined. Each export adds a pack, and looking for an
// object reads the index of each pack.
const packsKept = 20

// Tidy keeps the number of packs small after many exports. Its cost hardly depends on the existing objects, because
// each remaining pack has at least twice as many objects as all smaller ones. No object is removed.
func (q *Store) Tidy(ctx context.Context) error {
	if len(gitops.Glob(filepath.Join(q.Dir, "objects", "pack"), "*.pack")) <= packsKept {
		return nil
	}
	return q.Change(ctx, gitops.Call{Args: []string{"repack", "--geometric=2", "-d", "-q", "--window=0"}, Stdout: io.Discard})
}

// Connected checks that tip is a commit and that everything reachable from it is in the quarantine.
func (q *Store) Connected(ctx context.Context, tip gitops.OID, known []gitops.OID, limits inner.Limits) error {
	if kind, err := q.Output(ctx, "cat-file", "-t", string(tip)); err != nil || kind != "commit" {
		if err != nil && gitops.Status(err) < 0 {
			return err
		}
		return inner.Invalidf("%s is not an exported commit", tip)
	}
	args := append([]string{"rev-list", "--objects", "--quiet", string(tip), "--not"}, gitops.Names(known)...)
	err := q.WithMemory(limits.Memory).Look(ctx, gitops.Call{Args: args, For: limits.Time})
	if failed, ok := errors.AsType[*gitops.Error](err); ok {
		return inner.Invalidf("history of %s is not complete: %s", tip, failed.Said())
	}
	return err
}

// CheckSizes refuses objects of the range that are larger than the limits, before they are read.
func (q *Store) CheckSizes(ctx context.Context, tip gitops.OID, known []gitops.OID, limits inner.Limits) error {
	return limits.CheckSizes(tip, known, func(in io.Reader, out io.Writer, args ...string) error {
		return q.Look(ctx, gitops.Call{Args: args, Stdin: in, Stdout: out, Limit: math.MaxInt64, For: limits.Time})
	})
}

// Link is a commit with its parents.
type Link struct {
	Commit  gitops.OID
	Parents []gitops.OID
}

// Commits returns the commits of links.
func Commits(links []Link) []gitops.OID {
	commits := make([]gitops.OID, len(links))
	for i, l := range links {
		commits[i] = l.Commit
	}
	return commits
}

// History lists the commits that tip reaches and known do not reach, parents before children.
func (q *Store) History(ctx context.Context, tip gitops.OID, known []gitops.OID) ([]Link, error) {
	text, err := q.Output(ctx, append([]string{"rev-list", "--topo-order", "--reverse", "--parents", string(tip), "--not"}, gitops.Names(known)...)...)
	if err != nil {
		return nil, err
	}
	var links []Link
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		l := Link{Commit: gitops.OID(fields[0])}
		for _, p := range fields[1:] {
			l.Parents = append(l.Parents, gitops.OID(p))
		}
		links = append(links, l)
	}
	return links, nil
}
