package quarantine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

const (
	// treeLimit bounds the bytes of a tree object that is read: a folder of about a million entries.
	treeLimit = 64 << 20
	// commitLimit bounds a commit object that is read. The quarantine accepts only smaller ones.
	commitLimit = 64 << 20
)

// WithoutLimits is for objects that were within the limits when they were first checked.
var WithoutLimits = inner.Limits{Pack: math.MaxInt64, Commit: commitLimit, Blob: math.MaxInt64, Path: math.MaxInt64, Component: math.MaxInt64, Paths: math.MaxInt64, Depth: 1 << 20}

// Inspector reads single objects. It reads its stores in process. For other objects it starts one git process, which
// runs until Close. An Inspector must not be used by several goroutines at the same time.
type Inspector struct {
	made   map[gitops.OID]object // new objects of a bridge
	stores []*objectFolder       // searched in this order, before git
	git    *gitops.Git
	ctx    context.Context
	cancel context.CancelFunc
	ask    *io.PipeWriter
	answer *bufio.Reader
	end    *io.PipeReader
	broken error
	read   *generations[gitops.OID, readObject]
}

// Inspect returns an inspector. ctx bounds its process, and Close ends it.
func Inspect(ctx context.Context, g *gitops.Git) *Inspector {
	ctx, cancel := context.WithCancel(ctx)
	return &Inspector{git: g.Configured(gitops.StreamLarge), ctx: ctx, cancel: cancel, read: newGenerations[gitops.OID, readObject](readKept, largestRead)}
}

// Inspect returns an inspector of the quarantine.
func (q *Store) Inspect(ctx context.Context) *Inspector {
	i := Inspect(ctx, q.Git)
	i.stores = openFolders(q.Format, filepath.Join(q.Dir, "objects"))
	return i
}

// Close ends the inspector's process.
func (i *Inspector) Close() error {
	i.cancel()
	for _, s := range i.stores {
		s.close()
	}
	if i.ask != nil {
		i.ask.Close()
		i.end.Close()
	}
	i.broken = io.ErrClosedPipe
	return nil
}

func (i *Inspector) start() {
	stdin, ask := io.Pipe()
	end, stdout := io.Pipe()
	go func() {
		err := i.git.Look(i.ctx, gitops.Call{Args: []string{"cat-file", "--batch-command"}, Stdin: stdin, Stdout: stdout, Limit: math.MaxInt64})
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		stdin.CloseWithError(err)
		stdout.CloseWithError(err)
	}()
	i.ask, i.end, i.answer = ask, end, bufio.NewReaderSize(end, 64<<10)
}

// question requests one object and reads the first line of the answer.
func (i *Inspector) question(ctx context.Context, verb string, id gitops.OID) (kind string, size int64, err error) {
	if err := errors.Join(ctx.Err(), i.broken); err != nil {
		return "", 0, err
	}
	if _, err := gitops.ParseOID(string(id)); err != nil {
		return "", 0, err // a line break in a name would start a second request
	}
	if i.ask == nil {
		i.start()
	}
	if _, err := io.WriteString(i.ask, verb+" "+string(id)+"\n"); err != nil {
		return "", 0, i.fail(id, err)
	}
	line, err := i.answer.ReadString('\n')
	if err != nil {
		return "", 0, i.fail(id, err)
	}
	var name string
	if n, _ := fmt.Sscanf(line, "%s %s %d", &name, &kind, &size); n != 3 {
		if strings.TrimSpace(line) == string(id)+" missing" {
			return "", 0, fmt.Errorf("object %s: %w", id, errMissing)
		}
		return "", 0, fmt.Errorf("object %s: cat-file answered %q", id, gitops.Text(strings.TrimSpace(line)))
	}
	return kind, size, nil
}

// errMissing reports that no store has an object.
var errMissing = errors.New("is missing")

// stored searches the stores for an object.
func (i *Inspector) stored(id gitops.OID) (object, bool) {
	if o, ok := i.made[id]; ok {
		return o, true
	}
	for _, read := range []func(*objectFolder, gitops.OID) (object, error){(*objectFolder).read, (*objectFolder).readLoose} { // most are in packs
		for _, s := range i.stores {
			if o, err := read(s, id); err == nil {
				return o, true
			}
		}
	}
	return object{}, false
}

// Has reports whether the stores have an object. It starts no git process. As long as the inspector has none, Has finds only objects in packs.
func (i *Inspector) Has(ctx context.Context, id gitops.OID) bool {
	packed := func(s *objectFolder) bool { _, _, err := s.info(id); return err == nil }
	if there := slices.ContainsFunc(i.stores, packed); there || i.ask == nil {
		return there
	}
	_, _, err := i.info(ctx, id)
	return err == nil
}

// info returns the type and size of an object.
func (i *Inspector) info(ctx context.Context, id gitops.OID) (kind string, size int64, err error) {
	if err := errors.Join(ctx.Err(), i.broken); err != nil {
		return "", 0, err
	}
	if o, ok := i.made[id]; ok {
		return o.Kind, int64(len(o.Content)), nil
	}
	for _, infoOf := range []func(*objectFolder, gitops.OID) (string, int64, error){(*objectFolder).info, (*objectFolder).infoLoose} {
		for _, s := range i.stores {
			if kind, size, err := infoOf(s, id); err == nil {
				return kind, size, nil
			}
		}
	}
	return i.question(ctx, "info", id)
}

// fail marks the process as unusable, because its next output would belong to an earlier request.
func (i *Inspector) fail(id gitops.OID, err error) error {
	i.broken = fmt.Errorf("read object %s: %w", id, err)
	return i.broken
}

// contents reads the first limit bytes of an object and discards the rest.
func (i *Inspector) contents(ctx context.Context, id gitops.OID, want string, limit int64) ([]byte, int64, error) {
	if err := errors.Join(ctx.Err(), i.broken); err != nil {
		return nil, 0, err
	}
	if o, ok := i.stored(id); ok {
		if o.Kind != want {
			return nil, 0, notA(want, o.Kind, id)
		}
		return o.Content[:min(int64(len(o.Content)), limit)], int64(len(o.Content)), nil
	}
	kind, size, err := i.question(ctx, "contents", id)
	if err != nil {
		return nil, 0, err
	}
	keep := min(size, limit)
	if kind != want {
		keep = 0
	}
	content := make([]byte, keep)
	if _, err := io.ReadFull(i.answer, content); err != nil {
		return nil, 0, i.fail(id, err)
	}
	if _, err := io.CopyN(io.Discard, i.answer, size-keep+1); err != nil {
		return nil, 0, i.fail(id, err)
	}
	if kind != want {
		return nil, 0, notA(want, kind, id)
	}
	return content, size, nil
}

// whole reads all of an object of any type.
func (i *Inspector) whole(ctx context.Context, id gitops.OID) (object, error) {
	if o, ok := i.stored(id); ok {
		return o, nil
	}
	kind, size, err := i.question(ctx, "info", id)
	if err != nil {
		return object{}, err
	}
	content, _, err := i.contents(ctx, id, kind, size)
	return object{Kind: kind, Content: content}, err
}

// Size returns the number of bytes of a blob without reading it.
func (i *Inspector) Size(ctx context.Context, id gitops.OID) (int64, error) {
	kind, size, err := i.info(ctx, id)
	if err == nil && kind != "blob" {
		return 0, notA("blob", kind, id)
	}
	return size, err
}

func notA(want, kind string, id gitops.OID) error {
	return inner.Invalidf("object %s is a %s where a %s belongs", id, kind, want)
}

// Blob reads the first limit bytes of a blob, which the caller must not change. size is the size of the whole blob.
func (i *Inspector) Blob(ctx context.Context, id gitops.OID, limit int64) (head []byte, size int64, err error) {
	if k, ok := i.read.get(id); ok && k.blob != nil {
		return k.blob[:min(limit, int64(len(k.blob)))], int64(len(k.blob)), nil
	}
	head, size, err = i.contents(ctx, id, "blob", limit)
	if err == nil && int64(len(head)) == size {
		i.read.keep(id, readObject{blob: head}, len(head))
	}
	return head, size, err
}

// Commit reads a commit object. The caller must not change its parents and message.
func (i *Inspector) Commit(ctx context.Context, id gitops.OID) (gitops.Commit, error) {
	if k, ok := i.read.get(id); ok && k.commit != nil {
		return *k.commit, nil
	}
	content, size, err := i.contents(ctx, id, "commit", commitLimit)
	if err != nil {
		return gitops.Commit{}, err
	}
	if size > commitLimit {
		return gitops.Commit{}, inner.Beyondf("commit %s has %d bytes, more than %d", id, size, commitLimit)
	}
	return i.parse(id, content)
}

// parse parses a commit and keeps it: the stages of a cycle read the same commits.
func (i *Inspector) parse(id gitops.OID, content []byte) (gitops.Commit, error) {
	c, err := gitops.ParseCommit(content)
	if err != nil {
		return c, inner.Invalidf("commit %s: %s", id, err)
	}
	i.read.keep(id, readObject{commit: &c}, len(content))
	return c, nil
}

// Tree reads the entries of a tree object in git's order. The caller must not change them.
func (i *Inspector) Tree(ctx context.Context, id gitops.OID) ([]gitops.TreeEntry, error) {
	if k, ok := i.read.get(id); ok && k.blob == nil && k.commit == nil {
		return k.entries, nil
	}
	content, size, err := i.contents(ctx, id, "tree", treeLimit)
	if err != nil {
		return nil, err
	}
	if size > treeLimit {
		return nil, inner.Beyondf("tree %s has %d bytes, more than %d", id, size, treeLimit)
	}
	entries, err := gitops.ParseTree(content, len(id)/2)
	if err != nil {
		return nil, inner.Invalidf("tree %s: %s", id, err)
	}
	i.read.keep(id, readObject{entries: entries}, len(entries)*treeEntryHeld+len(content))
	return entries, nil
}
