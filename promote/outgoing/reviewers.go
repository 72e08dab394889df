package outgoing

import (
	"context"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Reviewers are the people whose verdicts count.
type Reviewers struct {
	User string // the user's address
	// Team reads the addresses of the reviewers whom the team's policy names. It is called when somebody else's verdict
	// is found.
	Team func(context.Context) ([]string, error)
}

func (r Reviewers) counts(ctx context.Context, v review.Verdict) (bool, error) {
	if v.IsBy(r.User) || r.Team == nil {
		return v.IsBy(r.User), nil
	}
	team, err := r.Team(ctx)
	return slices.ContainsFunc(team, v.IsBy), err
}

// verdicts returns the verdicts in a note that count, oldest first.
func (r Reviewers) verdicts(ctx context.Context, note string) (list []review.Verdict, err error) {
	for _, v := range review.Parse(note) {
		counts, err := r.counts(ctx, v)
		if err != nil {
			return nil, err
		}
		if counts {
			list = append(list, v)
		}
	}
	return list, nil
}

// patchIDs bounds the number of commits whose patch-ids are computed for one verdict. The ids are for other programs.
const patchIDs = 1000

// Record adds a verdict on commits to their notes. v has its word, author, time and reason.
func Record(ctx context.Context, repo *gitops.Repository, v review.Verdict, commits []Commit) error {
	from, err := repo.Ref(ctx, review.NotesRef)
	if err != nil || len(commits) == 0 {
		return err
	}
	var ids []gitops.OID
	for _, c := range commits {
		ids = append(ids, c.ID)
	}
	before, err := repo.Noted(ctx, review.NotesRef, gitops.Names(ids), "--no-walk=unsorted")
	if err != nil {
		return err
	}
	notes := map[gitops.OID]string{}
	for _, n := range before {
		notes[n.ID] = n.Note
	}
	patches, err := repo.PatchIDs(ctx, ids[:min(len(ids), patchIDs)])
	if err != nil {
		return err
	}
	for _, c := range commits {
		v.Commit, v.Tree, v.Inner, v.Patch = c.ID, c.Tree, gitops.OID(c.Note["Inner-Commit"]), patches[c.ID]
		line, err := v.Line()
		if err != nil {
			return err
		}
		notes[c.ID] = review.Add(notes[c.ID], line)
	}
	return repo.SetNotes(ctx, gitops.NotesCommit{Ref: review.NotesRef, From: from, Who: v.By, Message: "airlock: " + string(v.Word)}, notes)
}
