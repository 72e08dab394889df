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

// Unreadable reports files that could not be read. No checkpoint was made, since a restore of it would remove them.
type Unreadable struct {
	Paths  []string // at most a few, the names are the agent's
	Reason string   // of the first one
	Count  int
}

func (u *Unreadable) Error() string {
	const shown = 200 // a path can be as long as the agent likes
	return fmt.Sprintf("files of the workspace that cannot be read: %d, such as %q: %s", u.Count, words.Clip(u.Paths[0], shown), u.Reason)
}

func (u *Unreadable) add(path, reason string) {
	const most = 10
	if len(u.Paths) < most {
		u.Paths = append(u.Paths, path)
	}
	u.Reason = cmp.Or(u.Reason, reason)
	u.Count++
}

// Hides reports whether a file may be at a path that was not found.
func (u *Unreadable) Hides(path string) bool {
	path = strings.Trim(path, "/")
	return u.Count > len(u.Paths) || slices.ContainsFunc(u.Paths, func(p string) bool { return strings.HasPrefix(path, p+"/") || p == "" })
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
	Partial  bool          // only the touched folders were looked at
	top      *node
	again    []string // folders with files that can change without a report, or had just changed
}

// Options are the options of making a checkpoint.
type Options struct {
	Message string
	Now     time.Time
	// Opens gives the owner access to files that the agent closed to itself. Nothing of the agent's may run.
	Opens bool
	// Whole reads all contents again.
	Whole bool
	// Recent is the state that the last call with it left, nil without. With Hinted only the folders in Touched, which must contain
	// every folder that has changed since that call, are looked at.
	Recent  *Recent
	Hinted  bool
	Touched []string
	// Memory is about the number of bytes that the files may take in memory, without their contents. 0 is a gigabyte.
	Memory int64
	// OnlyNew makes no checkpoint of a state that the newest checkpoint has. The result is the newest one then.
	OnlyNew bool
}

// Take makes a checkpoint of the workspace that c serves. It begins again if a file cannot be read, since a running agent may
// have removed the file after the walk.
func (s *Store) Take(ctx context.Context, c *files.Client, o Options) (t Taken, err error) {
	begun := time.Now()
	base := s.base(o.Recent)
	for range readings {
		t, err = s.take(ctx, c, o, base)
		o.Hinted = false // the changes during the first try were not reported
		if refused := new(Unreadable); !errors.As(err, &refused) || o.Opens {
			break
		}
	}
	t.Took = time.Since(begun)
	return t, err
}

func (s *Store) take(ctx context.Context, c *files.Client, o Options, base *index) (t Taken, err error) {
	found, err := s.look(c, base.top, o)
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
	if found.partial || base.top == nil { // the first checkpoint has all files, and a command waits for it
		err = p.quickly()
	}
	if err == nil {
		t.Changing, err = fill(ctx, c, found.unread, p)
	}
	if err != nil {
		return t, errors.Join(err, p.drop())
	}
	r, err := encode(t.top, p.put)
	if err != nil {
		return t, errors.Join(err, p.drop())
	}
	if n := s.last(); o.OnlyNew && n > 0 {
		t.Checkpoint, err = s.Find(n)
	}
	switch {
	case err != nil:
		return t, errors.Join(err, p.drop())
	case t.IDs == r.ids():
		err = p.drop()
	default:
		t.Checkpoint, err = s.save(p, r, o.Message, o.Now)
		if err == nil && !found.partial { // see Save
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

// readings is how often a file is read that changes meanwhile.
const readings = 3

// settleTime is more than the ctime of a change can be behind the clock.
const settleTime = 50 * time.Millisecond

// fits returns [ErrTooLarge] if the files of a workspace are larger than the store may be. Their size without compression counts:
// reading a sparse file could take days, and would store almost nothing.
func (s *Store) fits(top *node) error {
	left := s.most
	if top.spend(&left); left < 0 {
		return ErrTooLarge
	}
	return nil
}

// spend subtracts the sizes of the regular files. It stops when they are larger than left.
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

// fill reads the contents of files. It returns those that changed each time.
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

// read stores the contents of files. It returns those that changed meanwhile.
func read(c *files.Client, all []unread, p *pack) (again []unread, err error) {
	refused := &Unreadable{}
	paths := make([]string, len(all))
	for i, w := range all {
		paths[i] = w.path
	}
	err = c.Read(paths, func(n int, content *files.Content, reason string) error {
		if content == nil {
			refused.add(paths[n], reason)
			return nil
		}
		id, err := p.putBlob(content.Size, content)
		if err != nil {
			return err
		}
		f := all[n].node
		// Mode is of the walk; so is the time, unless the file changed.
		f.blob, f.attributes, f.mtime = id, content.Attributes, content.Mtime
		f.settled = time.Since(time.Unix(0, content.Ctime)) > settleTime
		f.Stat = content.Stat
		return nil
	}, func(n int, same bool) {
		if !same {
			all[n].node.settled = false
			again = append(again, all[n])
		}
	})
	if err == nil && refused.Count > 0 {
		err = refused
	}
	return again, err
}

// count counts the files.
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
		again = again || c.kind == files.Regular && (c.links > 1 || !c.settled)
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
