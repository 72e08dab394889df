// Package decision applies the user's decisions in a promotion cycle: amended commits take them over, and the notes of
// pending commits show them.
package decision

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Follow lets new commits take over the verdicts of commits that are gone, if they make the same change with the same
// message. links are the commits that have not landed. changed reports whether it changed a verdict.
func Follow(ctx context.Context, in Inside, d ledger.Decisions, l *ledger.Ledger, links []quarantine.Link) (_ ledger.Decisions, changed bool, err error) {
	gone := Replaced(d, l, links)
	fresh := slices.DeleteFunc(slices.Clone(links), func(l quarantine.Link) bool { return d.ReviewOf(l.Commit) != nil })
	if len(gone) == 0 {
		return d, false, nil
	}
	var ids []gitops.OID
	for _, link := range fresh {
		ids = append(ids, link.Commit)
	}
	digests, err := in.Digests(ctx, ids)
	if err != nil {
		return d, false, err
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

// About returns what identifies inner commits in a verdict, in their order.
func (in Inside) About(ctx context.Context, inner ...gitops.OID) ([]ledger.Reviewed, error) {
	digests, err := in.Digests(ctx, inner)
	if err != nil {
		return nil, err
	}
	var all []ledger.Reviewed
	for _, id := range inner {
		c, err := in.Inspector.Commit(ctx, id)
		if err != nil {
			return nil, err
		}
		r := ledger.Reviewed{Verdict: review.Verdict{Inner: id}, Subject: c.Subject(), Digest: digests[id]}
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

// Digests returns the digests of inner commits, without those of commits with a diff that is too large. No other commit
// takes over the verdict on a commit without a digest.
func (in Inside) Digests(ctx context.Context, inner []gitops.OID) (map[gitops.OID]string, error) {
	digests := map[gitops.OID]string{}
	return digests, in.Quarantine.WithMemory(in.Memory).Patches(ctx, inner, func(id gitops.OID, diff []byte) error {
		c, err := in.Inspector.Commit(ctx, id)
		if err == nil {
			digests[id], err = review.Digest(c.Message, bytes.NewReader(diff))
		}
		return err
	})
}

// Carry copies the notes with verdicts to the outer commits that pending commits have now. who is the author of that
// change. changed reports whether there was anything to copy.
func Carry(ctx context.Context, repo *gitops.Repository, who string, d ledger.Decisions, pending []ledger.Pair) (_ ledger.Decisions, changed bool, err error) {
	from := map[gitops.OID]gitops.OID{}
	d.Reviewed = slices.Clone(d.Reviewed)
	for _, t := range pending {
		r := d.ReviewOf(t.Inner)
		if r == nil || r.Commit == t.Outer {
			continue
		}
		if r.Commit != "" {
			from[t.Outer] = r.Commit
		}
		r.Commit, r.Noted, changed = t.Outer, "", true
	}
	if len(from) == 0 {
		return d, changed, nil
	}
	if err := copyNotes(ctx, repo, who, from); err != nil {
		return d, changed, fmt.Errorf("copy verdicts: %w", err)
	}
	return d, changed, nil
}

// copyNotes copies the notes with verdicts to other commits.
func copyNotes(ctx context.Context, repo *gitops.Repository, who string, from map[gitops.OID]gitops.OID) error {
	tip, err := repo.Ref(ctx, review.NotesRef)
	if err != nil || tip == "" {
		return err
	}
	look := quarantine.Inspect(ctx, repo.Git)
	defer look.Close()
	notes := map[gitops.OID]string{}
	for to, id := range from {
		note, err := look.NoteOf(ctx, tip, id)
		if err != nil {
			return err
		}
		if len(note) > 0 {
			notes[to] = string(note)
		}
	}
	if len(notes) == 0 {
		return nil
	}
	return repo.SetNotes(ctx, review.NotesRef, tip, who, "airlock: copied to commits that were built again", notes)
}

// MarkNoted records in the decisions that the provenance notes of some commits name their reviewers. changed reports whether that is new.
func MarkNoted(d ledger.Decisions, pending []ledger.Pair) (changed bool) {
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
