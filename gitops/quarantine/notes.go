package quarantine

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
)

// Note is a text for a commit. An empty text removes the commit's note.
type Note struct {
	Commit gitops.OID
	Text   string
}

// DraftNotes creates a notes commit that adds notes to a previous notes commit (empty for none) or removes them. It
// returns the commit with all new objects. The notes become visible when the caller has copied the objects and moved
// the ref. The cost depends on the number of new notes, and hardly on the number of existing ones.
func (b *Bridge) DraftNotes(ctx context.Context, inspector *Inspector, old gitops.OID, who string, notes []Note) (drafted gitops.OID, made []gitops.OID, err error) {
	d := &notesDraft{bridge: b, objects: inspector}
	var before gitops.Commit
	if old != "" {
		if before, err = inspector.Commit(ctx, old); err != nil {
			return "", nil, fmt.Errorf("read notes: %w", err)
		}
	}
	root := d.folder(before.Tree)
	for _, n := range notes {
		blob := gitops.OID("")
		if n.Text != "" {
			blob = d.make("blob", []byte(n.Text))
		}
		if err := root.set(ctx, string(n.Commit), blob); err != nil {
			return "", nil, fmt.Errorf("read notes: %w", err)
		}
	}
	tree, err := root.write()
	if tree == "" && err == nil {
		tree = d.make("tree", nil)
	}
	if err != nil || tree == before.Tree {
		return old, nil, err
	}
	c := gitops.Commit{Tree: tree, Author: fmt.Sprintf("%s %d +0000", who, time.Now().Unix()), Message: []byte("Notes added by 'git airlock'\n")}
	c.Committer = c.Author
	if old != "" {
		c.Parents = []gitops.OID{old}
	}
	return d.make("commit", c.Bytes()), d.made, nil
}

// NoteOf reads the note of a commit in a notes commit. It returns nil if there is none.
func (in *Inspector) NoteOf(ctx context.Context, notes, commit gitops.OID) ([]byte, error) {
	c, err := in.Commit(ctx, notes)
	if err != nil {
		return nil, fmt.Errorf("read notes: %w", err)
	}
	for tree, name := c.Tree, string(commit); ; name = name[2:] {
		entries, err := in.Tree(ctx, tree)
		if err != nil {
			return nil, fmt.Errorf("read notes: %w", err)
		}
		if i := slices.IndexFunc(entries, func(e gitops.TreeEntry) bool { return e.Name == name }); i >= 0 {
			text, _, err := in.Blob(ctx, entries[i].OID, gitops.NoteLimit)
			return text, err
		}
		i := slices.IndexFunc(entries, func(e gitops.TreeEntry) bool { return len(name) > 2 && e.Name == name[:2] })
		if i < 0 {
			return nil, nil
		}
		tree = entries[i].OID
	}
}

// notesDraft creates the objects for one call of DraftNotes.
type notesDraft struct {
	bridge  *Bridge
	objects *Inspector
	made    []gitops.OID
}

func (d *notesDraft) make(kind string, content []byte) gitops.OID {
	id := d.bridge.Make(kind, content)
	d.made = append(d.made, id)
	return id
}

// notesFolder is a tree of notes. A note has the name of its commit. The first digits of the name may be folders,
// with two digits each (git-notes(1)). Other entries stay as they are.
type notesFolder struct {
	draft   *notesDraft
	tree    gitops.OID // the previous tree; empty if there was none
	entries map[string]gitops.TreeEntry
	below   map[string]*notesFolder // the folders that were read
}

// notesInFolder is the number of notes in a folder above which they move to folders below it, because each change of
// a folder writes the whole folder again.
const notesInFolder = 256

func (d *notesDraft) folder(tree gitops.OID) *notesFolder {
	return &notesFolder{draft: d, tree: tree, below: map[string]*notesFolder{}}
}

func (f *notesFolder) load(ctx context.Context) error {
	if f.entries != nil {
		return nil
	}
	f.entries = map[string]gitops.TreeEntry{}
	if f.tree == "" {
		return nil
	}
	entries, err := f.draft.objects.Tree(ctx, f.tree)
	for _, e := range entries {
		f.entries[e.Name] = e
	}
	return err
}

// set replaces the content of the note whose name below this folder is rest. An empty content removes the note.
func (f *notesFolder) set(ctx context.Context, rest string, blob gitops.OID) error {
	if err := f.load(ctx); err != nil {
		return err
	}
	delete(f.entries, rest)
	if below := f.into(rest); below != nil {
		return below.set(ctx, rest[2:], blob)
	}
	if blob == "" {
		return nil
	}
	f.entries[rest] = gitops.TreeEntry{Name: rest, Entry: gitops.Entry{Mode: gitops.ModeFile, OID: blob}}
	if len(f.entries) > notesInFolder && len(rest) > 2 {
		return f.split(ctx, len(rest))
	}
	return nil
}

// into returns the folder below for a note, or nil if there is none.
func (f *notesFolder) into(rest string) *notesFolder {
	if len(rest) <= 2 {
		return nil
	}
	name := rest[:2]
	if f.below[name] == nil && f.entries[name].Folder() {
		f.below[name] = f.draft.folder(f.entries[name].OID)
	}
	return f.below[name]
}

// split moves notes, whose names have the given number of digits, into folders.
func (f *notesFolder) split(ctx context.Context, digits int) error {
	for _, e := range slices.Collect(maps.Values(f.entries)) {
		if _, err := hex.DecodeString(e.Name); err != nil || len(e.Name) != digits || e.Folder() {
			continue
		}
		if f.into(e.Name) == nil {
			f.below[e.Name[:2]] = f.draft.folder("")
		}
		if err := f.set(ctx, e.Name, e.OID); err != nil {
			return err
		}
	}
	return nil
}

// write creates the folder's tree, unless the folder is empty.
func (f *notesFolder) write() (gitops.OID, error) {
	if f.entries == nil {
		return f.tree, nil // the folder was not read
	}
	for name, below := range f.below {
		tree, err := below.write()
		if err != nil {
			return "", err
		}
		delete(f.entries, name)
		if tree != "" {
			f.entries[name] = gitops.TreeEntry{Name: name, Entry: gitops.Entry{Mode: gitops.ModeFolder, OID: tree}}
		}
	}
	if len(f.entries) == 0 {
		return "", nil
	}
	entries := slices.SortedFunc(maps.Values(f.entries), func(a, b gitops.TreeEntry) int { return cmp.Compare(a.SortKey(), b.SortKey()) })
	content, err := gitops.TreeBytes(entries)
	return f.draft.make("tree", content), err
}
