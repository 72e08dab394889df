package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
	"github.com/git-airlock/git-airlock/words"
)

// Unreadable reports files that could not be read. No checkpoint is made then, since a restore of it would remove these files.
type Unreadable struct {
	Paths  []string // the first few paths; the agent has chosen the names
	Reason string   // why the first one cannot be read
	Count  int      // number of all these files
}

// shownPath bounds a path in an error: it can be as long as the agent likes.
const shownPath = 200

func (u *Unreadable) Error() string {
	return fmt.Sprintf("files of the workspace that cannot be read: %d, such as %q: %s", u.Count, words.Clip(u.Paths[0], shownPath), u.Reason)
}

func (u *Unreadable) add(path, reason string) {
	const most = 10
	if len(u.Paths) < most {
		u.Paths = append(u.Paths, path)
	}
	u.Reason = cmp.Or(u.Reason, reason)
	u.Count++
}

// TooDeep reports whether the first file cannot be read because it is in too many folders.
func (u *Unreadable) TooDeep() bool { return u.Reason == files.ErrTooDeep.Error() }

// Hides reports whether there may be a file at a path, although the walk has not found one.
func (u *Unreadable) Hides(path string) bool {
	path = strings.Trim(path, "/")
	return u.Count > len(u.Paths) || slices.ContainsFunc(u.Paths, func(p string) bool { return strings.HasPrefix(path, p+"/") || p == "" })
}

// Taken is the result of making a checkpoint.
type Taken struct {
	Checkpoint
	Files    int           // regular files, links and folders in the checkpoint
	Special  int           // devices, pipes and sockets, which are not in the checkpoint
	Linked   int           // names of files with several names; a restore makes each a file of its own
	Extended int           // files with extended attributes; these attributes are not in the checkpoint
	Changing []string      // files that changed each time they were read; the checkpoint has the last content that was read
	Took     time.Duration // the time that making the checkpoint took
	Partial  bool          // only the touched folders were listed
	top      *node
	again    []string // folders to list next time: their files can change without a report, or have just changed
}

// Options are the options of making a checkpoint.
type Options struct {
	Message string
	Now     time.Time // the time of the checkpoint
	// Opens gives the owner access to files that the agent has closed. No process of the agent may run then.
	Opens bool
	// Whole reads the contents of all files again.
	Whole bool
	// Recent is the state from the last call with it, or nil. With Hinted, only the folders in Touched are listed. These must include
	// every folder that has changed since that call.
	Recent  *Recent
	Hinted  bool
	Touched []string
	// Memory is about how many bytes of memory the files may use, without their contents. 0 means a gigabyte.
	Memory int64
	// OnlyNew makes no checkpoint if the newest checkpoint has the same state. The result is the newest one then.
	OnlyNew bool
}

// Take makes a checkpoint of the workspace that c serves. It tries again if a file cannot be read, since a running agent may have removed
// that file after the walk.
func (s *Store) Take(ctx context.Context, c *files.Client, o Options) (t Taken, err error) {
	begun := time.Now()
	base := s.base(o.Recent)
	for range walks {
		t, err = s.take(ctx, c, o, base)
		o.Hinted = false // changes during the first try are not in Touched
		if refused := new(Unreadable); !errors.As(err, &refused) || o.Opens {
			break
		}
	}
	t.Took = time.Since(begun)
	return t, err
}

func (s *Store) take(ctx context.Context, c *files.Client, o Options, base *index) (t Taken, err error) {
	found, err := s.scan(c, base.top, o)
	t.top, t.Partial = found.top, found.partial
	if err != nil {
		return t, err
	}
	if err := s.fits(found.top); err != nil {
		return t, err
	}
	p, err := newPack(s.folder, s.has, s.most)
	if err != nil {
		return t, err
	}
	if found.partial || base.top == nil { // a command waits for the first checkpoint, which has all files
		err = p.quickly()
	}
	if err == nil {
		t.Changing, err = fill(ctx, c, found.unread, p)
	}
	var r roots
	if err == nil {
		r, err = encode(t.top, p.put)
	}
	if n := s.last(); err == nil && o.OnlyNew && n > 0 {
		t.Checkpoint, err = s.Find(n)
	}
	switch {
	case err != nil:
		return t, errors.Join(err, p.drop())
	case t.IDs == r.ids():
		err = p.drop()
	default:
		t.Checkpoint, err = s.save(p, r, o.Message, o.Now)
		if err == nil && !found.partial { // Save syncs the names after a partial walk
			err = s.syncNames()
		}
	}
	if err != nil {
		return t, err
	}
	t.count()
	if o.Recent != nil {
		o.Recent.index, o.Recent.again = index{t.Number, t.top}, t.again
		return t, nil
	}
	return t, s.writeIndex(&index{t.Number, t.top})
}

const (
	// walks is how often Take tries if a file cannot be read.
	walks = 3
	// readings is how often a file is read if it changes during each reading.
	readings = 3
)

// stableTime is longer than the time by which the ctime of a change can be behind the clock.
const stableTime = 50 * time.Millisecond

// writebackTime is longer than the kernel takes to write a changed page to the disk. The first write to a page through a shared mapping
// changes the file's ctime, and the next one that does so is the first after the page was written to the disk. The kernel begins to write
// a page 35 seconds after its change, see dirty_expire_centisecs and dirty_writeback_centisecs in the kernel's documentation.
const writebackTime = 5 * time.Minute

// fits returns a [TooLarge] if the files of a workspace are larger than the store may be. It adds up their sizes without compression:
// reading a sparse file could take days, and would store almost nothing.
func (s *Store) fits(top *node) error {
	left := s.most
	if top.spend(&left); left < 0 {
		return tooLarge(top)
	}
	return nil
}

// spend subtracts the sizes of the regular files from left. It stops when left is negative.
func (n *node) spend(left *int64) {
	if n.kind == files.Regular {
		*left -= n.Size
	}
	for _, c := range n.children {
		if *left < 0 {
			return
		}
		c.spend(left)
	}
}

// fill reads the contents of files. It returns the files that changed during each reading.
func fill(ctx context.Context, c *files.Client, all []unread, p *pack) (changing []string, err error) {
	for range readings {
		if len(all) == 0 || ctx.Err() != nil {
			break
		}
		if all, err = read(c, all, p); err != nil {
			return nil, err
		}
	}
	for _, w := range all {
		changing = append(changing, w.path)
	}
	return changing, ctx.Err()
}

// read stores the contents of files. It returns the files that changed while they were read. Since a file can grow after the walk, it reads
// at most as many bytes as the store may use.
func read(c *files.Client, all []unread, p *pack) (again []unread, err error) {
	refused := &Unreadable{}
	paths := make([]string, len(all))
	for i, w := range all {
		paths[i] = w.path
	}
	begun, left := time.Now(), p.most
	err = c.Read(paths, func(n int, content *files.Content, reason string) error {
		if content == nil {
			refused.add(paths[n], reason)
			return nil
		}
		if content.Size > left { // the file has grown after the walk
			return &TooLarge{Bytes: sum(p.most, content.Size), Path: paths[n], Largest: content.Size}
		}
		left -= content.Size
		id, err := p.putBlob(content.Size, content)
		if err != nil {
			return err
		}
		f := all[n].node
		// The mode is the walk's, and so is the time unless the file has changed.
		f.blob, f.attributes, f.mtime = id, content.Attributes, content.Mtime
		age := begun.Sub(time.Unix(content.Ctime.Sec, content.Ctime.Nsec))
		f.stable, f.lasting = age > stableTime, age > writebackTime && content.Dated
		f.Stat = content.Stat
		return nil
	}, func(n int, same bool) {
		if !same {
			all[n].node.stable = false
			again = append(again, all[n])
		}
	})
	if err == nil && refused.Count > 0 {
		err = refused
	}
	return again, err
}

// count counts the files of the checkpoint for the fields of t.
func (t *Taken) count() {
	t.countIn("", t.top)
	t.Files-- // the workspace itself
}

func (t *Taken) countIn(path string, n *node) {
	switch n.kind {
	case files.Special:
		t.Special++
		return
	case files.Regular:
		if n.links > 1 {
			t.Linked++
		}
		if n.attributes {
			t.Extended++
		}
	}
	t.Files++
	again := false
	for _, c := range n.children {
		again = again || c.kind == files.Regular && (c.links > 1 || !c.stable)
		if c.kind == files.Folder {
			t.countIn(join(path, c.name), c)
		} else {
			t.countIn("", c)
		}
	}
	if again {
		t.again = append(t.again, path)
	}
}
