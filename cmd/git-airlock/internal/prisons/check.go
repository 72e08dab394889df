package prisons

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/watch"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

const (
	// checkFolder is the folder of a check in the host state: the prison's own, with the workspace and a quarantine in it.
	checkFolder = "check"
	// checkFile describes the prison of the check, for the removal of what a killed check has left.
	checkFile = "check.json"
	// wipeTries bounds the tries to remove what a killed check has left, and wipePause is the time between two tries. The processes of
	// the check need a moment to end.
	wipeTries = 100
	wipePause = 50 * time.Millisecond
)

// Check is an open prison for one check. It shares nothing with the prison of the airlock.
type Check struct {
	prison.Prison
	Workspace  string // its folder on the host
	Quarantine string // where the quarantine of its snapshot belongs

	remove func() error
}

// Usage measures the workspace, for a guard.
func (c Check) Usage(ctx context.Context) (watch.Usage, error) {
	u, err := WorkspaceIn(c).Usage(ctx)
	return usageOf(u), err
}

// Close ends the prison, and removes everything that belongs to it.
func (c Check) Close() error { return errors.Join(c.Prison.Close(), c.remove()) }

func (p Prisons) checkDir(id string) string { return filepath.Join(p.Store.Dir(id), checkFolder) }

// OpenCheck makes an empty workspace and opens a prison around it, with the system and the limits of an airlock, and without a network
// and variables. It removes what a killed check has left. The caller holds the lock of checks.
func (p Prisons) OpenCheck(ctx context.Context, r airlock.Record) (c Check, err error) {
	if err := p.wipeCheck(ctx, r.ID); err != nil {
		return c, err
	}
	c.remove = func() error { return p.wipeCheck(context.WithoutCancel(ctx), r.ID) }
	defer func() {
		if err != nil {
			err = errors.Join(err, c.remove())
		}
	}()
	if r.Phantom, err = p.Store.CheckPhantom(r); err != nil {
		return c, err
	}
	if r.Image, err = p.ImageID(ctx, r); err != nil {
		return c, err
	}
	dir := p.checkDir(r.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return c, err
	}
	if err := hostfile.Write(filepath.Join(dir, checkFile), r); err != nil {
		return c, err
	}
	spec := p.checkSpec(r)
	if err := p.Backend(r).Prepare(ctx, spec); err != nil {
		return c, err
	}
	c.Workspace, c.Quarantine = spec.Workspace, filepath.Join(dir, "quarantine")
	c.Prison, err = p.Backend(r).Open(ctx, spec)
	return c, err
}

// checkSpec describes the prison of a check. The processes in it may run the agent's programs, so it hides its path on the host.
func (p Prisons) checkSpec(r airlock.Record) prison.Spec {
	spec := p.Spec(r)
	spec.Dir, spec.Sources, spec.Network, spec.Alone = p.checkDir(r.ID), nil, prison.NetworkNone, true
	spec.Workspace = filepath.Join(spec.Dir, "workspace")
	return spec
}

// ImageID returns the id of an airlock's image. A check uses this id all the time, because the image's name can get another image
// meanwhile.
func (p Prisons) ImageID(ctx context.Context, r airlock.Record) (string, error) {
	if r.Image == "" {
		return "", nil
	}
	id, err := Containers().ImageID(ctx, r.Image)
	if err == nil && id == "" {
		err = Containers().CheckImage(ctx, r.Image) // its error names the next command
	}
	return id, err
}

// wipeCheck removes the prison and the workspace of a check that has ended. The caller holds the lock of checks, or no other can begin.
func (p Prisons) wipeCheck(ctx context.Context, id string) error {
	dir := p.checkDir(id)
	if _, err := os.Lstat(dir); err != nil {
		return nil //nolint:nilerr // there was no check
	}
	if err := p.wipeCheckPrison(ctx, dir); err != nil {
		return fmt.Errorf("remove the files of a check: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if id == airlock.NoID {
		p.Store.RemoveNoID()
	}
	return nil
}

func (p Prisons) wipeCheckPrison(ctx context.Context, dir string) error {
	var r airlock.Record
	err := hostfile.Read(filepath.Join(dir, checkFile), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was killed before it made any
	}
	if err != nil {
		return err
	}
	for range wipeTries {
		if err = p.Backend(r).Wipe(ctx, p.checkSpec(r)); err == nil {
			break
		}
		time.Sleep(wipePause)
	}
	return err
}

// SweepCheck removes what a killed check without an airlock has left.
func (p Prisons) SweepCheck(ctx context.Context) error {
	if _, err := os.Lstat(p.Store.Dir(airlock.NoID)); err != nil {
		return nil //nolint:nilerr // there was none
	}
	unlock, err := p.Store.TryLockCheck(airlock.NoID)
	if err != nil {
		return nil //nolint:nilerr // it runs
	}
	defer unlock()
	return p.wipeCheck(ctx, airlock.NoID)
}
