package decision

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Team reads the verdicts that reviewers have written into the notes of pending commits.
type Team struct {
	Repo      *gitops.Repository // required
	Inside    Inside             // required
	Reviewers []string           // their addresses
}

// Add adds the verdicts to the decisions, and stores the decisions in dir if they changed. A reviewer's verdict counts if it is newer than the
// verdict in the decisions. A commit that the user has undone stays undone.
func (team Team) Add(ctx context.Context, dir string, d ledger.Decisions, pending []ledger.Pair) (ledger.Decisions, error) {
	if len(team.Reviewers) == 0 || len(pending) == 0 {
		return d, nil
	}
	notes, err := team.Repo.Noted(ctx, review.NotesRef, gitops.Names(ledger.Outers(pending)), "--no-walk=unsorted")
	if err != nil {
		return d, err
	}
	changed := false
	for _, n := range notes {
		v, found := newest(review.Parse(n.Note), n, team.Reviewers)
		i := slices.IndexFunc(pending, func(t ledger.Pair) bool { return t.Outer == n.ID })
		if !found || i < 0 || !counts(v, d.ReviewOf(pending[i].Inner)) {
			continue
		}
		about, err := team.Inside.About(ctx, pending[i].Inner)
		if err != nil {
			return d, err
		}
		parent, err := team.Inside.Parent(ctx, pending[i].Inner)
		if err != nil {
			return d, err
		}
		r := about[0]
		r.Verdict = review.Verdict{Version: v.Version, Word: v.Word, By: v.By, At: ledger.Timestamp(v.At), Commit: n.ID, Inner: pending[i].Inner, Tree: n.Tree, Reason: v.Reason}
		if present := d.ReviewOf(pending[i].Inner); present != nil {
			r.Paths, r.Number = present.Paths, present.Number
		}
		d, changed = d.Review(r, parent), true
	}
	if !changed {
		return d, nil
	}
	return d, d.Write(dir)
}

// newest returns the newest verdict of a reviewer in the note of a commit. A line that names another commit was copied.
func newest(lines []review.Verdict, of gitops.Noted, reviewers []string) (v review.Verdict, found bool) {
	for _, l := range lines {
		if l.Word != review.Seen && (l.Commit == "" || l.Commit == of.ID || l.Tree == of.Tree) && slices.ContainsFunc(reviewers, l.IsBy) {
			v, found = l, true
		}
	}
	return v, found
}

// counts reports whether a reviewer's verdict replaces the present one.
func counts(v review.Verdict, present *ledger.Reviewed) bool {
	return present == nil || present.Word == review.Seen || present.Word != review.Undone && ledger.Timestamp(v.At).After(present.At)
}
