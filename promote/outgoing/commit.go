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
	ID gitops.OID
	// Original is the landed commit that the user has amended or rebased; empty if it is this one. If several commits can be the original, it is
	// one that is not approved, if there is one.
	Original gitops.OID
	Tree     gitops.OID
	Subject  gitops.Text
	// Note has the trailers of its note or of the note on Original, by name without "Airlock-". It lacks those with several values.
	Note     map[string]string
	Verdicts []review.Verdict // of people whose verdicts count, on it and on Original, oldest first
	Reverted gitops.OID       // the user's commit in the range that reverts it; empty if there is none
	origins  []origin
}

// origin is an agent's commit that another one is or may be a rewritten form of.
type origin struct {
	names []gitops.OID // its own id, and the id in its note, which is another one if git copied the note
	inner string       // its inner commit; empty if it is not known
}

// Unsure reports whether several commits can be the original, and Original is one of them that is not approved.
func (c Commit) Unsure() bool {
	return len(c.origins) > 1 && c.Original != "" && c.Last().Word != review.Approve
}

// Names returns the ids of the commit and of all commits that can be its original.
func (c Commit) Names() []gitops.OID {
	ids := []gitops.OID{c.ID}
	for _, o := range c.origins {
		ids = append(ids, o.names...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
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
	may := map[gitops.OID][]*gitops.Noted{}
	for _, n := range all {
		may[n.ID] = origins.of(n)
	}
	if err := narrow(ctx, repo, may); err != nil {
		return nil, err
	}
	var made []Commit
	for _, n := range all {
		c := Commit{ID: n.ID, Tree: n.Tree, Subject: gitops.Text(n.Subject)}
		for _, o := range may[n.ID] {
			c.add(o)
		}
		if len(c.origins) > 0 {
			made = append(made, c)
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

// mostOrigins bounds the number of originals that are looked at. With more of them, only a verdict on the commit itself counts.
const mostOrigins = 100

// add adds an agent's commit that c is or may be a rewritten form of.
func (c *Commit) add(n *gitops.Noted) {
	values := fields(n.Note)
	if len(values["Version"]) == 0 { // somebody's own note
		return
	}
	if len(c.origins) >= mostOrigins {
		c.origins = append(c.origins[:mostOrigins], origin{names: []gitops.OID{c.ID}})
		return
	}
	common := map[string]string{}
	for name, list := range values {
		if value := only(list); len(c.origins) == 0 || c.Note[name] == value {
			common[name] = value
		}
	}
	c.Note = common
	c.origins = append(c.origins, originsIn(n.ID, values)...)
}

// originsIn returns the commits that the note of a commit names. It names several if git joined the notes of squashed commits.
func originsIn(id gitops.OID, values map[string][]string) (list []origin) {
	inner := only(values["Inner-Commit"])
	for _, text := range values["Commit"] {
		if named, err := gitops.ParseOID(text); err == nil {
			list = append(list, origin{slices.Compact([]gitops.OID{id, named}), inner})
		}
	}
	if list == nil {
		list = []origin{{[]gitops.OID{id}, inner}}
	}
	return list
}

// only returns the only value of a field, or empty if there are several.
func only(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// fields returns the values of the fields of a note on a landed commit.
func fields(note string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(note) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		name, ours := strings.CutPrefix(key, "Airlock-")
		if ok && ours && !slices.Contains(all[name], value) {
			all[name] = append(all[name], value)
		}
	}
	return all
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
