package outgoing

import (
	"context"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Notes returns the notes in a ref on commits and on all commits that can be their originals.
func Notes(ctx context.Context, repo *gitops.Repository, ref string, made []Commit) (map[gitops.OID]string, error) {
	notes := map[gitops.OID]string{}
	for _, c := range made {
		for _, id := range c.Names() {
			notes[id] = ""
		}
	}
	list, err := repo.Noted(ctx, ref, gitops.Names(slices.Sorted(maps.Keys(notes))), "--no-walk=unsorted")
	for _, n := range list {
		notes[n.ID] = n.Note
	}
	return notes, err
}

func addVerdicts(ctx context.Context, repo *gitops.Repository, made []Commit, who Reviewers) error {
	notes, err := Notes(ctx, repo, review.NotesRef, made)
	for i := range made {
		if err == nil {
			err = made[i].judge(ctx, notes, who)
		}
	}
	return err
}

// judge sets the original of a commit, and the verdicts. The author, date and subject by which an original is found are the agent's, who
// can give several commits the same. The commit is therefore approved only if each commit that can be its original is. Otherwise the
// original is one that nobody has reviewed, or else one that is not approved.
func (c *Commit) judge(ctx context.Context, notes map[gitops.OID]string, who Reviewers) error {
	own, err := who.verdicts(ctx, notes[c.ID])
	if err != nil {
		return err
	}
	c.join(own)
	approved := Commit{Original: c.origins[0].last()}
	var unapproved *Commit
	for _, o := range c.origins {
		as := Commit{Original: o.last()}
		verdicts, err := who.verdicts(ctx, o.noteWith(c.ID, notes))
		if err != nil {
			return err
		}
		for _, v := range verdicts {
			if c.covers(o, v) {
				as.Verdicts = append(as.Verdicts, v)
			}
		}
		switch {
		case as.Last().Word == review.Approve:
			approved.Verdicts = append(approved.Verdicts, as.Verdicts...)
		case unapproved == nil || len(as.Verdicts) == 0:
			unapproved = &as
		}
		if unapproved != nil && len(unapproved.Verdicts) == 0 {
			break
		}
	}
	if unapproved == nil {
		slices.SortStableFunc(approved.Verdicts, func(a, b review.Verdict) int { return a.At.Compare(b.At) })
		unapproved = &approved
	}
	if c.Verdicts = unapproved.Verdicts; unapproved.Original != c.ID {
		c.Original = unapproved.Original
	}
	return nil
}

// join adds the commits that verdicts in the note of a commit are about, if they are other inner commits. Git has copied the notes of a
// rewritten commit then, or joined those of squashed ones, of which not all need a note in refs/notes/airlock.
func (c *Commit) join(own []review.Verdict) {
	var more []origin
	for _, v := range own {
		known := func(o origin) bool { return slices.Contains(o.names, v.Commit) || string(v.Inner) == o.inner }
		if v.Commit != "" && v.Inner != "" && !slices.ContainsFunc(slices.Concat(c.origins, more), known) {
			more = append(more, origin{[]gitops.OID{c.ID, v.Commit}, string(v.Inner)})
		}
	}
	about := func(v review.Verdict) bool { return v.Commit == c.ID }
	if first := c.origins[0]; len(more) > 0 && first.last() == c.ID && first.inner == "" && !slices.ContainsFunc(own, about) {
		c.origins = nil // only the copied lines made it known
	}
	c.origins = append(c.origins, more...)
}

// last returns the id in the note of an original, or its own.
func (o origin) last() gitops.OID { return o.names[len(o.names)-1] }

// noteWith returns the notes on a commit and on an original.
func (o origin) noteWith(id gitops.OID, notes map[gitops.OID]string) string {
	of := notes[id]
	for _, name := range o.names {
		if name != id {
			of += "\n" + notes[name]
		}
	}
	return of
}

// covers reports whether a line in the note of a commit or of an original is about the commit. A line that names another commit was copied,
// by git for a rewritten commit or by a promotion cycle for a commit that was built again. It counts if the inner commit is the same, or, if
// that is not known, the tree. Without a commit, and by its tree, a line counts only if there is one original: it does not say of which it is.
func (c Commit) covers(o origin, v review.Verdict) bool {
	several := len(c.origins) > 1
	switch {
	case v.Word == review.Seen || v.Commit == "":
		return v.Word != review.Seen && !several
	case v.Commit == c.ID || slices.Contains(o.names, v.Commit):
		return true
	case v.Inner != "" && o.inner != "":
		return string(v.Inner) == o.inner
	}
	return v.Tree == c.Tree && !several
}
