//go:build !libgit2

package quarantine

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
)

// entryMerger merges trees in process, entry by entry. It reads no file, and detects no renames. So it is used only for merges whose result does
// not depend on the content of files or on renames: no path was changed differently on both sides, and no side has both removed and added files,
// which git may take for renamed files.
type entryMerger struct {
	bridge    *Bridge
	inspector *Inspector // nil until it is needed
}

// newMerger returns the merger of a program built without the tag libgit2.
func (b *Bridge) newMerger() (merger, error) { return &entryMerger{bridge: b}, nil }

func (e *entryMerger) close() error {
	if e.inspector == nil {
		return nil
	}
	return e.inspector.Close()
}

// errLeftToGit ends a merge that git must do.
var errLeftToGit = errors.New("git must merge")

func (e *entryMerger) merge(ctx context.Context, m Merge) (gitops.OID, error) {
	if e.inspector == nil {
		e.inspector = e.bridge.Inspect(ctx, nil)
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
	// groupMode is a mode that old trees have. Git reads it as the mode of a regular file.
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
	var rest [3][]gitops.TreeEntry
	for i, id := range of {
		if id == "" {
			continue
		}
		var err error
		if rest[i], err = t.inspector.Tree(t.ctx, id); err != nil || len(rest[i]) == 0 {
			return "", errors.Join(errLeftToGit, err)
		}
		if slices.ContainsFunc(rest[i], func(e gitops.TreeEntry) bool { return e.RawMode == groupMode || !gitops.ProperMode(e.RawMode) }) {
			return "", errLeftToGit
		}
	}
	var result []gitops.TreeEntry
	changed := map[string]bool{}
	for heads := range together(rest) {
		if heads[base] == heads[ours] && heads[base] == heads[theirs] {
			result = append(result, heads[base])
			continue
		}
		e, err := t.entry(heads, depth)
		if err != nil {
			return "", err
		}
		if !e.Present() {
			continue
		}
		if changed[e.Name] {
			return "", errLeftToGit // a file and a folder
		}
		changed[e.Name] = true
		result = append(result, e)
	}
	return t.store(result, of)
}

// together visits the entries of three folders by their names. A file and a folder of the same name are two entries.
func together(rest [3][]gitops.TreeEntry) iter.Seq[[3]gitops.TreeEntry] {
	return func(yield func([3]gitops.TreeEntry) bool) {
		for {
			first := ""
			for _, r := range rest {
				if len(r) > 0 && (first == "" || r[0].SortKey() < first) {
					first = r[0].SortKey()
				}
			}
			if first == "" {
				return
			}
			var heads [3]gitops.TreeEntry
			for i, r := range rest {
				if len(r) > 0 && r[0].SortKey() == first {
					heads[i], rest[i] = r[0], r[1:]
				}
			}
			if !yield(heads) {
				return
			}
		}
	}
}

// entry merges three entries of the same name and kind, of which some can be missing.
func (t *threeTrees) entry(of [3]gitops.TreeEntry, depth int) (gitops.TreeEntry, error) {
	some := of[base]
	for _, e := range of {
		if e.Present() {
			some = e
		}
	}
	if some.Folder() {
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
	return t.bridge.makeMerged(content), nil
}
