package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// store is an object store in memory.
type store struct {
	blobs map[gitops.OID]string
	trees map[gitops.OID][]gitops.TreeEntry
	reads int
	// folders counts the calls of Tree.
	folders int
}

func newStore() *store {
	return &store{blobs: map[gitops.OID]string{}, trees: map[gitops.OID][]gitops.TreeEntry{}}
}

func (s *store) Blob(_ context.Context, id gitops.OID, limit int64) ([]byte, int64, error) {
	s.reads++
	content, ok := s.blobs[id]
	if !ok {
		return nil, 0, fmt.Errorf("no blob %s", id)
	}
	return []byte(content[:min(int64(len(content)), limit)]), int64(len(content)), nil
}

func (s *store) Tree(_ context.Context, id gitops.OID) ([]gitops.TreeEntry, error) {
	s.folders++
	entries, ok := s.trees[id]
	if !ok {
		return nil, fmt.Errorf("no tree %s", id)
	}
	return entries, nil
}

// files is a tree: contents by path. A content may begin with one of the marks below.
type files map[string]string

const (
	linkTo  = "link:"
	runs    = "exec:"
	gitlink = "gitlink:"
)

func (s *store) entry(content string) gitops.Entry {
	mode := gitops.ModeFile
	for mark, m := range map[string]gitops.Mode{linkTo: gitops.ModeLink, runs: gitops.ModeExecutable, gitlink: gitops.ModeGitlink} {
		if rest, ok := strings.CutPrefix(content, mark); ok {
			content, mode = rest, m
		}
	}
	id := gitops.HashObject("sha1", "blob", []byte(content))
	if mode != gitops.ModeGitlink {
		s.blobs[id] = content
	}
	return gitops.Entry{Mode: mode, OID: id}
}

// tree stores files and returns their tree.
func (s *store) tree(f files) gitops.OID {
	folders := map[string]files{}
	var entries []gitops.TreeEntry
	for path, content := range f {
		name, rest, deep := strings.Cut(path, "/")
		if !deep {
			entries = append(entries, gitops.TreeEntry{Name: name, Entry: s.entry(content)})
			continue
		}
		if folders[name] == nil {
			folders[name] = files{}
		}
		folders[name][rest] = content
	}
	for name, below := range folders {
		entries = append(entries, gitops.TreeEntry{Name: name, Entry: gitops.Entry{Mode: gitops.ModeFolder, OID: s.tree(below)}})
	}
	slices.SortFunc(entries, func(a, b gitops.TreeEntry) int { return cmp.Compare(a.Name, b.Name) })
	id := gitops.HashObject("sha1", "tree", fmt.Append(nil, entries))
	s.trees[id] = entries
	return id
}

// commit returns a commit that turns one set of files into another. If before is nil, the commit has no parent.
func (s *store) commit(before, after files, message string) Commit {
	c := Commit{ID: "c0ffee", Tree: s.tree(after), Message: []byte(message)}
	if before != nil {
		c.ParentTree = s.tree(before)
	}
	paths := maps.Clone(before)
	if paths == nil {
		paths = files{}
	}
	maps.Copy(paths, after)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		change := gitops.Change{Path: path}
		if content, ok := before[path]; ok {
			change.Old = s.entry(content)
		}
		if content, ok := after[path]; ok {
			change.New = s.entry(content)
		}
		if change.Old != change.New {
			c.Changes = append(c.Changes, change)
		}
	}
	return c
}

// with returns the files with others added. An empty content removes a file.
func (f files) with(others files) files {
	all := maps.Clone(f)
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_, content string) bool { return content == "" })
	return all
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
