package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Merged is what a merge did to one notes ref.
type Merged struct {
	Ref            string
	Added, Changed int // notes that are new here, and notes that got new lines
	Kept           int // notes that stay as they are, although the remote has another text
	// OwnVerdicts is the number of fetched notes with a verdict under the user's own address that the notes here do not have. If it is not 0, nothing
	// is merged: such a verdict would count as the user's, and whoever can push to the remote can write it.
	OwnVerdicts int
	// Left lists the notes of the remote that are left out, sorted by their objects. All others are merged.
	Left []Left
	// Fault is the reason why the whole ref of the remote is left out: it does not have the form of notes. It is nil if the ref has it.
	Fault error
	Moved bool // the ref here has another value now
}

// Left is a note of a remote that is left out.
type Left struct {
	On    gitops.OID
	Path  string // of the note in the tree of the remote's notes
	Known bool   // the notes here have a note on the same object, which stays
	Why   error
}

// User is the person who fetches.
type User struct {
	Name string // name and address; empty if they are not known
	// Mail is the address whose verdicts count as the user's. If it is empty, verdicts under every address are merged.
	Mail string
}

// merge merges fetched values into the refs of notes. It makes all merges first, and then moves all refs at once.
func merge(ctx context.Context, r *gitops.Repository, who User, refs []string, theirs map[string]gitops.OID) ([]Merged, error) {
	here, err := r.Refs(ctx, append([]string{promote.NotesRef}, refs...)...)
	if err != nil {
		return nil, err
	}
	described, err := notesAt(ctx, r, here[promote.NotesRef])
	if err != nil {
		return nil, fmt.Errorf("%s here: %w", promote.NotesRef, err)
	}
	var all []Merged
	var updates []gitops.RefUpdate
	for _, ref := range refs {
		m := merging{ref: ref, ours: here[ref], theirs: theirs[Fetched(ref)]}
		if ref == promote.EgressRef {
			m.described = described
		}
		to, err := m.merge(ctx, r, who)
		if fault, ok := errors.AsType[formError](err); ok {
			m.done.Fault, to, err = fault.error, m.ours, nil // the other refs are not at fault
		}
		if err != nil {
			return nil, fmt.Errorf("%s of the remote: %w", ref, err)
		}
		if m.done.Moved = to != m.ours; m.done.Moved {
			updates = append(updates, gitops.RefUpdate{Ref: ref, Old: m.ours, New: to})
		}
		all = append(all, m.done)
	}
	if len(updates) == 0 {
		return all, nil
	}
	return all, r.Durable().UpdateRefs(ctx, "airlock: fetch", updates...)
}

// merging is the merge of one ref.
type merging struct {
	ref          string
	ours, theirs gitops.OID
	described    map[gitops.OID]note   // objects on which the remote may not add notes
	added        map[string]gitops.OID // by their paths
	changed      map[string]string     // texts, by their paths
	done         Merged
}

// merge returns the merged commit.
func (m *merging) merge(ctx context.Context, r *gitops.Repository, who User) (gitops.OID, error) {
	m.done.Ref = m.ref
	if m.theirs == "" {
		return "", errGone
	}
	if m.ours != "" && r.IsAncestor(ctx, m.theirs, m.ours) {
		return m.ours, nil
	}
	theirs, err := notesIn(ctx, r, m.theirs)
	if err != nil {
		return "", err
	}
	ours, err := notesAt(ctx, r, m.ours)
	if err != nil {
		return "", fmt.Errorf("those here: %w", err)
	}
	if err := m.leaveOut(ctx, r, ours, theirs); err != nil {
		return "", err
	}
	if m.ref == review.NotesRef && who.Mail != "" {
		if m.done.OwnVerdicts, err = ownVerdicts(ctx, r, who.Mail, ours, theirs); err != nil || m.done.OwnVerdicts > 0 {
			return m.ours, err
		}
	}
	if m.ours == "" && len(m.done.Left) == 0 {
		m.done.Added = len(theirs)
		return m.theirs, nil
	}
	same, err := m.unite(ctx, r, ours, theirs)
	if err != nil {
		return "", err
	}
	slices.SortFunc(m.done.Left, func(a, b Left) int { return strings.Compare(string(a.On), string(b.On)) })
	if same && len(m.done.Left) == 0 && r.IsAncestor(ctx, m.ours, m.theirs) {
		return m.theirs, nil
	}
	if who.Name == "" {
		return "", ErrNobody
	}
	return r.MergeNotes(ctx, gitops.NotesCommit{Ref: Fetched(m.ref), From: m.ours, Who: who.Name, Message: "airlock: fetch"}, m.theirs, m.added, m.changed)
}

// leaveOut removes the notes from theirs that must not come here, or that readers could not read completely. Whoever can push to the remote can
// write one, and it must not keep the others from coming.
func (m *merging) leaveOut(ctx context.Context, r *gitops.Repository, ours, theirs map[gitops.OID]note) error {
	var unread []note // those that differ from ours
	for id, n := range theirs {
		our, known := ours[id]
		switch _, described := m.described[id]; {
		case described && !known:
			m.leave(theirs, n, false, errNothing)
		case our.blob != n.blob:
			unread = append(unread, n)
		}
	}
	large, err := unreadable(ctx, r, unread, OfLines(m.ref))
	for _, n := range unread {
		if why := large[n.path]; why != nil {
			_, known := ours[n.on()]
			m.leave(theirs, n, known, why)
		}
	}
	return err
}

// errNothing reports a note about the network on a commit whose provenance note came without one.
var errNothing = errors.New("the notes here say that the commit reached nothing")

// leave removes a note from theirs.
func (m *merging) leave(theirs map[gitops.OID]note, n note, known bool, why error) {
	delete(theirs, n.on())
	m.done.Left = append(m.done.Left, Left{On: n.on(), Path: n.path, Known: known, Why: why})
}

// notesAt returns the notes in a commit of our own notes ref. An empty name stands for a ref that does not exist, which has no notes.
func notesAt(ctx context.Context, r *gitops.Repository, at gitops.OID) (map[gitops.OID]note, error) {
	if at == "" {
		return map[gitops.OID]note{}, nil
	}
	return notesIn(ctx, r, at)
}

// ownVerdicts returns the number of notes of a remote with a verdict under an address that is not in our note on the same object.
func ownVerdicts(ctx context.Context, r *gitops.Repository, address string, ours, theirs map[gitops.OID]note) (count int, err error) {
	var pairs []gitops.OID // their note and our note in turn; their note twice where we have none
	for id, n := range theirs {
		if our, known := ours[id]; !known {
			pairs = append(pairs, n.blob, n.blob)
		} else if our.blob != n.blob {
			pairs = append(pairs, n.blob, our.blob)
		}
	}
	texts, err := read(ctx, r, pairs)
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(texts); i += 2 {
		here := ""
		if pairs[i] != pairs[i+1] {
			here = "\n" + texts[i+1]
		}
		own := func(line string) bool {
			verdicts := review.Parse(line)
			return len(verdicts) > 0 && verdicts[0].IsBy(address) && !strings.Contains(here, "\n"+line)
		}
		if slices.ContainsFunc(slices.Collect(strings.Lines(strings.TrimRight(texts[i], "\n")+"\n")), own) {
			count++
		}
	}
	return count, nil
}

// errGone reports that another fetch has removed what this one fetched.
var errGone = errors.New("another fetch runs at the same time")

// ErrNobody reports that the author of a merge is not known.
var ErrNobody = errors.New("a merge of notes needs your name")

// unite compares the notes of both sides. It reports whether the merged notes are those of the remote.
func (m *merging) unite(ctx context.Context, r *gitops.Repository, ours, theirs map[gitops.OID]note) (same bool, err error) {
	m.added, m.changed, same = map[string]gitops.OID{}, map[string]string{}, true
	var both [][2]note     // our note and theirs
	var pairs []gitops.OID // our note and their note in turn
	for id, n := range theirs {
		our, known := ours[id]
		if known && our.blob == n.blob {
			continue
		}
		if known {
			pairs, both = append(pairs, our.blob, n.blob), append(both, [2]note{our, n})
		} else {
			m.added[n.path] = n.blob
		}
	}
	for id := range ours {
		if _, known := theirs[id]; !known {
			same = false
		}
	}
	m.done.Added = len(m.added)
	texts, err := read(ctx, r, pairs)
	if err != nil {
		return false, err
	}
	for i, of := range both {
		text, err := m.united(texts[2*i], texts[2*i+1])
		if err != nil {
			m.leave(theirs, of[1], true, err)
			continue
		}
		if text != texts[2*i] {
			m.changed[of[0].path] = text
		} else if !OfLines(m.ref) {
			m.done.Kept++
		}
		same = same && text == texts[2*i+1]
	}
	m.done.Changed = len(m.changed)
	return same, nil
}

// errLines reports a note with so many lines that readers would not read all: the lines of a remote could hide those here.
var errLines = fmt.Errorf("more than %d lines", gitops.NoteLines)

// united returns the text of a note that both sides have: the lines of both, as cat_sort_uniq of git-notes(1) orders them, or our text.
func (m *merging) united(our, their string) (string, error) {
	if !OfLines(m.ref) {
		return our, nil
	}
	lines := slices.DeleteFunc(strings.Split(our+"\n"+their, "\n"), func(l string) bool { return l == "" })
	slices.Sort(lines)
	lines = slices.Compact(lines)
	text := strings.Join(lines, "\n") + "\n"
	switch {
	case len(lines) > gitops.NoteLines:
		return "", errLines
	case len(text) > gitops.NoteLimit:
		return "", errLarge
	}
	return text, nil
}
