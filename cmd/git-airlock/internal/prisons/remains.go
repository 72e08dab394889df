package prisons

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// containerState is a file that only a prison in a container has in its host folder.
const containerState = "container.json"

// EraseUnrecorded removes all parts of an airlock without a usable record. r has the known fields of the record.
func (p Prisons) EraseUnrecorded(ctx context.Context, r airlock.Record) error {
	dir := filepath.Join(p.Store.Dir(r.ID), "prison")
	if err := os.MkdirAll(dir, 0o700); err != nil { // Erase expects it
		return err
	}
	if r.Backend == "" {
		// The state of a container may be gone, too.
		if err := containers.RemoveUnrecorded(ctx, r.ID, p.Store.Workspace(r)); err != nil {
			return err
		}
	}
	return p.Erase(ctx, p.complete(r, dir))
}

// SweepUnrecorded removes the files of agents in folders of the host state that have no record. An ordinary user cannot remove such files
// with rm, so a removal of the repository leaves them. Store.Sweep removes the rest. The caller holds the store's lock.
func (p Prisons) SweepUnrecorded(ctx context.Context) error {
	ids, err := p.Store.Unrecorded()
	for _, id := range ids {
		dir := filepath.Join(p.Store.Dir(id), "prison")
		workspaces := append(airlock.WorkspacesIn(id, p.Store.Dir(id)), filepath.Join(p.Store.Dir(id), "none"))
		owner, found := ownerOf(append(gitops.Glob(dir, "*"), workspaces...)...)
		if !found || os.Geteuid() == 0 {
			continue // Store.Sweep can remove it
		}
		err = errors.Join(err, Plain().Wipe(ctx, prison.Spec{ID: id, Dir: dir, Workspace: workspaces[0], UID: owner.UID, GID: owner.GID}))
	}
	return err
}

// complete fills in the fields of a record that the removal of an airlock needs. The owner of the agent's files is the phantom.
func (p Prisons) complete(r airlock.Record, dir string) airlock.Record {
	r.Isolation.Network = prison.NetworkNone.String() // no prison is started
	if _, err := os.Lstat(filepath.Join(dir, containerState)); err == nil && r.Backend == "" {
		r.Backend = containers.Name()
	}
	if r.Phantom != (identity.Phantom{}) {
		return r
	}
	owner, found := ownerOf(append(gitops.Glob(dir, "*"), p.Store.Workspace(r))...)
	if !found { // no file belongs to an agent, and a removal needs ids all the same
		owner, _ = identity.NewPhantom(nil)
	}
	r.Phantom = owner
	return r
}

// ownerOf returns the owner of the first of some files that belongs to an agent.
func ownerOf(paths ...string) (owner identity.Phantom, found bool) {
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !OfAgent(info) {
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		return identity.Phantom{UID: int(stat.Uid), GID: int(stat.Gid)}, ok
	}
	return owner, false
}

// OfAgent reports whether a file belongs to a user without an account, as an agent is.
func OfAgent(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || gitops.OwnedByUs(info) {
		return false
	}
	_, err := user.LookupId(strconv.Itoa(int(stat.Uid)))
	return err != nil
}
