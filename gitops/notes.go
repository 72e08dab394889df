package gitops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// notedLimit bounds the bytes that are read of many commits with their notes.
const notedLimit = 256 << 20

// Noted is a commit with its note.
type Noted struct {
	ID, Tree OID
	Parents  string // separated by spaces
	Author   string // name, address and date
	Subject  string // not escaped
	Note     string // empty if there is none
}

// notedFields is the format of git log for a Noted. A note that git shows has no NUL.
const notedFields = "%H%x00%T%x00%P%x00%an <%ae> %at%x00%s%x00%N"

// Noted lists the commits that the revisions reach, newest first, each with its note in a ref. Options of git log can limit them. If ref is
// empty, no notes are read. Revisions that do not exist are ignored.
func (g *Git) Noted(ctx context.Context, ref string, revisions []string, options ...string) ([]Noted, error) {
	if len(revisions) == 0 {
		return nil, nil // git log would list HEAD
	}
	args := []string{"log", "-z", "--no-show-signature", "--no-color", "--no-decorate", "--no-notes", "--format=" + notedFields, "--ignore-missing", "--stdin"}
	if ref != "" {
		args = append(args, "--notes="+ref)
	}
	records, err := g.Records(ctx, Call{Args: append(args, options...), Limit: notedLimit,
		Stdin: strings.NewReader(strings.Join(revisions, "\n") + "\n")})
	const each = 6
	if err == nil && len(records)%each != 0 {
		err = unexpected("git log")
	}
	if err != nil {
		return nil, err
	}
	var list []Noted
	for f := range slices.Chunk(records, each) {
		list = append(list, Noted{OID(f[0]), OID(f[1]), f[2], f[3], f[4], f[5]})
	}
	return list, nil
}

func unexpected(command string) error { return fmt.Errorf("%s printed something unexpected", command) }

// NotedIDs returns the commits that have a note in a ref.
func (g *Git) NotedIDs(ctx context.Context, ref string) ([]OID, error) {
	_, ids, err := g.listNotes(ctx, ref)
	return ids, err
}

// listNotes returns the blobs of all notes of a ref, and the objects that have them.
func (g *Git) listNotes(ctx context.Context, ref string) (blobs, objects []OID, err error) {
	text, err := g.Output(ctx, "notes", "--ref="+ref, "list")
	for line := range strings.Lines(text) {
		blob, object, _ := strings.Cut(strings.TrimSpace(line), " ")
		blobs, objects = append(blobs, OID(blob)), append(objects, OID(object))
	}
	return blobs, objects, err
}

// AllNotes returns all notes of a ref, by the objects that have them. It cuts a note that is longer than [NoteLimit].
func (g *Git) AllNotes(ctx context.Context, ref string) (map[OID]string, error) {
	blobs, objects, err := g.listNotes(ctx, ref)
	if err != nil {
		return nil, err
	}
	notes := map[OID]string{}
	return notes, g.Blobs(ctx, blobs, NoteLimit, func(n int, head []byte, _ int64) error {
		notes[objects[n]] = string(head)
		return nil
	})
}

// NotesOn returns the notes on objects of any kind, by ref and by object, and the values of the refs. What does not exist is missing in the
// maps. One git process reads everything.
func (g *Git) NotesOn(ctx context.Context, on map[string][]OID) (notes map[string]map[OID]string, tips map[string]OID, err error) {
	var ask strings.Builder
	var places []notePlace
	notes, tips = map[string]map[OID]string{}, map[string]OID{}
	for _, ref := range slices.Sorted(maps.Keys(on)) {
		notes[ref] = map[OID]string{}
		places = append(places, notePlace{ref: ref})
		fmt.Fprintf(&ask, "%s\n", ref)
		for _, id := range on[ref] {
			for _, path := range notePaths(id) {
				places = append(places, notePlace{ref, id})
				fmt.Fprintf(&ask, "%s:%s\n", ref, path)
			}
		}
	}
	var out bytes.Buffer
	if err := g.Look(ctx, Call{Args: []string{"cat-file", "--batch"}, Stdin: strings.NewReader(ask.String()), Stdout: &out, Limit: notedLimit}); err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		id, kind, content, err := nextObject(&out)
		switch {
		case err != nil:
			return nil, nil, err
		case p.object == "" && kind == "commit":
			tips[p.ref] = id
		case p.object != "" && kind == "blob":
			notes[p.ref][p.object] = content
		}
	}
	return notes, tips, nil
}

// notePlace is one question to git cat-file: a path at which the note of an object can be, or, without an object, the ref itself.
type notePlace struct {
	ref    string
	object OID
}

// nextObject reads an answer of git cat-file --batch. kind is empty for an object that does not exist.
func nextObject(out *bytes.Buffer) (id OID, kind, content string, err error) {
	head, err := out.ReadString('\n')
	words := strings.Fields(head)
	if err != nil || len(words) < 2 {
		return "", "", "", unexpected("git cat-file")
	}
	last := words[len(words)-1]
	if last == "missing" {
		return "", "", "", nil
	}
	size, err := strconv.Atoi(last)
	if err != nil || size >= out.Len() || len(words) != 3 {
		return "", "", "", unexpected("git cat-file")
	}
	content = string(out.Next(size))
	out.Next(1) // a newline follows
	return OID(words[0]), words[1], content, nil
}

// NotesCommit is a commit that changes the notes of a ref.
type NotesCommit struct {
	Ref     string // required
	From    OID    // the parent, which is the present value of the ref; empty if the ref does not exist
	Who     string // the author, required
	Message string
}

// SetNotes replaces the notes of several commits. If another process has moved the ref meanwhile, SetNotes fails.
func (g *Git) SetNotes(ctx context.Context, c NotesCommit, notes map[OID]string) error {
	var changes strings.Builder
	for _, id := range slices.Sorted(maps.Keys(notes)) {
		fmt.Fprintf(&changes, "N inline %s\ndata %d\n%s\n", id, len(notes[id]), notes[id])
	}
	return g.commitNotes(ctx, c, changes.String())
}

// MergeNotes merges a commit of notes into c.From, moves the ref to the merge commit, and returns this commit. It does not check the value
// that the ref had before, and the ref may have moved again when MergeNotes returns. The merge has the notes of c.From with some changes:
// added maps paths to blobs, and changed maps paths to texts.
func (g *Git) MergeNotes(ctx context.Context, c NotesCommit, theirs OID, added map[string]OID, changed map[string]string) (OID, error) {
	var changes strings.Builder
	fmt.Fprintf(&changes, "merge %s\n", theirs)
	for _, path := range slices.Sorted(maps.Keys(added)) {
		fmt.Fprintf(&changes, "M 100644 %s %s\n", added[path], path)
	}
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		fmt.Fprintf(&changes, "M 100644 inline %s\ndata %d\n%s\n", path, len(changed[path]), changed[path])
	}
	changes.WriteString("get-mark :1\n")
	var out bytes.Buffer
	if err := g.importNotes(ctx, c, changes.String(), &out, "--force"); err != nil {
		return "", err
	}
	return ParseOID(strings.TrimSpace(out.String()))
}

// commitNotes makes a commit of notes. The changes have the format of git-fast-import(1). The error is [ErrRefMoved] if another
// process has moved or locked the ref.
func (g *Git) commitNotes(ctx context.Context, c NotesCommit, changes string) error {
	// Without --force, git refuses to move the ref to a commit that does not contain its present value.
	err := g.importNotes(ctx, c, changes, nil)
	if Status(err) == 1 {
		return fmt.Errorf("%w: %w", ErrRefMoved, err)
	}
	return err
}

// importNotes is commitNotes with options for git fast-import. The new commit has the mark 1, and out gets what the changes ask for.
func (g *Git) importNotes(ctx context.Context, c NotesCommit, changes string, out io.Writer, options ...string) error {
	parent := ""
	if c.From != "" {
		parent = fmt.Sprintf("from %s\n", c.From)
	}
	in := fmt.Sprintf("commit %s\nmark :1\nauthor %s now\ncommitter %s now\ndata %d\n%s\n%s%sdone\n", c.Ref, c.Who, c.Who, len(c.Message), c.Message, parent, changes)
	args := append([]string{"fast-import", "--quiet", "--done", "--date-format=now"}, options...)
	// In one pack, which git keeps until the ref has moved, the objects are safe from a git gc at the same time. Loose ones are not.
	return g.Durable().Configured("fastimport.unpackLimit=1").Change(ctx, Call{Args: args, Stdin: strings.NewReader(in), Stdout: out})
}

// Everybody who can push notes can write them, so readers of notes read only a part of a note that is too long.
const (
	NoteLimit = 4 << 20 // bytes of one note
	NoteLines = 1000    // lines of a note in which each line stands alone
)

// Note returns the note of an object in a ref, empty if there is none.
func (g *Git) Note(ctx context.Context, ref string, id OID) (string, error) {
	blob, err := g.Output(ctx, "notes", "--ref="+ref, "list", string(id))
	if Status(err) == 1 {
		return "", nil // there is no note
	}
	if err != nil {
		return "", err
	}
	var note string
	err = g.Blobs(ctx, []OID{OID(strings.TrimSpace(blob))}, NoteLimit, func(_ int, head []byte, _ int64) error {
		note = string(head)
		return nil
	})
	return note, err
}

// SetNote replaces the note of one object of any kind. SetNotes is for commits only, because git fast-import adds notes only to commits.
func (g *Git) SetNote(ctx context.Context, c NotesCommit, id OID, text string) error {
	var changes strings.Builder
	paths := notePaths(id)
	for _, path := range paths {
		fmt.Fprintf(&changes, "D %s\n", path)
	}
	fmt.Fprintf(&changes, "M 100644 inline %s\ndata %d\n%s\n", paths[1], len(text), text)
	return g.commitNotes(ctx, c, changes.String())
}

// notePaths returns the paths that the note of an object can have. Git may turn the first digits of the object name into folders, two digits
// each (git-notes(1)). It does so twice at most here.
func notePaths(id OID) []string {
	name := string(id)
	return []string{name, name[:2] + "/" + name[2:], name[:2] + "/" + name[2:4] + "/" + name[4:]}
}
