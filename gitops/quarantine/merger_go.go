//go:build !libgit2

package quarantine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// entryMerger merges trees in process, entry by entry. It reads no file, and detects no renames. So it is used only for merges whose
// result cannot depend on either: no path was changed differently on both sides, and no side has both removed and added files, of
// which git may take some for renamed.
type entryMerger struct {
	bridge *Bridge
	look   *Inspector // nil until it is needed
}

// newMerger returns the merger of a program built without the tag libgit2.
func (b *Bridge) newMerger() (merger, error) { return &entryMerger{bridge: b}, nil }

func (e *entryMerger) close() error {
	if e.look == nil {
		return nil
	}
	return e.look.Close()
}

// errLeftToGit ends a merge that git must do.
var errLeftToGit = errors.New("git must merge")

func (e *entryMerger) merge(ctx context.Context, m Merge) (gitops.OID, error) {
	if e.look == nil {
		e.look = e.bridge.Inspect(ctx, nil)
	}
	t := threeTrees{entryMerger: e, ctx: ctx}
	tree, err := t.folder([3]gitops.OID{m.Base, m.Ours, m.Theirs}, 0)
	switch {
	case errors.Is(err, errLeftToGit) || t.removed[ours] && t.added[ours] || t.removed[theirs] && t.added[theirs]:
		return "", nil
	case err != nil:
		return "", err
	}
	return tree, nil
}

// base, ours and theirs are the positions of the trees of a merge.
const (
	base = iota
	ours
	theirs
)

const (
	// foldersMerged bounds the folders that one merge reads: trees that share their folders can describe any number of them.
	foldersMerged = 20_000
	depthMerged   = 1000
	// groupMode is a mode of old trees, which git reads as that of a regular file.
	groupMode = "100664"
)

// threeTrees is the state of one merge.
type threeTrees struct {
	*entryMerger
	ctx            context.Context
	folders        int
	added, removed [3]bool // by side
}

// folder merges three folders, of which some can be missing. The result is empty if nothing is left.
func (t *threeTrees) folder(of [3]gitops.OID, depth int) (gitops.OID, error) {
	if t.folders++; t.folders > foldersMerged || depth > depthMerged {
		return "", errLeftToGit
	}
	names := map[string]*[3]gitops.TreeEntry{} // by sort key, which a file and a folder do not share
	for i, id := range of {
		if id == "" {
			continue
		}
		entries, err := t.look.Tree(t.ctx, id)
		if err != nil || len(entries) == 0 {
			return "", errors.Join(errLeftToGit, err)
		}
		for _, e := range entries {
			key := e.SortKey()
			if names[key] == nil {
				names[key] = &[3]gitops.TreeEntry{}
			}
			if names[key][i].Name != "" || e.RawMode == groupMode || !gitops.ProperMode(e.RawMode) {
				return "", errLeftToGit
			}
			names[key][i] = e
		}
	}
	var result []gitops.TreeEntry
	taken := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(names)) {
		e, err := t.entry(*names[key], depth)
		if err != nil {
			return "", err
		}
		if !e.Present() {
			continue
		}
		if taken[e.Name] {
			return "", errLeftToGit // a file and a folder
		}
		taken[e.Name] = true
		result = append(result, e)
	}
	return t.store(result, of)
}

// entry merges three entries of the same name and kind, of which some can be missing.
func (t *threeTrees) entry(of [3]gitops.TreeEntry, depth int) (gitops.TreeEntry, error) {
	some := of[base]
	for _, e := range of {
		if e.Present() {
			some = e
		}
	}
	switch {
	case of[base] == of[ours] && of[base] == of[theirs]:
		return some, nil
	case some.Folder():
		id, err := t.folder([3]gitops.OID{of[base].OID, of[ours].OID, of[theirs].OID}, depth+1)
		if err != nil || id == "" {
			return gitops.TreeEntry{}, err
		}
		some.OID = id
		return some, nil
	}
	for side := ours; side <= theirs; side++ {
		t.added[side] = t.added[side] || !of[base].Present() && of[side].Present()
		t.removed[side] = t.removed[side] || of[base].Present() && !of[side].Present()
	}
	switch {
	case of[base] == of[ours]:
		return of[theirs], nil
	case of[base] == of[theirs], of[ours] == of[theirs]:
		return of[ours], nil
	}
	return gitops.TreeEntry{}, errLeftToGit
}

// store returns the name of a folder, which it stores unless it is one of the merged ones.
func (t *threeTrees) store(entries []gitops.TreeEntry, of [3]gitops.OID) (gitops.OID, error) {
	if len(entries) == 0 {
		return "", nil
	}
	content, err := gitops.TreeBytes(entries)
	if err != nil {
		return "", err
	}
	id := gitops.HashObject(t.bridge.outer.Format, "tree", content)
	if slices.Contains(of[:], id) {
		return id, nil
	}
	return id, t.bridge.writeLoose(id, "tree", content)
}
