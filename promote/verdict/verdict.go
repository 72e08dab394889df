// Package verdict applies the user's verdicts in a promotion cycle: amended commits take them over, and the notes of
// pending commits show them.
package verdict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// followed bounds the number of new commits whose changes are compared with those of amended commits in one cycle.
const followed = 200

// Follow lets new commits take over the verdicts of commits that are gone, if they make the same change with the same
// message. links are the commits that have not landed. changed reports whether it changed a verdict.
func Follow(ctx context.Context, in Inside, d ledger.Decisions, l *ledger.Ledger, links []quarantine.Link) (_ ledger.Decisions, changed bool, err error) {
	gone, fresh := Replaced(d, l, links), 0
	for _, link := range links {
		if len(gone) == 0 || d.ReviewOf(link.Commit) != nil {
			continue
		}
		if fresh++; fresh > followed {
			break
		}
		digest, err := in.Digest(ctx, link.Commit)
		if err != nil {
			return d, changed, err
		}
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

// Replaced returns the verdicts on commits that have not landed and that are not among the links. A rejected commit that
// was left out when later ones landed does not count as gone.
func Replaced(d ledger.Decisions, l *ledger.Ledger, links []quarantine.Link) []ledger.Reviewed {
	there := map[gitops.OID]bool{}
	for _, link := range links {
		there[link.Commit] = true
	}
	for _, id := range l.LeftOut() { // a rejected one stays rejected
		if r := d.ReviewOf(id); r != nil && r.Word.LeavesOut() {
			there[id] = true
		}
	}
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

// About returns what identifies an inner commit in a verdict, and its parents. Without a digest, no other commit takes the
// verdict over.
func (in Inside) About(ctx context.Context, inner gitops.OID, digest bool) (r ledger.Reviewed, parents []gitops.OID, err error) {
	c, err := in.Inspector.Commit(ctx, inner)
	if err != nil {
		return r, nil, err
	}
	r.Inner, r.Subject = inner, c.Subject()
	_, r.Written = gitops.SplitIdent(c.Author)
	if digest {
		r.Digest, err = in.Digest(ctx, inner)
	}
	return r, c.Parents, err
}

// Digest returns the digest of an inner commit, or empty if its diff is too large.
func (in Inside) Digest(ctx context.Context, inner gitops.OID) (string, error) {
	c, err := in.Inspector.Commit(ctx, inner)
	if err != nil {
		return "", err
	}
	var diff bytes.Buffer
	err = in.Quarantine.WithMemory(in.Memory).Patch(ctx, inner, &diff)
	if errors.Is(err, gitops.ErrLargePatch) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return review.Digest(c.Message, &diff)
}

// Carry copies the notes with verdicts to the outer commits that pending commits have now. who is the author of that
// change. changed reports whether there was anything to copy.
func Carry(ctx context.Context, repo *gitops.Repository, who string, d ledger.Decisions, pending []ledger.Pair) (_ ledger.Decisions, changed bool, err error) {
	d.Reviewed = slices.Clone(d.Reviewed)
	for _, t := range pending {
		r := d.ReviewOf(t.Inner)
		if r == nil || r.Commit == t.Outer {
			continue
		}
		if r.Commit != "" {
			note, err := repo.Note(ctx, review.NotesRef, r.Commit)
			if err == nil && note != "" {
				err = repo.SetNote(ctx, review.NotesRef, who, t.Outer, note)
			}
			if err != nil {
				return d, changed, fmt.Errorf("copy the verdicts on %s: %w", t.Outer, err)
			}
		}
		r.Commit, r.Noted, changed = t.Outer, "", true
	}
	return d, changed, nil
}

// Noted records that the provenance notes of some commits name their reviewers. changed reports whether that is new.
func Noted(d ledger.Decisions, pending []ledger.Pair) (changed bool) {
	for _, t := range pending {
		if r := d.ReviewOf(t.Inner); r != nil && r.Word != review.Seen && r.Noted != t.Outer {
			r.Noted, changed = t.Outer, true
		}
	}
	return changed
}

// Waiting counts the pending commits that the agent must fix, and the others that may not land.
func Waiting(g review.Gate, pending []ledger.Pair) (asked, others int) {
	for _, t := range pending {
		switch {
		case g.Words[t.Inner] == review.Fix:
			asked++
		case g.Holds(t.Inner):
			others++
		}
	}
	return asked, others
}
