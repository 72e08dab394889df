// Package decision applies the user's decisions in a promotion cycle: amended commits take them over, and the notes of
// pending commits show them.
package decision

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Follow lets new commits take over the verdicts of commits that are gone, if they make the same change in the same place with the
// same message. tip is the agent's newest commit, and links are the commits that it reaches and that have not landed, without those that
// were left out when later ones landed. changed reports whether it changed a verdict.
func Follow(ctx context.Context, in Inside, d ledger.Decisions, l *ledger.Ledger, tip gitops.OID, links []quarantine.Link) (_ ledger.Decisions, changed bool, err error) {
	left, err := in.LeftOut(ctx, l, tip)
	if err != nil {
		return d, false, err
	}
	gone := Replaced(d, l, links, left)
	if len(gone) == 0 {
		return d, false, nil
	}
	for _, id := range left { // the agent may have gone back to one that another commit had replaced
		if slices.ContainsFunc(links, func(l quarantine.Link) bool { return l.Commit == id }) {
			continue
		}
		link := quarantine.Link{Commit: id}
		if parent, err := in.Parent(ctx, id); err == nil && parent != "" {
			link.Parents = []gitops.OID{parent}
		}
		links = append(slices.Clip(links), link)
	}
	fresh := slices.DeleteFunc(slices.Clone(links), func(l quarantine.Link) bool { return d.ReviewOf(l.Commit) != nil })
	ids := quarantine.Commits(fresh)
	for _, r := range gone {
		if r.Digest == "" {
			ids = append(ids, r.Inner)
		}
	}
	digests, err := in.digests(ctx, ids)
	if err != nil {
		return d, false, err
	}
	d.Reviewed = slices.Clone(d.Reviewed)
	for i := range gone {
		if gone[i].Digest == "" {
			gone[i].Digest, changed = cmp.Or(digests[gone[i].Inner], tooLarge), true
			d.ReviewOf(gone[i].Inner).Digest = gone[i].Digest
		}
	}
	for _, link := range fresh {
		digest := digests[link.Commit]
		i := slices.IndexFunc(gone, func(r ledger.Reviewed) bool { return digest != "" && r.Digest == digest })
		if i < 0 {
			continue
		}
		d, changed = d.Forget(gone[i].Inner), true
		gone[i].Inner, gone[i].Noted = link.Commit, ""
		d = d.Review(gone[i], FirstParent(link))
		gone = slices.Delete(gone, i, i+1)
	}
	return d, changed, nil
}

// tooLarge stands for the digest of a commit whose diff is too large. No other commit takes over a verdict on such a commit.
const tooLarge = "-"

// LeftOut returns the commits that were left out when later ones landed and that the agent's newest commit still reaches. After a rebase or
// a reset, the agent's history may have none of them, or copies.
func (in Inside) LeftOut(ctx context.Context, l *ledger.Ledger, tip gitops.OID) ([]gitops.OID, error) {
	left := l.LeftOut()
	if len(left) == 0 {
		return nil, nil
	}
	gone, err := in.Quarantine.Unreached(ctx, left, []gitops.OID{tip})
	return slices.DeleteFunc(left, func(id gitops.OID) bool { return slices.Contains(gone, id) }), err
}

// Replaced returns the verdicts on commits that have not landed and that the agent's history does not have: they are neither among the links
// nor among left, the result of [Inside.LeftOut].
func Replaced(d ledger.Decisions, l *ledger.Ledger, links []quarantine.Link, left []gitops.OID) []ledger.Reviewed {
	there := gitops.SetOf(append(quarantine.Commits(links), left...)...) // a rejected one stays rejected
	return slices.DeleteFunc(slices.Clone(d.Reviewed), func(r ledger.Reviewed) bool { return there[r.Inner] || l.Has(r.Inner) })
}

// FirstParent returns the first parent of an inner commit, or empty for a root commit.
func FirstParent(l quarantine.Link) gitops.OID {
	if len(l.Parents) == 0 {
		return ""
	}
	return l.Parents[0]
}

// Inside reads inner commits.
type Inside struct {
	Quarantine *quarantine.Store
	Inspector  *quarantine.Inspector // of the quarantine
	Memory     int64                 // bytes that git may use
}

// About returns, for each inner commit, an entry with the data that identifies the commit, and without a verdict.
func (in Inside) About(ctx context.Context, inner ...gitops.OID) ([]ledger.Reviewed, error) {
	var all []ledger.Reviewed
	for _, id := range inner {
		c, err := in.Inspector.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		r := ledger.Reviewed{Verdict: review.Verdict{Inner: id}, Subject: c.Subject()}
		_, r.Written = gitops.SplitIdent(c.Author)
		all = append(all, r)
	}
	return all, nil
}

// Parent returns the first parent of an inner commit, or empty for a root commit.
func (in Inside) Parent(ctx context.Context, inner gitops.OID) (gitops.OID, error) {
	c, err := in.Inspector.Commit(ctx, inner)
	if err != nil || len(c.Parents) == 0 {
		return "", err
	}
	return c.Parents[0], nil
}

// digests returns the digests of inner commits, without those of commits with a diff that is too large.
func (in Inside) digests(ctx context.Context, inner []gitops.OID) (map[gitops.OID]string, error) {
	digests := map[gitops.OID]string{}
	return digests, in.Quarantine.WithMemory(in.Memory).Patches(ctx, inner, func(id gitops.OID, diff []byte) error {
		c, err := in.Inspector.Commit(ctx, id)
		if err == nil {
			digests[id] = review.Digest(c.Message, diff)
		}
		return err
	})
}

// PatchIDs returns the patch-ids of the outer commits with a verdict that the notes do not have yet. Commits without a patch have no entry.
func PatchIDs(ctx context.Context, repo *gitops.Repository, d ledger.Decisions, known ledger.GateResults) (map[gitops.OID]string, error) {
	ids := map[gitops.OID]string{}
	var unknown []gitops.OID
	for _, r := range d.Reviewed {
		for _, v := range r.Owed() {
			if patch, found := known.PatchOf(v.Commit); found {
				ids[v.Commit] = patch
			} else if v.Commit != "" {
				unknown = append(unknown, v.Commit)
			}
		}
	}
	computed, err := repo.PatchIDs(ctx, unknown)
	maps.Copy(ids, computed)
	return ids, err
}

// Written holds the notes of verdicts that a cycle writes, and the decisions after that.
type Written struct {
	Decisions ledger.Decisions  // to store once the notes are written
	Changed   bool              // Decisions differ from the stored ones
	Notes     []quarantine.Note // for [review.NotesRef]
}

// Patches computes the patch-ids of commits that are built and not delivered yet. *[quarantine.Bridge] implements it.
type Patches interface {
	PatchIDs(ctx context.Context, commits []gitops.OID) (map[gitops.OID]string, error)
}

// Writer makes the notes of verdicts. Every field except Tip is required.
type Writer struct {
	Inspector *quarantine.Inspector                 // of the outer repository
	Tip       gitops.OID                            // the present notes commit; empty if there is none
	Patches   func() (map[gitops.OID]string, error) // returns the result of [PatchIDs]
	Fresh     Patches
	Decisions ledger.Decisions
	Pending   []ledger.Pair
}

// Write returns the notes of new verdicts. If a pending commit was built again, Write copies the note of its former outer commit to the new
// one. A verdict on a commit that has not been built is kept until it is.
func (by Writer) Write(ctx context.Context) (w Written, err error) {
	w.Decisions = by.Decisions
	w.Decisions.Reviewed = slices.Clone(w.Decisions.Reviewed)
	for i := range w.Decisions.Reviewed {
		w.Decisions.Reviewed[i].Earlier = slices.Clone(w.Decisions.Reviewed[i].Earlier)
	}
	texts := map[gitops.OID]string{}
	ids, err := by.Patches()
	if err == nil {
		ids, err = w.setBuilt(ctx, by.Fresh, ids, by.Pending)
	}
	for i := range w.Decisions.Reviewed {
		r := &w.Decisions.Reviewed[i]
		for _, v := range r.Owed() {
			if v.Commit == "" {
				continue
			}
			if c, err := by.Inspector.Commit(ctx, v.Commit); err == nil { // a git gc may have removed a commit that is not pending any more
				v.Tree = c.Tree
			}
			v.Patch, w.Changed = ids[v.Commit], true
			if err == nil {
				err = by.addLine(ctx, *v, texts)
			}
		}
		r.Earlier = slices.DeleteFunc(r.Earlier, func(v review.Verdict) bool { return v.Commit != "" })
		r.Unwritten = r.Unwritten && r.Commit == ""
	}
	for _, t := range by.Pending {
		r := w.Decisions.ReviewOf(t.Inner)
		if r == nil || err != nil {
			continue
		}
		if r.Commit != t.Outer {
			text, fresh := texts[r.Commit]
			if !fresh && r.Commit != "" {
				text, err = by.noteOf(ctx, r.Commit)
			}
			if text != "" {
				texts[t.Outer] = text
			}
			r.Commit, r.Noted, w.Changed = t.Outer, "", true
		}
		if r.Word != review.Seen && r.Noted != t.Outer {
			r.Noted, w.Changed = t.Outer, true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		w.Notes = append(w.Notes, quarantine.Note{Commit: id, Text: texts[id]})
	}
	return w, err
}

// setBuilt sets the outer commits of verdicts on commits that had not been built and are pending now, and adds their patch-ids.
func (w Written) setBuilt(ctx context.Context, fresh Patches, ids map[gitops.OID]string, pending []ledger.Pair) (map[gitops.OID]string, error) {
	var built []gitops.OID
	for _, t := range pending {
		r := w.Decisions.ReviewOf(t.Inner)
		if r == nil {
			continue
		}
		for _, v := range r.Owed() {
			if v.Commit == "" {
				v.Commit, built = t.Outer, append(built, t.Outer)
			}
		}
	}
	if len(built) == 0 {
		return ids, nil
	}
	more, err := fresh.PatchIDs(ctx, slices.Compact(built))
	ids = maps.Clone(ids)
	maps.Copy(ids, more)
	return ids, err
}

// addLine adds the line of a verdict to the new note of its outer commit.
func (by Writer) addLine(ctx context.Context, v review.Verdict, texts map[gitops.OID]string) error {
	line, err := v.Line()
	if err != nil {
		return err
	}
	text, begun := texts[v.Commit]
	if !begun {
		text, err = by.noteOf(ctx, v.Commit)
	}
	texts[v.Commit] = review.Add(text, line)
	return err
}

// noteOf returns the note with the verdicts on an outer commit, or empty.
func (by Writer) noteOf(ctx context.Context, outer gitops.OID) (string, error) {
	if by.Tip == "" {
		return "", nil
	}
	text, err := by.Inspector.NoteOf(ctx, by.Tip, outer)
	return string(text), err
}

// Waiting counts the pending commits that the agent must fix, and the others that may not land.
func Waiting(v review.Verdicts, pending []ledger.Pair) (asked, others int) {
	for _, t := range pending {
		switch {
		case v.Words[t.Inner] == review.Fix:
			asked++
		case v.Holds(t.Inner):
			others++
		}
	}
	return asked, others
}
