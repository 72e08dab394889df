package gitops

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Bridge is where objects that the quarantine accepted and the user's meet. It sees both stores and writes to one of
// its own, of which [Bridge.Give] takes what is wanted and Close throws the rest away, so that
// neither store gets what it should not have.
type Bridge struct {
	*Git
	dir        string
	quarantine string
	outer      *Repository
	merger     merger // nil: every merge is git's
}

// Bridge makes a bridge between the quarantine and a repository; dir must not exist.
func (q *Quarantine) Bridge(r *Repository, dir string) (*Bridge, error) {
	if r.dry {
		return nil, ErrDryRun
	}
	if err := os.RemoveAll(dir); err != nil { // left by a crash
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "pack"), 0o700); err != nil {
		return nil, err
	}
	b := &Bridge{dir: dir, quarantine: q.Dir, outer: r}
	b.Git = q.with(b.environment()...)
	var err error
	b.merger, err = b.newMerger()
	return b, err
}

// stores are the stores that the bridge sees beside its own.
func (b *Bridge) stores() []string {
	return []string{filepath.Join(b.quarantine, "objects"), filepath.Join(b.outer.CommonDir, "objects")}
}

// environment makes a git read all the stores and write to the bridge's own.
func (b *Bridge) environment() []string {
	var quoted []string
	for _, store := range b.stores() {
		quoted = append(quoted, quoteStore(store))
	}
	return []string{"GIT_OBJECT_DIRECTORY=" + b.dir, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoted, ":")}
}

// quoteStore quotes a path for GIT_ALTERNATE_OBJECT_DIRECTORIES, git(1).
func quoteStore(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// Close throws away what was not given.
func (b *Bridge) Close() error {
	var err error
	if b.merger != nil {
		err = b.merger.close()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// StoreCommits stores ready commit objects in one go.
func (b *Bridge) StoreCommits(ctx context.Context, commits [][]byte) error {
	return b.storePack(ctx, bytes.NewReader(packOf(b.outer.Format, commits)), len(commits))
}

// Tree is the tree of a commit.
func (g *Git) Tree(ctx context.Context, commit OID) (OID, error) {
	tree, err := g.output(ctx, "rev-parse", "--verify", "-q", string(commit)+"^{tree}")
	return OID(tree), err
}

// Merge is a three-way merge of trees.
type Merge struct{ Base, Ours, Theirs OID }

// Merge merges trees. It obeys no configuration, attributes or driver of anybody's and touches no working tree. Paths
// that conflict are named; there is no tree then.
func (b *Bridge) Merge(ctx context.Context, m Merge) (tree OID, conflicts []string, err error) {
	if b.merger != nil {
		if tree, err := b.merger.merge(m); err == nil && tree != "" {
			return tree, nil, nil
		} // what it cannot read, git may
	}
	// git merge-tree 2.39 takes commits only, and finds their merge base by itself.
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
	var out bytes.Buffer
	err = b.Change(ctx, Call{Args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", string(ours), string(theirs)}, Stdout: &out})
	if err != nil && status(err) != 1 {
		return "", nil, fmt.Errorf("merge %s and %s: %w", m.Ours, m.Theirs, err)
	}
	records := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	if err != nil {
		return "", records[1:], nil
	}
	tree, err = ParseOID(records[0])
	return tree, nil, err
}

// synthetic stores a commit that nobody will see, without a process for each: there are three in a merge.
func (b *Bridge) synthetic(tree OID, parents ...OID) (OID, error) {
	const nobody = "nobody <nobody@localhost> 0 +0000"
	content := Commit{Tree: tree, Parents: parents, Author: nobody, Committer: nobody}.Bytes()
	id := HashObject(b.outer.Format, "commit", content)
	dir := filepath.Join(b.dir, string(id[:2]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return id, os.WriteFile(filepath.Join(dir, string(id[2:])), looseObject("commit", content), 0o600)
}

// Give copies what tip reaches and none of known, outer commits, does into the outer repository. commits is how
// many commits that are.
func (b *Bridge) Give(ctx context.Context, tip OID, known []OID, commits int) error {
	revs := strings.Join(append([]string{string(tip), "--not"}, texts(known)...), "\n") + "\n"
	dir := filepath.Join(b.outer.CommonDir, "objects", "pack")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	most := unpackLimit
	if otherDevice(b.dir, dir) {
		most = math.MaxInt // git renames a pack into place and cannot do so across file systems
	}
	if commits <= unpackLimit/3 || most > unpackLimit {
		err := b.send(ctx, strings.NewReader(revs), most)
		if !errors.Is(err, errMany) {
			return err
		}
	}
	// The pack is written where it belongs: its objects are ready and need no second look. Until it is whole it is in the
	// bridge's own folder; git index-pack would leave a half one in the user's store when it is cut off.
	return b.Change(ctx, Call{Args: []string{"pack-objects", "-q", "--revs", "--window=0", "--delta-base-offset", filepath.Join(dir, "pack")},
		Stdin: strings.NewReader(revs), Stdout: io.Discard, Apart: true})
}

// errMany says that there are more objects than are to be sent one by one.
var errMany = errors.New("many objects")

// send streams a pack of the revisions into the outer repository, unless it has more objects than most.
func (b *Bridge) send(ctx context.Context, revs io.Reader, most int) error {
	from, w := io.Pipe()
	defer from.Close()
	done := make(chan error, 1)
	go func() {
		err := b.Look(ctx, Call{Args: []string{"pack-objects", "-q", "--revs", "--thin", "--window=0", "--delta-base-offset", "--stdout"}, Stdin: revs, Stdout: w})
		w.CloseWithError(err)
		done <- err
	}()
	var head [12]byte // "PACK", version, number of objects; gitformat-pack(5)
	_, err := io.ReadFull(from, head[:])
	if objects := int(binary.BigEndian.Uint32(head[8:])); err == nil && objects > most {
		err = errMany
	} else if err == nil {
		err = b.outer.durable().storePack(ctx, io.MultiReader(bytes.NewReader(head[:]), from), objects)
	}
	from.Close()
	if sent := <-done; sent != nil && !errors.Is(sent, io.ErrClosedPipe) && !errors.Is(err, errMany) {
		return sent
	}
	return err
}
