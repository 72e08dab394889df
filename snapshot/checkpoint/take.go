package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Unreadable reports files that could not be read. No checkpoint was made, since a restore of it would remove them.
type Unreadable struct {
	Paths  []string // at most a few, the names are the agent's
	Reason string   // of the first one
	Count  int
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("files of the workspace that cannot be read: %d, such as %q: %s", u.Count, u.Paths[0], u.Reason)
}

func (u *Unreadable) add(path, reason string) {
	const most = 10
	if len(u.Paths) < most {
		u.Paths = append(u.Paths, path)
	}
	u.Reason = cmp.Or(u.Reason, reason)
	u.Count++
}

// Taken is the result of making a checkpoint.
type Taken struct {
	Checkpoint
	Files    int           // regular files, links and folders in it
	Special  int           // devices, pipes and sockets, which are not in it
	Linked   int           // names that are hard links, which become files of their own
	Extended int           // files with extended attributes, which are not in it
	Changing []string      // files that changed each time they were read; it contains the last reading
	Took     time.Duration // the time that it took
	top      *node
}

// Options are the options of making a checkpoint.
type Options struct {
	Message string
	Now     time.Time
	// Opens gives the owner access to files that the agent closed to itself. Nothing of the agent's may run.
	Opens bool
	// Whole reads all contents again.
	Whole bool
	// OnlyNew makes no checkpoint of a state that the newest checkpoint has. The result is the newest one then.
	OnlyNew bool
}

// Take makes a checkpoint of the workspace that c serves. It begins again if a file cannot be read, since a running agent may
// have removed the file after the walk.
func (s *Store) Take(ctx context.Context, c *files.Client, o Options) (t Taken, err error) {
	begun := time.Now()
	for range readings {
		t, err = s.take(ctx, c, o)
		if refused := new(Unreadable); !errors.As(err, &refused) || o.Opens {
			break
		}
	}
	t.Took = time.Since(begun)
	return t, err
}

func (s *Store) take(ctx context.Context, c *files.Client, o Options) (t Taken, err error) {
	before := s.readIndex()
	t.top, err = walk(c, o.Opens)
	if err != nil {
		return t, err
	}
	if err := s.fits(t.top, before); err != nil {
		return t, err
	}
	p, err := newPack(s.folder, before.known(), s.most)
	if err != nil {
		return t, err
	}
	if t.Changing, err = s.fill(ctx, c, t.top, before, p, o.Whole); err != nil {
		return t, errors.Join(err, p.drop())
	}
	var used []oid
	r, err := encode(t.top, func(kind string, content []byte) (oid, error) {
		id, err := p.put(kind, content)
		used = append(used, id)
		return id, err
	})
	if err != nil {
		return t, errors.Join(err, p.drop())
	}
	n, err := s.last()
	if o.OnlyNew && n > 0 && err == nil {
		t.Checkpoint, err = s.Find(n)
	}
	switch {
	case err != nil:
		return t, errors.Join(err, p.drop())
	case t.IDs == r.ids():
		err = p.drop()
	default:
		t.Checkpoint, err = s.save(p, r, o.Message, o.Now)
	}
	if err != nil {
		return t, err
	}
	t.count()
	return t, s.writeIndex(t.Number, t.top, used)
}

// mostFiles bounds the memory for a workspace, about 500 bytes a file.
const mostFiles = 2_000_000

// walk reads what is in the workspace, without contents.
func walk(c *files.Client, opens bool) (*node, error) {
	var top *node
	var way []*node // from the workspace to the entry before
	refused := &Unreadable{}
	left := mostFiles
	err := c.Walk(opens, func(e files.Entry) error {
		if left--; left < 0 {
			return fmt.Errorf("more than %d files", mostFiles)
		}
		n := &node{name: e.Name, kind: e.Kind, mode: e.Mode, mtime: e.Mtime, target: e.Target, Stat: e.Stat, links: e.Links, opened: e.Opened}
		way = append(way[:e.Depth], n)
		if e.Error != "" {
			refused.add(pathOf(way), e.Error)
		}
		if e.Depth == 0 {
			top = n
			return nil
		}
		parent := way[e.Depth-1]
		if parent.kind != files.Folder {
			return fmt.Errorf("%q is in %q, which is not a folder", e.Name, parent.name)
		}
		parent.children = append(parent.children, n)
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("walk the workspace: %w", err)
	case refused.Count > 0:
		return top, refused
	case top == nil:
		return nil, errors.New("walk the workspace: nothing came")
	}
	return top, nil
}

func pathOf(way []*node) (path string) {
	for _, n := range way[min(1, len(way)):] {
		path = join(path, n.name)
	}
	return path
}

// readings is how often a file is read that changes meanwhile.
const readings = 3

// settleTime is more than the ctime of a change can be behind the clock.
const settleTime = 50 * time.Millisecond

// fits returns [ErrTooLarge] if the files that an index does not have with their sizes are larger than the store may be. Reading a
// sparse file could take days, and would store almost nothing.
func (s *Store) fits(top *node, before *index) error {
	left := s.most
	for path, n := range top.all() {
		if old := before.at(path); n.kind != files.Regular || old != nil && old.Size == n.Size {
			continue
		}
		if left -= n.Size; left < 0 {
			return ErrTooLarge
		}
	}
	return nil
}

// fill finds the contents of all regular files: from an index if nothing can have changed, otherwise by reading.
func (s *Store) fill(ctx context.Context, c *files.Client, top *node, before *index, p *pack, whole bool) (changing []string, err error) {
	var wanted []*node
	var paths []string
	for path, n := range top.all() {
		if n.kind != files.Regular {
			continue
		}
		if old := before.at(path); !whole && old != nil && old.settled && old.Stat == n.Stat {
			n.blob, n.settled, n.attributes = old.blob, true, old.attributes
			continue
		}
		wanted, paths = append(wanted, n), append(paths, path)
	}
	for range readings {
		if len(wanted) == 0 || ctx.Err() != nil {
			break
		}
		if wanted, paths, err = read(c, wanted, paths, p); err != nil {
			return nil, err
		}
	}
	return paths, ctx.Err()
}

// read stores the contents of files. It returns those that changed meanwhile.
func read(c *files.Client, wanted []*node, paths []string, p *pack) (again []*node, againPaths []string, err error) {
	refused := &Unreadable{}
	err = c.Read(paths, func(n int, content *files.Content, reason string) error {
		if content == nil {
			refused.add(paths[n], reason)
			return nil
		}
		id, err := p.putBlob(content.Size, content)
		if err != nil {
			return err
		}
		f := wanted[n]
		// Mode is of the walk; so is the time, unless the file changed.
		f.blob, f.attributes, f.mtime = id, content.Attributes, content.Mtime
		f.settled = time.Since(time.Unix(0, content.Ctime)) > settleTime
		f.Stat = content.Stat
		return nil
	}, func(n int, same bool) {
		if !same {
			wanted[n].settled = false
			again, againPaths = append(again, wanted[n]), append(againPaths, paths[n])
		}
	})
	if err == nil && refused.Count > 0 {
		err = refused
	}
	return again, againPaths, err
}

// count counts the files.
func (t *Taken) count() {
	for _, n := range t.top.all() {
		switch n.kind {
		case files.Special:
			t.Special++
			continue
		case files.Regular:
			if n.links > 1 {
				t.Linked++
			}
			if n.attributes {
				t.Extended++
			}
		}
		t.Files++
	}
	t.Files-- // the workspace itself
}
