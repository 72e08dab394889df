package prisons

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/watch"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// exporter is a second prison beside the agent's, with the workspace read-only. Git runs there as the phantom. The inner
// repository's configuration can do no harm there.
type exporter struct {
	inner.Workspace
	box  prison.Prison
	home func(context.Context) (prison.Prison, error) // opens a prison whose workspace is the agent's home
	// homeDir is the path of the home in the agent's prison.
	homeDir string
}

// OpenExporter opens a second prison beside the agent's, in which git reads the workspace of an airlock.
func (p Prisons) OpenExporter(ctx context.Context, r airlock.Record) (promote.Exporter, error) {
	spec, err := p.exporterSpec(r)
	if err != nil {
		return nil, err
	}
	if err := p.checkFolder(r); err != nil {
		return nil, err
	}
	box, err := p.openReadOnly(ctx, r, spec)
	if err != nil {
		return nil, err
	}
	home := func(ctx context.Context) (prison.Prison, error) { return p.Backend(r).OpenHome(ctx, spec) }
	workspace := WorkspaceIn(box)
	workspace.Scratch = "/tmp" // each of these prisons has its own, and ends with it
	return exporter{workspace, box, home, "/home/" + spec.User}, nil
}

// checkFolder returns an error if something other than a folder is in the place of the workspace.
func (p Prisons) checkFolder(r airlock.Record) error {
	if !p.Store.WorkspaceReplaced(r) {
		return nil
	}
	return environment.Advise(fmt.Errorf("%s is not a folder any more; move the workspace back", r.Workspace), "ls -ld -- "+gitops.Pasteable(p.Store.Workspace(r)))
}

// exporterSpec describes the exporter's prisons.
func (p Prisons) exporterSpec(r airlock.Record) (spec prison.Spec, err error) {
	spec = p.Spec(r)
	spec.ReadOnly, spec.Network = true, prison.NetworkNone
	spec.Limits.Memory, err = policy.ReadSize(p.Config.With(r.Settings), "airlock.limit.memory", inner.DefaultLimits.Memory)
	return spec, err
}

// openReadOnly opens a prison for the exporter. It uses no image if possible, because such a prison opens in a tenth of a
// container's time and needs no engine. If the agent's runtime has its own kernel, the exporter uses that runtime, too: git obeys
// the agent's configuration there, which must not reach this machine's kernel.
func (p Prisons) openReadOnly(ctx context.Context, r airlock.Record, spec prison.Spec) (prison.Prison, error) {
	if !p.Traits(r).HostKernel {
		return p.Backend(r).Open(ctx, spec)
	}
	return p.openPlain(ctx, r, spec)
}

// openPlain opens a prison without an image, or with the agent's image if that fails.
func (p Prisons) openPlain(ctx context.Context, r airlock.Record, spec prison.Spec) (prison.Prison, error) {
	without := spec
	without.Image, without.Runtime = "", ""
	box, err := Plain().Open(ctx, without)
	if err == nil || !p.Traits(r).Images || ctx.Err() != nil {
		return box, err
	}
	inside, ownErr := p.Backend(r).Open(ctx, spec)
	if ownErr != nil {
		return nil, errors.Join(ownErr, err)
	}
	return inside, nil
}

// Files is a prison in which this program reads the files of a workspace.
type Files struct {
	*files.Client
	box prison.Prison
}

// Close ends the prison.
func (f Files) Close() error { return errors.Join(f.Client.Close(), f.box.Close()) }

// OpenFiles opens a prison in which this program reads the workspace of an airlock. With writes it also writes there, so the
// airlock's own prison must not run.
func (p Prisons) OpenFiles(ctx context.Context, r airlock.Record, writes bool) (f Files, err error) {
	spec, err := p.exporterSpec(r)
	if err != nil {
		return f, err
	}
	if spec.ReadOnly = !writes; writes {
		spec.Root, spec.Tools = "", nil
	}
	if f.box, err = p.openPlain(ctx, r, spec); err != nil {
		return f, err
	}
	return f.open(ctx, false)
}

// open starts this program in the prison, with frozen while everything else there is frozen.
func (f Files) open(ctx context.Context, frozen bool) (_ Files, err error) {
	run := func(ctx context.Context, argv []string, in io.Reader, out, said io.Writer) (int, error) {
		return f.box.Exec(ctx, prison.Process{Argv: argv, Stdin: in, Stdout: out, Stderr: said, Dir: "/", Frozen: frozen})
	}
	if own, ok := f.box.(prison.Own); ok {
		f.Client = files.OpenOwn(ctx, run, own.Own(), prison.Workspace)
	} else if f.Client, err = files.Open(ctx, run, prison.Workspace); err != nil {
		return f, errors.Join(err, f.box.Close())
	}
	return f, nil
}

// frozen is a frozen prison of an airlock.
type frozen struct {
	prison.Frozen
	box prison.Prison
}

func (f frozen) Thaw() error { return errors.Join(f.Frozen.Thaw(), f.box.Close()) }

func (f frozen) Leave() error { return errors.Join(f.Frozen.Leave(), f.box.Close()) }

// Freeze stops all processes in the running prison of an airlock, see [prison.Freezer].
func (p Prisons) Freeze(ctx context.Context, r airlock.Record) (prison.Frozen, error) {
	box, err := p.Attach(ctx, r)
	if err != nil {
		return nil, err
	}
	f, ok := box.(prison.Freezer)
	if !ok {
		return nil, errors.Join(errors.New("this prison cannot be frozen"), box.Close())
	}
	now, err := f.Freeze(ctx)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return frozen{now, box}, nil
}

// OpenFrozenFiles is like OpenFiles with writes, for a prison that is frozen. A prison that sees its workspace through an overlay
// writes itself.
func (p Prisons) OpenFrozenFiles(ctx context.Context, r airlock.Record) (f Files, err error) {
	if !p.Traits(r).Overlay {
		return p.OpenFiles(ctx, r, true)
	}
	if f.box, err = p.Attach(ctx, r); err != nil {
		return f, err
	}
	return f.open(ctx, true)
}

// WatchTree watches the folders of a workspace. A running prison that sees its workspace through an overlay watches itself, because
// the files below the overlay do not report what is written into them. Otherwise the prison of f sees all changes.
func (p Prisons) WatchTree(ctx context.Context, r airlock.Record, f Files) (prison.Tree, error) {
	box := f.box
	if p.Traits(r).Overlay {
		var err error
		if box, err = p.Attach(ctx, r); err != nil {
			return nil, err
		}
	}
	w, ok := box.(prison.TreeWatcher)
	if !ok {
		return nil, errors.New("no process can watch the folders of the workspace")
	}
	return w.WatchTree(ctx)
}

// Inside opens the workspace of an airlock for git that changes it, as the agent: in the airlock's own prison if that runs, and in
// another one beside it otherwise. The caller holds the store's lock, so that no prison starts meanwhile. A dry run gets a prison of
// its own, which is read-only, so that the record of programs has none that belongs to a dry run.
func (p Prisons) Inside(ctx context.Context, r airlock.Record) (inner.Workspace, func() error, error) {
	var box prison.Prison
	err := prison.ErrNotRunning
	if !p.Repo.Dry {
		box, err = p.Attach(ctx, r)
	}
	if errors.Is(err, prison.ErrNotRunning) && !p.Store.WorkspaceGone(r) {
		spec, specErr := p.exporterSpec(r)
		if specErr != nil {
			return inner.Workspace{}, nil, specErr
		}
		spec.ReadOnly, spec.Root, spec.Tools = p.Repo.Dry, "", nil
		box, err = p.openPlain(ctx, r, spec)
	}
	if err != nil {
		return inner.Workspace{}, nil, err
	}
	return WorkspaceIn(box), box.Close, nil
}

// Usage measures the workspace and the agent's home, which may be on another disk. The agent's files in both outlive the prison.
func (x exporter) Usage(ctx context.Context) (inner.Usage, error) {
	u, err := x.Workspace.Usage(ctx)
	if err != nil {
		return u, err
	}
	box, err := x.home(ctx)
	if errors.Is(err, prison.ErrNoHome) {
		return u, nil
	}
	var home inner.Usage // the measurement is incomplete
	if err == nil {
		defer box.Close()
		home, err = WorkspaceIn(box).Usage(ctx)
	}
	if err != nil {
		err = fmt.Errorf("in the agent's home: %w", err)
	}
	return u.With(home), err
}

// watched lists the paths that change when an inner ref changes.
var watched = []string{".git", ".git/HEAD", ".git/packed-refs", ".git/refs", ".git/refs/heads", ".git/refs/heads/main", ".git/reftable"}

func (x exporter) Watch(ctx context.Context) (<-chan struct{}, error) {
	paths := make([]string, len(watched))
	for i, p := range watched {
		paths[i] = path.Join(prison.Workspace, p)
	}
	return x.box.Watch(ctx, paths)
}

func (x exporter) Close() error { return x.box.Close() }

// WorkspaceIn lets gitops run git inside a prison.
func WorkspaceIn(box prison.Prison) inner.Workspace {
	return inner.Workspace{Dir: prison.Workspace, Run: func(ctx context.Context, p inner.Process) (int, error) {
		return box.Exec(ctx, prison.Process{Argv: p.Argv, Env: p.Env, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr})
	}}
}

// Guarded returns the description of an airlock's prison for a guard.
func (p Prisons) Guarded(r airlock.Record) watch.Prison {
	dir := p.Store.Dir(r.ID)
	w := watch.Prison{
		Workspace: p.Store.Workspace(r),
		Measure:   func(ctx context.Context) (watch.Usage, error) { return p.measure(ctx, r) },
		Exported:  func() int64 { return quarantine.Open(promote.QuarantineDir(dir), r.Format).Size() },
		Runs:      func(ctx context.Context) bool { return p.alive(ctx, r) },
		Halt:      func(ctx context.Context) error { return p.stop(ctx, r) },
		Close:     func(ctx context.Context) (bool, error) { return p.fixWorkspaceMode(ctx, r) },
	}
	w.Others = []watch.Folder{{Path: p.Backend(r).HomeDisk(p.Spec(r)), Of: "the agent's home"}, {Path: dir, Of: "the repository"}}
	return w
}

// measure measures workspace and home with its own exporter, because the agent can keep another one busy.
func (p Prisons) measure(ctx context.Context, r airlock.Record) (watch.Usage, error) {
	exporter, err := p.OpenExporter(ctx, r)
	if err != nil {
		return watch.Usage{}, err
	}
	defer exporter.Close()
	u, err := exporter.Usage(ctx)
	return usageOf(u), err
}

// usageOf returns a measurement in the form of a guard.
func usageOf(u inner.Usage) watch.Usage {
	return watch.Usage{Bytes: u.Bytes, Inodes: u.Inodes, Beside: u.Beside, Whole: u.Whole, Took: u.Took}
}
