package outgoing

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Commit is an agent's commit that a push would send.
type Commit struct {
	ID       gitops.OID
	Original gitops.OID // the landed commit that the user has amended or rebased; empty if it is this one
	Tree     gitops.OID
	Subject  gitops.Text
	Note     map[string]string // the trailers of its note or of the note on Original, by name without "Airlock-"; the first of each name
	Verdicts []review.Verdict  // of people whose verdicts count, oldest first
	Reverted gitops.OID        // the user's commit in the range that reverts it; empty if there is none
}

// Last returns the newest verdict, or one without a word if there is none.
func (c Commit) Last() review.Verdict {
	if len(c.Verdicts) == 0 {
		return review.Verdict{}
	}
	return c.Verdicts[len(c.Verdicts)-1]
}

// Passes reports whether the commit may be pushed: the newest verdict approves it, or the user has reverted it.
func (c Commit) Passes() bool { return c.Last().Word == review.Approve || c.Reverted != "" }

// State returns the state of the commit for a list.
func (c Commit) State() review.State {
	switch c.Last().Word {
	case review.Reject:
		return review.StateRejected
	case review.Fix:
		return review.StateAsked
	case review.Approve:
		return review.StateApproved
	}
	return review.StateLanded
}

// Range describes commits that some revisions reach and others do not.
type Range struct {
	Tips, Without []gitops.OID
	// Remote is the name of a remote: what its remote-tracking refs reach is left out. "*" stands for all remotes.
	Remote string
	// Single leaves out everything but the tips.
	Single bool
}

// RangeOf returns the commits that updates send to a remote.
func RangeOf(updates []Update, remote string) Range {
	r := Range{Remote: remote}
	for _, u := range updates {
		if u.Local == "" {
			continue
		}
		r.Tips = append(r.Tips, u.Local)
		if u.Remote != "" {
			r.Without = append(r.Without, u.Remote)
		}
	}
	return r
}

// Find returns the agents' commits in a range, oldest first.
func Find(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store, in Range, who Reviewers) ([]Commit, error) {
	if len(in.Tips) == 0 {
		return nil, nil
	}
	all, err := repo.Noted(ctx, promote.NotesRef, in.revisions(), in.options()...)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	origins, err := originsOf(ctx, repo, airlocks, all)
	if err != nil {
		return nil, err
	}
	var made []Commit
	for _, n := range all {
		c := Commit{ID: n.ID, Tree: n.Tree, Subject: gitops.Text(n.Subject)}
		if o := origins.of(n); o != nil {
			c.Note, c.Original = fields(o.Note), o.ID
			if named, err := gitops.ParseOID(c.Note["Commit"]); err == nil {
				c.Original = named
			}
			if c.Original == c.ID {
				c.Original = ""
			}
			if c.Note["Version"] != "" { // the note is one of ours
				made = append(made, c)
			}
		}
	}
	return made, gitops.Together(
		func() error { return addVerdicts(ctx, repo, made, who) },
		func() error { return reverted(ctx, repo, in, made) },
	)
}

func (in Range) revisions() (lines []string) {
	lines = gitops.Names(in.Tips)
	for _, id := range in.Without {
		lines = append(lines, "^"+string(id))
	}
	return lines
}

// options returns the options of git log that leave out what the remote has.
func (in Range) options() []string {
	switch {
	case in.Single:
		return []string{"--no-walk=unsorted"}
	case in.Remote == "*":
		return []string{"--not", "--remotes"}
	case in.Remote == "" || strings.ContainsAny(in.Remote, "*?[\\"):
		return nil
	}
	return []string{"--not", "--remotes=" + in.Remote}
}

// fields returns the fields of a note on a landed commit. A note without a version is somebody's own.
func fields(note string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(note) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		name, ours := strings.CutPrefix(key, "Airlock-")
		if _, again := all[name]; ok && ours && !again {
			all[name] = value
		}
	}
	return all
}

// Notes returns the notes in a ref on commits and on their originals.
func Notes(ctx context.Context, repo *gitops.Repository, ref string, made []Commit) (map[gitops.OID]string, error) {
	var ids []string
	for _, c := range made {
		ids = append(ids, string(c.ID))
		if c.Original != "" {
			ids = append(ids, string(c.Original))
		}
	}
	list, err := repo.Noted(ctx, ref, ids, "--no-walk=unsorted")
	notes := map[gitops.OID]string{}
	for _, n := range list {
		notes[n.ID] = n.Note
	}
	return notes, err
}

// addVerdicts adds the verdicts to commits.
func addVerdicts(ctx context.Context, repo *gitops.Repository, made []Commit, who Reviewers) error {
	notes, err := Notes(ctx, repo, review.NotesRef, made)
	if err != nil {
		return err
	}
	for i, c := range made {
		of := notes[c.ID]
		if c.Original != "" {
			of += "\n" + notes[c.Original]
		}
		for _, v := range review.Parse(of) {
			counts, err := who.counts(ctx, v)
			if err != nil {
				return err
			}
			if counts && c.covers(v) {
				made[i].Verdicts = append(made[i].Verdicts, v)
			}
		}
	}
	return nil
}

// covers reports whether a line in the note of a commit, or of its original, is about the commit. A line that names another commit was copied,
// by git for a rewritten commit or by a promotion cycle for a commit that was built again. It counts if the tree or the inner commit is the
// same.
func (c Commit) covers(v review.Verdict) bool {
	switch v.Commit {
	case "", c.ID, c.Original:
		return v.Word != review.Seen
	}
	return v.Word != review.Seen && (v.Tree == c.Tree || v.Inner != "" && string(v.Inner) == c.Note["Inner-Commit"])
}

// reverted marks the commits that a commit of the user reverts, unless the user has reverted that commit in turn.
func reverted(ctx context.Context, repo *gitops.Repository, in Range, made []Commit) error {
	if len(made) == 0 || in.Single {
		return nil
	}
	reverts, err := repo.Reverts(ctx, in.revisions(), in.options()...)
	for _, c := range made {
		delete(reverts, c.ID) // an agent's message decides nothing
	}
	by := map[gitops.OID][]gitops.OID{}
	for _, id := range slices.Sorted(maps.Keys(reverts)) {
		for _, of := range reverts[id] {
			by[of] = append(by[of], id)
		}
	}
	for i, c := range made {
		made[i].Reverted = lastRevert(by, c.ID, len(reverts))
	}
	return err
}

// lastRevert returns a commit that reverts id and that no commit reverts in turn. depth bounds the chain, since a message can
// name any commit.
func lastRevert(by map[gitops.OID][]gitops.OID, id gitops.OID, depth int) gitops.OID {
	for _, r := range by[id] {
		if depth > 0 && lastRevert(by, r, depth-1) == "" {
			return r
		}
	}
	return ""
}
