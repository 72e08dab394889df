package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Quarantine is a host-owned bare repository for objects an agent wrote. It has the snapshot's
// objects and what was exported, and borrows nothing: an object that is named and not there
// is missing, whatever the outer repository holds.
type Quarantine struct {
	Dir    string
	Format string
	*Git
}

// Limits bound what the quarantine takes in.
type Limits struct {
	Pack      int64         // bytes of one export, and of the files in it when they are unpacked
	Path      int64         // bytes of a path
	Component int64         // bytes of a component of a path
	Commit    int64         // bytes of one commit object
	Blob      int64         // bytes of one file; what is large for a repository is the policy gate's to say
	Time      time.Duration // for one export
	Paths     int64         // changed paths of one commit
	Depth     int64         // of a tree
	Entries   int64         // files in the tree of a commit; 0: nothing is weighed
	Memory    int64         // bytes that git may take to read what was exported
}

// DefaultLimits are those of the contract, but for Blob: a file above 50 MB is the rule large-file's to hold, where plain git can
// show it.
var DefaultLimits = Limits{Pack: 2 << 30, Commit: 1 << 20, Blob: 512 << 20, Time: 60 * time.Second,
	Path: 4096, Component: 255, Paths: 200_000, Depth: 128, Entries: 1_000_000, Memory: 1 << 30}

// WithoutLimits is for what was within the limits when it was looked at first.
var WithoutLimits = Limits{Pack: math.MaxInt64, Commit: commitLimit, Blob: math.MaxInt64, Path: math.MaxInt64, Component: math.MaxInt64, Paths: math.MaxInt64, Depth: 1 << 20}

// Invalid says that what a workspace gave was refused, which object or ref, and why.
type Invalid struct {
	Reason string
	// Limit tells that a limit is why: who tries again comes no further.
	Limit bool
	// Stalled tells that git in the workspace would wait for ever, as it did here.
	Stalled bool
	// For is the path within the workspace that it waited for; empty if that is not known.
	For string
}

func (e *Invalid) Error() string { return e.Reason }

// In returns the same with the place where it is.
func (e *Invalid) In(place string) *Invalid {
	in := *e
	if !strings.Contains(in.Reason, place) {
		in.Reason = place + ": " + in.Reason
	}
	return &in
}

// beyond is an [Invalid] for a limit.
func beyond(format string, args ...any) error {
	return &Invalid{Limit: true, Reason: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return &Invalid{Reason: fmt.Sprintf(format, args...)}
}

// OpenQuarantine returns the quarantine in dir, which [Repository.CreateQuarantine] made.
func OpenQuarantine(dir, format string) *Quarantine {
	git := NewClosed(dir, filepath.Join(dir, "empty-config"))
	return &Quarantine{Dir: dir, Format: format, Git: git}
}

// CreateQuarantine makes a quarantine in dir for objects of r's format.
func (r *Repository) CreateQuarantine(ctx context.Context, dir string) (*Quarantine, error) {
	if r.Dry {
		return nil, ErrDryRun
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	q := OpenQuarantine(dir, r.Format)
	if err := os.WriteFile(filepath.Join(dir, "empty-config"), nil, 0o444); err != nil {
		return nil, err
	}
	return q, q.Change(ctx, Call{Args: []string{"init", "-q", "--bare", "--template=", "--object-format=" + r.Format}, Stdout: io.Discard})
}

// TakeTree copies a tree and all it holds from the outer repository, history and commits excepted,
// and the commit object base itself, beyond which the quarantine is shallow. It returns the path of the
// tree's pack without its extension.
func (q *Quarantine) TakeTree(ctx context.Context, r *Repository, tree, base OID) (string, error) {
	dir := filepath.Join(q.Dir, "objects", "pack")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	beside := make(chan error, 1)
	go func() { beside <- q.takeCommit(ctx, r, base) }()
	var name bytes.Buffer
	// Objects the user's repository only promises to have are fetched here, as a checkout would.
	// One pack, whatever size the user wants theirs to have.
	// A tree from which something was left out is here already.
	here := "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteStore(filepath.Join(q.Dir, "objects"))
	err := r.Configured("pack.packSizeLimit=0").With("GIT_NO_LAZY_FETCH=0", here).Look(ctx, Call{
		Args:  []string{"pack-objects", "-q", "--revs", "--window=0", "--delta-base-offset", filepath.Join(dir, "pack")},
		Stdin: strings.NewReader(string(tree) + "\n"), Stdout: &name,
	})
	if err != nil {
		err = fmt.Errorf("pack tree %s: %w", tree, err)
	}
	return filepath.Join(dir, "pack-"+strings.TrimSpace(name.String())), errors.Join(err, <-beside)
}

// takeCommit copies a commit object alone, and says that the quarantine is shallow there.
func (q *Quarantine) takeCommit(ctx context.Context, r *Repository, commit OID) error {
	var content bytes.Buffer
	if err := r.Look(ctx, Call{Args: []string{"cat-file", "commit", string(commit)}, Stdout: &content}); err != nil {
		return err
	}
	if _, err := q.store(ctx, content.Bytes()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(q.Dir, "shallow"), []byte(commit+"\n"), 0o600)
}

// PackHistory packs all that an inner commit reaches, and returns the path of the pack without its extension.
func (q *Quarantine) PackHistory(ctx context.Context, tip OID) (string, error) {
	dir := filepath.Join(q.Dir, "objects", "pack")
	var name bytes.Buffer
	err := q.Change(ctx, Call{Args: []string{"pack-objects", "-q", "--revs", "--delta-base-offset", filepath.Join(dir, "pack")},
		Stdin: strings.NewReader(string(tip) + "\n"), Stdout: &name})
	return filepath.Join(dir, "pack-"+strings.TrimSpace(name.String())), err
}

// StoreCommit stores a commit object and returns its name.
func (q *Quarantine) StoreCommit(ctx context.Context, c Commit) (OID, error) {
	return q.store(ctx, c.Bytes())
}

func (q *Quarantine) store(ctx context.Context, content []byte) (OID, error) {
	return HashObject(q.Format, "commit", content), q.storePack(ctx, bytes.NewReader(packOf(q.Format, []object{{"commit", content}})), true)
}

// Receive takes a pack in: hashes, fsck and path rules of every object are checked while it is read
// ("--strict"), and nothing is kept of a pack that fails.
func (q *Quarantine) Receive(ctx context.Context, pack io.Reader, limits Limits) error {
	err := q.Configured(streamed).WithMemory(limits.Memory).Change(ctx, Call{
		Args:  []string{"index-pack", "--stdin", "--strict", "--fix-thin", "--max-input-size=" + strconv.FormatInt(limits.Pack, 10)},
		Stdin: pack, Stdout: io.Discard, For: limits.Time,
	})
	if err == nil {
		return nil
	}
	q.Sweep()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return TookTooLong(limits)
	}
	var failed *Error
	if errors.As(err, &failed) && !NoRoom(err) {
		if OutOfMemory(failed) {
			return beyond("reading the new commits and files takes more memory than airlock.limit.memory allows (%d bytes)", limits.Memory)
		}
		if TooLarge(failed) {
			return beyond("the new commits and files take more than airlock.limit.pack allows (%d bytes)", limits.Pack)
		}
		return invalid("the exported objects are refused: %s", failed.Stderr)
	}
	return err
}

// TookTooLong says that an export did not end in time.
func TookTooLong(limits Limits) error {
	return beyond("taking out the new commits and files takes longer than airlock.limit.time allows (%s)", limits.Time)
}

// Sweep removes what git leaves behind of a pack that it refused, and of one in the middle of which it was killed, received
// or made of others: with one after the other, a workspace could fill the disk. No git may be at work in the quarantine.
func (q *Quarantine) Sweep() {
	for _, temporary := range []string{"tmp_*", ".tmp-*"} {
		left, _ := filepath.Glob(filepath.Join(GlobQuote(q.Dir), "objects", "pack", temporary))
		for _, name := range left {
			_ = os.Remove(name)
		}
	}
}

// Size is how many bytes the packs have, in which all is that was ever taken in. What is being received is not: it may be
// refused, or be there already.
func (q *Quarantine) Size() (bytes int64) {
	packs, _ := filepath.Glob(filepath.Join(GlobQuote(q.Dir), "objects", "pack", "pack-*"))
	for _, name := range packs {
		if info, err := os.Lstat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// packsKept is the number of packs beyond which small ones are made one: each export brings one, and who looks for
// an object looks into each.
const packsKept = 20

// Tidy keeps the number of packs small, however many exports there were. What it costs hardly depends on what there is
// already: each pack that stays has at least twice as many objects as all smaller ones. Nothing is thrown away.
func (q *Quarantine) Tidy(ctx context.Context) error {
	packs, err := filepath.Glob(filepath.Join(GlobQuote(q.Dir), "objects", "pack", "*.pack"))
	if err != nil || len(packs) <= packsKept {
		return err
	}
	return q.Change(ctx, Call{Args: []string{"repack", "--geometric=2", "-d", "-q", "--window=0"}, Stdout: io.Discard})
}

// Connected proves that tip is a commit and that everything reachable from it is in the quarantine.
func (q *Quarantine) Connected(ctx context.Context, tip OID, known []OID, limits Limits) error {
	if kind, err := q.Output(ctx, "cat-file", "-t", string(tip)); err != nil || kind != "commit" {
		if err != nil && Status(err) < 0 {
			return err
		}
		return invalid("%s is no commit that was exported", tip)
	}
	args := append([]string{"rev-list", "--objects", "--quiet", string(tip), "--not"}, texts(known)...)
	err := q.WithMemory(limits.Memory).Look(ctx, Call{Args: args, For: limits.Time})
	var failed *Error
	if errors.As(err, &failed) {
		return invalid("history of %s is not complete: %s", tip, failed.Stderr)
	}
	return err
}

// Link is a commit's place in a history.
type Link struct {
	Commit  OID
	Parents []OID
}

// History lists what tip reaches and none of known does, parents before children.
func (q *Quarantine) History(ctx context.Context, tip OID, known []OID) ([]Link, error) {
	text, err := q.Output(ctx, append([]string{"rev-list", "--topo-order", "--reverse", "--parents", string(tip), "--not"}, texts(known)...)...)
	if err != nil {
		return nil, err
	}
	var links []Link
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		l := Link{Commit: OID(fields[0])}
		for _, p := range fields[1:] {
			l.Parents = append(l.Parents, OID(p))
		}
		links = append(links, l)
	}
	return links, nil
}

func texts(ids []OID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}
