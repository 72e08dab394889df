package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops/durable"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Store is the repository with the checkpoints of one airlock. The caller must hold a lock that keeps other processes away.
type Store struct {
	objects
	dir   string           // path of the repository
	most  int64            // bytes that the store may use
	known []int            // the numbers of all checkpoints, sorted; valid while the caller holds the lock
	loose bool             // there are many objects of expired checkpoints
	sizes map[string]int64 // sizes in bytes of the files with packs, which never change
}

// Limits of a store.
const (
	// DefaultBytes is the default of airlock.checkpoint.max, in bytes.
	DefaultBytes = 2 << 30
	// MostCheckpoints is the number of checkpoints that are kept.
	MostCheckpoints = 200
)

// ErrNoCheckpoint reports that there is no checkpoint with that number.
var ErrNoCheckpoint = errors.New("no such checkpoint")

// Checkpoint is a stored state of a workspace.
type Checkpoint struct {
	Number int
	IDs
	Time    time.Time
	Message string
	commit  oid
	root    oid // the tree of the commit
}

const (
	refFolder = "refs/checkpoints"
	trailer   = "\n\nAirlock-Checkpoint-Version: 1\n"
)

// OpenStore opens the store in a folder. It creates the store if there is none. most is the number of bytes that the store may use.
func OpenStore(dir string, most int64) (*Store, error) {
	for _, folder := range []string{"objects/pack", "objects/info", refFolder} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"} {
		name = filepath.Join(dir, name)
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	s := &Store{objects: objects{folder: filepath.Join(dir, "objects", "pack")}, dir: dir, most: most}
	return s, s.sweep()
}

// sweep removes files that an interrupted command has left, reads the numbers of the checkpoints, and opens the packs.
func (s *Store) sweep() error {
	s.known = nil
	for _, folder := range []string{s.dir, s.folder, filepath.Join(s.dir, refFolder)} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "tmp_") {
				err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
			}
			if n, notNumber := strconv.Atoi(e.Name()); notNumber == nil && n > 0 && filepath.Base(folder) == filepath.Base(refFolder) {
				s.known = append(s.known, n)
			}
		}
		if err != nil {
			return err
		}
	}
	slices.Sort(s.known)
	return s.openPacks()
}

// Reopen reads the changes of other processes, and sets the number of bytes that the store may use. It must be called when the caller has
// taken the lock again.
func (s *Store) Reopen(most int64) error {
	s.most = most
	return s.sweep()
}

// Close closes the files of the packs.
func (s *Store) Close() (err error) {
	for _, p := range s.packs {
		err = errors.Join(err, p.file.Close())
	}
	s.packs = nil
	return err
}

// last returns the number of the newest checkpoint, or 0 if there is none.
func (s *Store) last() int {
	if len(s.known) == 0 {
		return 0
	}
	return s.known[len(s.known)-1]
}

// List returns all checkpoints, oldest first.
func (s *Store) List() ([]Checkpoint, error) {
	var all []Checkpoint
	var err error
	for _, n := range s.known {
		c, findErr := s.Find(n)
		err = errors.Join(err, findErr)
		all = append(all, c)
	}
	return all, err
}

func (s *Store) ref(n int) string { return filepath.Join(s.dir, refFolder, strconv.Itoa(n)) }

// Find returns the checkpoint with a number, or [ErrNoCheckpoint].
func (s *Store) Find(n int) (c Checkpoint, err error) {
	text, err := os.ReadFile(s.ref(n))
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("%w: %d", ErrNoCheckpoint, n)
	}
	c.Number = n
	if err == nil {
		c.commit, err = parseOID(strings.TrimSpace(string(text)))
	}
	if err == nil {
		err = s.readCommit(&c)
	}
	var r roots
	if err == nil {
		r, err = s.roots(c)
	}
	if err != nil {
		return c, fmt.Errorf("checkpoint %d: %w", n, err)
	}
	c.IDs = r.ids()
	return c, nil
}

// readCommit reads the data of a checkpoint from its commit, which save has written.
func (s *Store) readCommit(c *Checkpoint) error {
	content, err := s.whole("commit", c.commit)
	if err != nil {
		return err
	}
	head, message, _ := strings.Cut(string(content), "\n\n")
	c.Message = strings.TrimSuffix(message, trailer)
	lines := strings.Split(head, "\n")
	if c.root, err = parseOID(strings.TrimPrefix(lines[0], "tree ")); err != nil {
		return err
	}
	words := strings.Fields(lines[len(lines)-1])
	if len(words) < 2 {
		return fmt.Errorf("commit %s: %q", c.commit, head)
	}
	seconds, err := strconv.ParseInt(words[len(words)-2], 10, 64)
	c.Time = time.Unix(seconds, 0).UTC()
	return err
}

// roots returns the ids of a checkpoint's trees.
func (s *Store) roots(c Checkpoint) (roots, error) {
	top, err := s.subtrees(c.root)
	return roots{top["files"], top["meta"], top["git"]}, err
}

// save stores a checkpoint, whose files are in p, and makes it visible.
func (s *Store) save(p *pack, r roots, message string, now time.Time) (c Checkpoint, err error) {
	c = Checkpoint{Number: s.last() + 1, IDs: r.ids(), Time: now.UTC().Truncate(time.Second), Message: strings.ReplaceAll(message, "\x00", "")}
	ref, err := s.newRef(&c, p, r, now)
	if err != nil {
		return c, errors.Join(err, p.drop())
	}
	defer ref.Close() // the file was synced, so an error does not matter
	p.beside = ref
	if err := p.finish(); err != nil {
		return c, fmt.Errorf("store the checkpoint: %w", err)
	}
	if err := s.openPacks(); err != nil {
		return c, err
	}
	if err := os.Rename(ref.Name(), s.ref(c.Number)); err != nil {
		return c, err
	}
	s.known = append(s.known, c.Number)
	return c, nil
}

// newRef puts the tree and the commit of a checkpoint into a pack, and writes the file that will become its ref.
func (s *Store) newRef(c *Checkpoint, p *pack, r roots, now time.Time) (ref *os.File, err error) {
	if c.root, err = r.root(p.put); err != nil {
		return nil, err
	}
	who := fmt.Sprintf("git-airlock <> %d +0000", now.Unix())
	c.commit, err = p.put("commit", fmt.Appendf(nil, "tree %s\nauthor %s\ncommitter %s\n\n%s%s", c.root, who, who, c.Message, trailer))
	if err != nil {
		return nil, err
	}
	if ref, err = os.CreateTemp(filepath.Join(s.dir, refFolder), "tmp_ref_"); err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintln(ref, c.commit); err != nil {
		return nil, errors.Join(err, ref.Close(), os.Remove(ref.Name()))
	}
	return ref, nil
}

// syncNames makes the refs of checkpoints survive a power failure. Without it, a failure can remove the last checkpoints completely.
func (s *Store) syncNames() error { return durable.SyncPath(filepath.Join(s.dir, refFolder)) }

// load reads the state of a checkpoint.
func (s *Store) load(c Checkpoint) (*node, error) {
	r, err := s.roots(c)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", c.Number, err)
	}
	top, err := s.loadFolder("", r.files, r.meta, 0)
	if err == nil && r.git != (oid{}) {
		var parts map[string]oid
		if parts, err = s.subtrees(r.git); err == nil {
			var git *node
			git, err = s.loadFolder(gitFolder, parts["files"], parts["meta"], 0)
			top.children = append(top.children, git)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", c.Number, err)
	}
	slices.SortFunc(top.children, byName)
	return top, nil
}

func byName(a, b *node) int { return strings.Compare(a.name, b.name) }

func (s *Store) loadFolder(name string, tree, metas oid, depth int) (*node, error) {
	if depth > files.MaxDepth+1 {
		return nil, errors.New("too many folders in each other")
	}
	contents, err := s.tree(tree)
	if err != nil {
		return nil, err
	}
	lists, err := s.subtrees(metas)
	if err != nil {
		return nil, err
	}
	list, err := s.whole("blob", lists[metaName])
	if err != nil {
		return nil, err
	}
	parsed, err := parseMeta(list)
	if err != nil {
		return nil, err
	}
	n := &node{name: name, kind: files.Folder, mode: parsed[""].mode, mtime: parsed[""].mtime, tree: tree, meta: metas}
	for _, e := range contents {
		c, err := s.loadEntry(e, lists[e.name], parsed[e.name], depth)
		if err != nil {
			return nil, err
		}
		if c.name, err = fileNameOf(e.name); err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
	}
	slices.SortFunc(n.children, byName)
	return n, nil
}

func (s *Store) loadEntry(e treeEntry, metas oid, m meta, depth int) (*node, error) {
	switch e.mode {
	case folderMode:
		return s.loadFolder("", e.id, metas, depth+1)
	case linkMode:
		target, err := s.whole("blob", e.id)
		return &node{kind: files.Link, mode: m.mode, mtime: m.mtime, target: string(target)}, err
	}
	return &node{kind: files.Regular, mode: m.mode, mtime: m.mtime, blob: e.id}, nil
}

// Size returns the number of bytes that the store uses.
func (s *Store) Size() (bytes int64) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return 0
	}
	before := s.sizes
	s.sizes = make(map[string]int64, len(entries))
	for _, e := range entries {
		size, known := before[e.Name()]
		if !known {
			if info, err := e.Info(); err == nil {
				size = info.Size()
			}
		}
		s.sizes[e.Name()] = size
		bytes += size
	}
	return bytes
}

// Overfull reports that the store is larger than it may be, so that [Store.Trim] must be called now. Otherwise that can wait for a moment in
// which no command waits.
func (s *Store) Overfull() bool { return s.Size() > s.most }

// removedAtOnce is the number of checkpoints whose objects are removed together. Each time, the objects of all others are copied.
const removedAtOnce = MostCheckpoints / 10

// Expire removes the oldest checkpoints beyond [MostCheckpoints], and returns how many it has removed. Their objects stay until a Trim.
func (s *Store) Expire() (removed int, err error) {
	if removed = len(s.known) - MostCheckpoints; removed <= 0 {
		return 0, nil
	}
	part := s.known[0] / removedAtOnce
	err = s.remove(removed)
	s.loose = s.loose || s.known[0]/removedAtOnce != part
	return removed, err
}

// Trim removes the oldest checkpoints until the limits hold, and returns how many it has removed. The newest one always stays.
func (s *Store) Trim() (removed int, err error) {
	removed, err = s.Expire()
	if err == nil && (s.loose || s.Overfull() && len(s.known) == MostCheckpoints) { // objects of expired checkpoints may be what is too much
		err = s.compact()
	}
	for err == nil && len(s.known) > 1 && s.Overfull() {
		n := min(len(s.known)-1, 1+len(s.known)/10)
		err = errors.Join(s.remove(n), s.compact())
		removed += n
	}
	return removed, err
}

// remove removes the oldest n checkpoints.
func (s *Store) remove(n int) (err error) {
	for _, number := range s.known[:n] {
		err = errors.Join(err, os.Remove(s.ref(number)))
	}
	s.known = slices.Delete(s.known, 0, n)
	return err
}
