package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// Restoring is the plan of a restore.
type Restoring struct {
	Before  Taken    // the checkpoint of the state before, which can undo the restore
	Write   []string // paths to write: contents, links, folders, modes or times
	Remove  []string // paths to remove
	New     []string // of Remove: files that the checkpoint does not have, with KeepNew; a file of the checkpoint is in the place of their folder
	Missing []string // paths of the scope that neither the workspace nor the checkpoint has
	Whole   bool     // the workspace will be exactly as in the checkpoint
	want    *node    // the planned state
	operate []files.Operation
	blobs   []oid // for each operation, the content to write
	to      Checkpoint
	Step    func(n int) // called before the nth change that writes a file's content; may be nil
}

// RestoreOptions are the options of a restore.
type RestoreOptions struct {
	Options       // for the checkpoint that Plan makes
	Scope   Scope // the files to restore
	KeepNew bool  // keep files that the checkpoint does not have
}

// ErrDiffers reports that a restore has not made the workspace as planned.
var ErrDiffers = errors.New("the workspace differs from what was to be restored")

// Plan plans a restore. It makes a checkpoint of the present state, for which it reads all files. From now on, no process of the agent
// may run.
func (s *Store) Plan(ctx context.Context, c *files.Client, to Checkpoint, o RestoreOptions) (*Restoring, error) {
	saved, err := s.load(to)
	if err != nil {
		return nil, err
	}
	o.Whole = true
	before, err := s.Take(ctx, c, o.Options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a checkpoint before the restore: %w", err), before.Shut(c))
	}
	r := &Restoring{Before: before, to: to, Whole: len(o.Scope) == 0 && !o.KeepNew}
	r.Missing = o.Scope.Missing(State{before.top}, State{saved})
	if r, err = s.planned(c, r, wanted("", before.top, saved, o)); err == nil {
		r.New = o.unkept(r.Remove, saved)
	}
	return r, err
}

// Foresee returns the plan of a restore that turns the state now into the saved one, or into a part of it. The plan is only to be shown.
func (s *Store) Foresee(saved, now State, o RestoreOptions) (*Restoring, error) {
	r := &Restoring{Before: Taken{top: now.top}, want: wanted("", now.top, saved.top, o)}
	p := planner{Store: s, Restoring: r}
	err := p.plan()
	r.New = o.unkept(r.Remove, saved.top)
	return r, err
}

// unkept returns the removed paths that KeepNew promises to keep: those that the checkpoint does not have.
func (o RestoreOptions) unkept(removed []string, saved *node) (paths []string) {
	for _, path := range removed {
		if o.KeepNew && saved.at(path) == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// PlanAgain plans the rest of an interrupted restore. before is the checkpoint that the first plan has made. The restore will have the
// same result as the first plan's.
func (s *Store) PlanAgain(ctx context.Context, c *files.Client, before, to Checkpoint, o RestoreOptions) (*Restoring, error) {
	then, err := s.load(before)
	if err != nil {
		return nil, err
	}
	saved, err := s.load(to)
	if err != nil {
		return nil, err
	}
	now, _, err := s.present(ctx, c, Options{Opens: true, Whole: true})
	r := &Restoring{Before: Taken{Checkpoint: before, top: now}, to: to, Whole: len(o.Scope) == 0 && !o.KeepNew}
	if err != nil {
		return nil, errors.Join(err, r.Cancel(c))
	}
	return s.planned(c, r, wanted("", then, saved, o))
}

// planned adds the operations to r. If it fails, it undoes the changes that planning has made to the workspace.
func (s *Store) planned(c *files.Client, r *Restoring, want *node) (*Restoring, error) {
	r.want = want
	p := planner{Store: s, Restoring: r}
	if err := p.plan(); err != nil {
		return nil, errors.Join(err, r.Cancel(c))
	}
	return r, nil
}

// wanted returns the state of a file after a restore, or nil if the restore removes the file. now and saved may be nil.
func wanted(path string, now, saved *node, o RestoreOptions) *node {
	in := len(o.Scope) == 0 || path != "" && o.Scope.contains(path)
	var n node
	switch {
	case in && saved != nil:
		n = *saved
	case in && (now == nil || !o.KeepNew && now.kind != files.Special):
		return nil
	case now == nil && saved.kind == files.Folder && leads(path, o.Scope):
		n = *saved // this folder is on the way to a file in the scope
	case now == nil:
		return nil
	default:
		n = *now
		if saved != nil && now.kind != files.Folder && saved.kind == files.Folder && leads(path, o.Scope) {
			n = *saved
		}
	}
	n.children, n.tree, n.meta = nil, oid{}, oid{}
	if n.kind != files.Folder {
		return &n
	}
	below := saved
	if saved != nil && saved.kind != files.Folder {
		below = nil
	}
	for _, name := range namesIn(now, below) {
		if c := wanted(join(path, name), now.child(name), below.child(name), o); c != nil {
			n.children = append(n.children, c)
		}
	}
	return &n
}

// leads reports whether a folder is on the way to a file in the scope.
func leads(path string, scope Scope) bool {
	return slices.ContainsFunc(scope, func(p string) bool { return strings.HasPrefix(strings.Trim(p, "/"), path+"/") })
}

// planner finds the operations of a restore.
type planner struct {
	*Store
	*Restoring
	sets []files.Operation // operations that come last: modes and times, the deepest first
}

func (p *planner) plan() error {
	if err := p.folder("", p.Before.top, p.want); err != nil {
		return err
	}
	p.operate = append(p.operate, p.sets...)
	p.blobs = append(p.blobs, make([]oid, len(p.sets))...)
	slices.Sort(p.Write)
	return nil
}

func (p *planner) add(o files.Operation, blob oid) {
	p.operate, p.blobs = append(p.operate, o), append(p.blobs, blob)
}

// folder adds the operations that turn the folder now into want. now is nil for a new folder.
func (p *planner) folder(path string, now, want *node) error {
	before := len(p.operate) + len(p.sets)
	for _, name := range namesIn(now, want) {
		if err := p.entry(join(path, name), now.child(name), want.child(name)); err != nil {
			return err
		}
	}
	touched := len(p.operate)+len(p.sets) > before
	if touched || now == nil || now.opened || now.mode != want.mode || now.mtime != want.mtime {
		p.set(path, want)
		if now == nil || now.mode != want.mode || now.mtime != want.mtime {
			p.Write = append(p.Write, path)
		}
	}
	return nil
}

func (p *planner) set(path string, want *node) {
	p.sets = append(p.sets, files.Operation{Action: files.Set, Kind: want.kind, Path: path, Mode: want.mode, Mtime: want.mtime})
}

// entry adds the operations that turn the entry now of a folder into want.
func (p *planner) entry(path string, now, want *node) error {
	if want == nil {
		if now.kind != files.Special { // checkpoints do not contain special files, so these stay
			p.remove(path, now)
		}
		return nil
	}
	if now != nil && now.kind == files.Special && want.kind == files.Special {
		return nil
	}
	if now != nil && now.kind != want.kind && (now.kind == files.Folder || want.kind == files.Folder) {
		p.remove(path, now)
		now = nil
	}
	if want.kind == files.Folder {
		if now == nil {
			p.add(files.Operation{Action: files.MakeFolder, Path: path}, oid{})
		}
		return p.folder(path, now, want)
	}
	switch {
	case now != nil && now.same(want) && !now.opened:
		return nil
	case now != nil && now.sameContent(want) && (now.kind == files.Link || now.links <= 1):
		p.set(path, want)
	case want.kind == files.Link:
		p.add(files.Operation{Action: files.MakeLink, Path: path, Target: want.target, Mtime: want.mtime}, oid{})
	default: // also if the file has other names: setting mode or time would change them for these, too
		_, size, content, err := p.open(want.blob)
		if err != nil {
			return err
		}
		content.Close()
		p.add(files.Operation{Action: files.Write, Path: path, Mode: want.mode, Mtime: want.mtime, Size: size}, want.blob)
	}
	if now == nil || !now.same(want) {
		p.Write = append(p.Write, path)
	}
	return nil
}

// remove adds the operations that remove a file, or a folder with everything in it.
func (p *planner) remove(path string, now *node) {
	p.Remove = append(p.Remove, path)
	if now.kind != files.Folder {
		p.add(files.Operation{Action: files.Remove, Path: path}, oid{})
		return
	}
	for _, c := range now.children {
		p.remove(join(path, c.name), c)
	}
	p.add(files.Operation{Action: files.RemoveFolder, Path: path}, oid{})
}

// Restored is the result of a restore.
type Restored struct {
	IDs
	Failed []string // operations that failed, with reasons
}

// Restore does the planned operations, and computes the ids of the workspace. The error is [ErrDiffers] if they are not the planned ones:
// those of the checkpoint, or of the planned state if only a part of the checkpoint is restored.
func (s *Store) Restore(ctx context.Context, c *files.Client, r *Restoring) (done Restored, err error) {
	err = c.Apply(r.operate, func(n int) (io.ReadCloser, error) {
		if r.Step != nil {
			r.Step(n)
		}
		_, _, content, err := s.open(r.blobs[n])
		return content, err
	}, func(n int, reason string) {
		const most = 10
		if len(done.Failed) < most {
			done.Failed = append(done.Failed, fmt.Sprintf("%q: %s", r.operate[n].Path, reason))
		}
	})
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	top, changing, err := s.present(ctx, c, Options{Opens: true, Whole: true})
	if err == nil && len(changing) > 0 {
		err = fmt.Errorf("%d files change while they are read: %q", len(changing), changing[0])
	}
	if top == nil {
		return done, errors.Join(ErrDiffers, err)
	}
	if err = errors.Join(err, shut(c, top)); err != nil {
		return done, errors.Join(ErrDiffers, err)
	}
	now, err := encode(top, nameOnly)
	if err != nil {
		return done, err
	}
	done.IDs = now.ids()
	want, err := encode(r.want, nameOnly)
	if err != nil {
		return done, err
	}
	if want.ids() != done.IDs || r.Whole && done.IDs != r.to.IDs || len(done.Failed) > 0 {
		return done, ErrDiffers
	}
	return done, nil
}

// Cancel undoes the changes that a plan has made to the workspace: the owner loses access to files that the agent had closed.
func (r *Restoring) Cancel(c *files.Client) error { return r.Before.Shut(c) }

// Shut undoes [Options.Opens]: it gives the opened files their modes back.
func (t Taken) Shut(c *files.Client) error { return shut(c, t.top) }

func shut(c *files.Client, top *node) (err error) {
	if top == nil {
		return nil
	}
	var all []files.Operation
	for path, n := range top.all() {
		if n.opened {
			all = append(all, files.Operation{Action: files.Set, Kind: n.kind, Path: path, Mode: n.mode, Mtime: n.mtime})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Reverse(all)
	var failed []error
	err = c.Apply(all, nil, func(n int, reason string) { failed = append(failed, fmt.Errorf("%q: %s", all[n].Path, reason)) })
	return errors.Join(append(failed, err)...)
}

func nameOnly(kind string, content []byte) (oid, error) { return name(kind, content), nil }

// present returns the present state of the workspace, and the files that changed while they were read. It stores nothing, and does not
// read files that have not changed since the last checkpoint. If the error is an [Unreadable], the state lacks what could not be read.
func (s *Store) present(ctx context.Context, c *files.Client, o Options) (top *node, changing []string, err error) {
	found, walked := s.scan(c, s.readIndex().top, o)
	if walked != nil && !errors.As(walked, new(*Unreadable)) {
		return found.top, nil, walked
	}
	// After a restore of a part, the workspace can have the files of two checkpoints.
	p, err := packInto(io.Discard, s.has, sum(s.most, s.most))
	if err != nil {
		return found.top, nil, err
	}
	if changing, err = fill(ctx, c, found.unread, p); err == nil || errors.As(err, new(*Unreadable)) {
		err = cmp.Or(walked, err)
	}
	return found.top, changing, err
}
