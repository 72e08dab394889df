package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/killpoint"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/record"
)

// workshop is a folder in the git directory in which commits are made. Only one process may have it.
type workshop struct {
	repo   *gitops.Repository
	dir    string
	store  *quarantine.Store
	bridge *quarantine.Bridge
	across *quarantine.Inspector

	bases []gitops.OID // parents of the run's commits that are not commits of the run
	tip   gitops.OID   // what [workshop.Publish] makes visible
	known []gitops.OID // commits that the repository has with all that they reach
}

// openWorkshop makes a workshop. It first removes one that a dead process has left. The caller makes sure that no other process has a workshop.
func openWorkshop(ctx context.Context, r *gitops.Repository) (*workshop, error) {
	w := &workshop{repo: r, dir: filepath.Join(r.CommonDir, "airlock-replay")}
	if _, err := os.Lstat(w.dir); err == nil {
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
	err := os.Mkdir(w.dir, 0o700)
	if err == nil {
		w.store, err = quarantine.Create(ctx, r, filepath.Join(w.dir, "quarantine"))
	}
	if err == nil {
		w.bridge, err = w.store.Bridge(r, nil, filepath.Join(w.dir, "bridge"))
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.bridge.Memory, w.bridge.Time = limits().Memory, new(busy.Slow).Budget(limits().Time, false)
	w.across = w.bridge.Inspect(ctx, nil)
	return w, nil
}

// Close removes the workshop. From then on, refs alone keep what was published.
func (w *workshop) Close() error {
	var errs []error
	if w.across != nil {
		errs = append(errs, w.across.Close(), w.bridge.Close())
	}
	h, err := quarantine.OpenHandover(w.repo, w.dir)
	if err == nil {
		err = h.Release()
	}
	return errors.Join(append(errs, err, os.RemoveAll(w.dir))...)
}

// Publish copies the new commits into the repository, and moves a ref to the last of them. old is the ref's present value.
func (w *workshop) Publish(ctx context.Context, ref string, old gitops.OID) error {
	killpoint.Reach("replay-made")
	if err := w.bridge.Give(ctx, w.across, w.tip, w.known); err != nil {
		return err
	}
	killpoint.Reach("replay-given")
	err := w.repo.UpdateRefs(ctx, "airlock: replay", gitops.RefUpdate{Ref: ref, Old: old, New: w.tip})
	killpoint.Reach("replay-published")
	return err
}

// Contains reports whether the commit that [workshop.Publish] makes visible has another one in its history.
func (w *workshop) Contains(ctx context.Context, commit gitops.OID) bool {
	if commit == w.tip {
		return true
	}
	links, err := w.across.History(ctx, w.tip, func(id gitops.OID) bool { return slices.Contains(w.known, id) }, quarantine.WithoutLimits)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(links, func(l quarantine.Link) bool { return l.Commit == commit }) ||
		slices.ContainsFunc(w.known, func(id gitops.OID) bool { return id == commit || w.repo.IsAncestor(ctx, commit, id) })
}

// originals returns the landed commits as they were, in their order. It copies those that the repository has, and makes the others from their
// mails.
func (w *workshop) originals(ctx context.Context, r Request, landed []record.Commit) ([]original, error) {
	var wanted []gitops.OID
	for _, c := range landed {
		wanted = append(wanted, c.Outer)
	}
	there, err := w.repo.Present(ctx, wanted)
	if err != nil {
		return nil, err
	}
	all := make([]original, len(landed))
	bases := []gitops.OID{}
	for i, id := range wanted {
		if all[i].there = slices.Contains(there, id); !all[i].there {
			all[i].Parents = parentsOf(r.Run.Manifest, wanted, i)
		} else if all[i].Commit, err = w.across.Commit(ctx, id); err != nil {
			return nil, err
		}
		for _, p := range all[i].Parents {
			if !slices.Contains(wanted, p) && !slices.Contains(bases, p) {
				bases = append(bases, p)
			}
		}
	}
	if bases, err = w.substitute(ctx, r.Onto, all, bases); err != nil {
		return nil, err
	}
	if err := w.fetch(ctx, slices.Concat(bases, there, []gitops.OID{r.Onto})); err != nil {
		return nil, err
	}
	if err := w.receive(ctx, wanted, there, all, bases); err != nil {
		return nil, err
	}
	return all, w.rebuild(ctx, r, landed, all)
}

// substitute replaces parents that the repository does not have by the commit to make the commits on. The hashes in the record
// show whether that commit has the same files.
func (w *workshop) substitute(ctx context.Context, onto gitops.OID, all []original, bases []gitops.OID) ([]gitops.OID, error) {
	known, err := w.repo.Present(ctx, bases)
	if err != nil || len(known) == len(bases) {
		return bases, err
	}
	for _, base := range bases {
		if slices.Contains(known, base) {
			continue
		}
		if onto == "" {
			return nil, &Lacking{Commit: base}
		}
		for i := range all {
			all[i].Parents = slices.Clone(all[i].Parents)
			for k, p := range all[i].Parents {
				if p == base {
					all[i].Parents[k] = onto
				}
			}
		}
	}
	if !slices.Contains(known, onto) {
		known = append(known, onto)
	}
	return known, nil
}

// parentsOf returns the parents of a landed commit from the record.
func parentsOf(m record.Manifest, wanted []gitops.OID, i int) []gitops.OID {
	switch parents, noted := m.Parents[wanted[i]]; {
	case noted:
		return parents
	case i > 0:
		return wanted[i-1 : i]
	case m.Outer.Before != "":
		return []gitops.OID{m.Outer.Before}
	}
	return nil
}

// fetch fetches the files of commits that a partial clone lacks. An empty commit is skipped.
func (w *workshop) fetch(ctx context.Context, commits []gitops.OID) error {
	var before gitops.OID
	for _, commit := range commits {
		if commit == "" {
			continue
		}
		if partial, err := w.repo.FetchPromised(ctx, commit, before); err != nil {
			return &Lacking{commit, err}
		} else if !partial {
			return nil
		}
		before = commit
	}
	return nil
}

// receive copies commits into the quarantine and examines them.
func (w *workshop) receive(ctx context.Context, wanted, there []gitops.OID, all []original, bases []gitops.OID) error {
	if w.bases = bases; len(bases) > 0 {
		if err := w.store.TakeBases(ctx, w.repo, bases); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	if err := w.store.ReceiveFrom(ctx, w.repo, there, bases, limits()); err != nil {
		return err
	}
	inside := w.store.Inspect(ctx)
	defer inside.Close()
	var links []quarantine.Link
	for i, id := range wanted {
		if all[i].there {
			links = append(links, quarantine.Link{Commit: id, Parents: all[i].Parents})
		}
	}
	err := inside.Walk(ctx, links, limits(), nil)
	if invalid, ok := errors.AsType[*inner.Invalid](err); ok { // the repository does not have all of a commit
		return invalid.In("the commits of the run")
	}
	return err
}
