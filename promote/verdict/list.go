package verdict

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/decision"
	"github.com/git-airlock/git-airlock/promote/history"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Reviewable is a commit that waits, or one that was rejected, as the user reviews it. All its text is escaped, except
// the paths of Files.
type Reviewable struct {
	Number   int // stable, see [ledger.Numbers]
	State    review.State
	Commit   gitops.OID // the built commit; empty if it has not been built
	Inner    gitops.OID
	Subject  string
	Files    []gitops.Stat
	Findings []policy.Finding
	Needs    []gitops.OID // commits without which it does not apply, if it is blocked
	With     gitops.OID   // the merge with which it lands; empty if it lands by itself
	Reason   string
	By       string
	At       time.Time
	Before   gitops.OID // the commit with a verdict that it replaces, if it is changed

	word    review.Word
	of      gitops.OID            // the inner commit with a verdict that it replaces, also if it has a verdict itself
	looked  map[string]gitops.OID // the files that were looked at
	written string                // the author's date
}

// Added returns the number of added lines in text files.
func (r Reviewable) Added() (n int) {
	for _, f := range r.Files {
		n += max(0, f.Added)
	}
	return n
}

// Removed returns the number of removed lines in text files.
func (r Reviewable) Removed() (n int) {
	for _, f := range r.Files {
		n += max(0, f.Removed)
	}
	return n
}

// later reports whether a commit can be newer than the one with a number: it has a higher one, or none yet.
func (r *Reviewable) later(number int) bool { return r.Number == 0 || r.Number > number }

// List lists the commits that wait and the rejected ones, in the agent's order. It gives numbers to new ones, and changes
// nothing else.
func List(ctx context.Context, e *promote.Engine) ([]Reviewable, error) {
	q, err := open(ctx, e, Request{})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return q.list(ctx)
}

// list implements List.
func (q *request) list(ctx context.Context) ([]Reviewable, error) {
	results, err := q.Results()
	if err != nil {
		return nil, err
	}
	blocked, err := q.blockedByVerdicts(ctx)
	if err != nil {
		return nil, err
	}
	list := []Reviewable{}
	with := broughtBy(q.Links)
	for _, l := range q.listed() {
		r, err := q.reviewable(ctx, l)
		if err != nil {
			return nil, err
		}
		r.With = with[l.Commit]
		list = append(list, r)
	}
	if err := q.addFiles(ctx, list); err != nil {
		return nil, err
	}
	for i := range list {
		if v := results.Last(list[i].Commit); v != nil {
			list[i].Findings = v.Findings
		}
	}
	if err := q.number(list); err != nil {
		return nil, err
	}
	if err := q.pairChanged(ctx, list); err != nil {
		return nil, err
	}
	for i := range list {
		_, needs := blocked[list[i].Inner]
		list[i].State = review.StateOf(list[i].word, needs, list[i].Before != "")
	}
	addNeeds(list, blocked, func(r Reviewable) bool {
		return r.State == review.StateRejected || r.State == review.StateUndone || r.State == review.StateAsked || r.State == review.StateBlocked
	})
	return list, q.addApprovedNeeds(ctx, list)
}

// addApprovedNeeds adds to each approved commit the commits without a verdict that it needs.
func (q *request) addApprovedNeeds(ctx context.Context, list []Reviewable) error {
	held, approved := map[gitops.OID]bool{}, false
	for _, r := range list {
		if held[r.Inner] = q.Verdicts.Holds(r.Inner); r.State == review.StateApproved {
			approved = true
		}
	}
	if !q.Verdicts.Asks || !approved {
		return nil
	}
	blocked, err := q.blocked(ctx, held)
	maps.DeleteFunc(blocked, func(id gitops.OID, _ []string) bool { return q.Verdicts.Holds(id) })
	addNeeds(list, blocked, func(r Reviewable) bool { return r.State != review.StateApproved })
	return err
}

// pairChanged finds, for commits with verdicts that are gone, the commits that replace them: those with the same subject, or else those with
// the same change, or else those with the same author's date, which git commit --amend and git rebase keep. A
// commit that has a verdict itself is not changed, but no other commit replaces the same one.
func (q *request) pairChanged(ctx context.Context, list []Reviewable) error {
	gone := decision.Replaced(q.Decisions, q.Ledger, q.all, q.left)
	gone = slices.DeleteFunc(gone, func(g ledger.Reviewed) bool { return g.Commit == "" })
	if len(gone) == 0 {
		return nil
	}
	numbers, err := ledger.ReadNumbers(q.e.Dir())
	if err != nil {
		return err
	}
	gone, last, err := q.lastForms(ctx, gone, numbers)
	if err != nil {
		return err
	}
	changed := false
	patches, err := q.innerPatches(ctx, gone, list)
	// Recorded pairs come first: the forms of a commit that has landed since are gone, too, and can have the same subject.
	recorded := func(g ledger.Reviewed, r Reviewable) bool { return g.Inner == last[numbers.Before[r.Inner]] }
	for _, same := range slices.Insert(likenesses(patches, numbers), 0, recorded) {
		for i := range list {
			r := &list[i]
			if r.of != "" {
				continue
			}
			n := slices.IndexFunc(gone, func(g ledger.Reviewed) bool { return same(g, *r) && (r.word == "" || r.later(numbers.Of[g.Inner])) })
			if n < 0 {
				continue
			}
			if r.of = gone[n].Inner; r.word == "" {
				r.Before, r.looked = gone[n].Commit, both(gone[n].Paths, r.looked)
			}
			changed = numbers.Replace(r.Inner, r.of) || changed
			gone = slices.Delete(gone, n, n+1)
		}
	}
	if changed && !q.e.Repo.Dry {
		_ = numbers.Write(q.e.Dir()) // else a later list finds the same
	}
	return err
}

// lastForms returns one form of each gone commit, which is gone in several forms if the agent has amended it several times: the last form that
// the user has given a verdict or read in full. A comparison with this form shows all that the user has not read. last maps each form to that one.
func (q *request) lastForms(ctx context.Context, gone []ledger.Reviewed, n ledger.Numbers) (forms []ledger.Reviewed, last map[gitops.OID]gitops.OID, err error) {
	var seen []gitops.OID
	for _, r := range gone {
		if r.Word == review.Seen && n.Before[r.Inner] != "" {
			seen = append(seen, r.Commit)
		}
	}
	there, err := q.e.Repo.Present(ctx, seen) // the user's git gc may have removed some
	if err != nil {
		return nil, nil, err
	}
	files, err := q.e.Repo.Bare().AllStats(ctx, there)
	at := map[gitops.OID]int{}
	for _, r := range gone {
		i, later := at[n.Before[r.Inner]]
		if !later {
			i, forms = len(forms), append(forms, r)
		}
		all, known := files[r.Commit]
		paths := both(forms[i].Paths, r.Paths)
		if r.Word != review.Seen || known && len(unseen(&r, all)) == 0 {
			forms[i] = r
		}
		forms[i].Paths, at[r.Inner] = paths, i
	}
	last = map[gitops.OID]gitops.OID{}
	for id, i := range at {
		last[id] = forms[i].Inner
	}
	return forms, last, err
}

// likenesses returns the ways in which a commit can be like the one that it replaces, the most certain first. patches are the patch-ids of
// inner commits. An agent can make several commits in one second. So the author's date alone counts only for a commit that came later.
func likenesses(patches map[gitops.OID]string, n ledger.Numbers) []func(ledger.Reviewed, Reviewable) bool {
	return []func(ledger.Reviewed, Reviewable) bool{
		func(g ledger.Reviewed, r Reviewable) bool { return g.Subject == r.Subject },
		func(g ledger.Reviewed, r Reviewable) bool {
			return patches[g.Inner] != "" && patches[g.Inner] == patches[r.Inner]
		},
		func(g ledger.Reviewed, r Reviewable) bool { return g.Written == r.written && r.later(n.Of[g.Inner]) },
	}
}

// innerPatches returns the patch-ids of gone commits and of the commits of a list that have no verdict. The outer commits can have other
// changes: the first one after a rebase also undoes what landed before.
func (q *request) innerPatches(ctx context.Context, gone []ledger.Reviewed, list []Reviewable) (map[gitops.OID]string, error) {
	var ids []gitops.OID
	for _, r := range list {
		if r.word == "" {
			ids = append(ids, r.Inner)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	for _, g := range gone {
		ids = append(ids, g.Inner)
	}
	inside := q.Inside.Quarantine.WithMemory(q.Inside.Memory)
	there, err := inside.Present(ctx, ids)
	if err != nil {
		return nil, err
	}
	return inside.PatchIDs(ctx, there)
}

// listed returns the commits that have not landed, in the agent's order, with rejected ones that were left out when later
// ones landed.
func (q *request) listed() []quarantine.Link {
	var all []quarantine.Link
	for _, id := range q.left {
		known := slices.ContainsFunc(q.all, func(l quarantine.Link) bool { return l.Commit == id })
		if r := q.Decisions.ReviewOf(id); !known && r != nil && r.Word.LeavesOut() {
			all = append(all, quarantine.Link{Commit: id})
		} else if i := slices.IndexFunc(q.Plan.Earlier, func(a history.Aside) bool { return a.Commit == id }); i >= 0 {
			all = append(all, q.Plan.Earlier[i].Link)
		}
	}
	return append(all, q.all[len(q.Plan.Earlier):]...)
}

// broughtBy maps the commits that only a later parent of a merge brings to the first such merge of the agent's first-parent history. all are
// the commits that the newest one reaches and that have not landed, parents first.
func broughtBy(all []quarantine.Link) map[gitops.OID]gitops.OID {
	links, with := map[gitops.OID]quarantine.Link{}, map[gitops.OID]gitops.OID{}
	for _, l := range all {
		links[l.Commit] = l
	}
	var line []quarantine.Link
	if len(all) > 0 {
		for l := all[len(all)-1]; l.Commit != ""; l = links[decision.FirstParent(l)] {
			line = append(line, l)
		}
	}
	for _, merge := range slices.Backward(line) { // oldest first
		for todo := []gitops.OID{merge.Commit}; len(todo) > 0; {
			id := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if _, done := with[id]; !done && links[id].Commit != "" {
				with[id] = merge.Commit
				todo = append(todo, links[id].Parents...)
			}
		}
	}
	maps.DeleteFunc(with, func(id, merge gitops.OID) bool { return id == merge })
	return with
}

// reviewable reads one commit.
func (q *request) reviewable(ctx context.Context, l quarantine.Link) (Reviewable, error) {
	r := Reviewable{Inner: l.Commit, Commit: q.outerOf(l.Commit)}
	c, err := q.Inside.Inspector.Commit(ctx, l.Commit)
	if err != nil {
		return r, err
	}
	r.Subject = c.Subject()
	if v := q.Decisions.ReviewOf(l.Commit); v != nil {
		r.word, r.By, r.At, r.Reason, r.looked = v.Word, gitops.Text(v.By).String(), v.At, gitops.Text(v.Reason).String(), v.Paths
	} else if q.Plan.Drops(l.Commit) {
		r.word = review.Reject // by promote --drop
	}
	_, r.written = gitops.SplitIdent(c.Author)
	return r, nil
}

// addFiles adds the changed files to the commits of a list: those of the outer commits, or of the inner ones that have none. It starts a
// few git processes for all commits together.
func (q *request) addFiles(ctx context.Context, list []Reviewable) error {
	var outer, inner []gitops.OID
	for _, r := range list {
		if r.Commit != "" {
			outer = append(outer, r.Commit)
		}
	}
	there, err := q.e.Repo.Present(ctx, outer)
	if err != nil {
		return err
	}
	for i, r := range list {
		if !slices.Contains(there, r.Commit) { // the user's git gc may have removed a rejected commit
			list[i].Commit, inner = "", append(inner, r.Inner)
		}
	}
	files, err := q.e.Repo.Bare().AllStats(ctx, there)
	if err != nil {
		return err
	}
	inside, err := q.Inside.Quarantine.AllStats(ctx, inner)
	for i := range list {
		r := &list[i]
		r.Files = files[r.Commit]
		if r.Commit == "" {
			r.Files = inside[r.Inner]
		}
		if r.word == review.Seen && len(r.Unseen()) > 0 {
			r.word = ""
		}
	}
	return err
}

// addNeeds adds to each blocked commit the earlier commits that are left out and that change one of its conflicting paths. If none of them
// changes such a path, it adds the first one that is left out.
func addNeeds(list []Reviewable, blocked map[gitops.OID][]string, out func(Reviewable) bool) {
	var left []Reviewable
	for i, r := range list {
		paths, needs := blocked[r.Inner]
		for _, x := range left {
			if needs && touches(x, r, paths) {
				list[i].Needs = append(list[i].Needs, x.Inner)
			}
		}
		if needs && len(left) > 0 && len(list[i].Needs) == 0 {
			list[i].Needs = []gitops.OID{left[0].Inner}
		}
		if out(r) {
			left = append(left, r)
		}
	}
}

// touches reports whether a commit changes one of the paths, or, if there are none, a path that another commit changes.
func touches(x, other Reviewable, paths []string) bool {
	wanted := gitops.SetOf(paths...)
	if len(paths) == 0 {
		for _, s := range other.Files {
			wanted[s.Path] = true
		}
	}
	return slices.ContainsFunc(x.Files, func(s gitops.Stat) bool { return wanted[s.Path] })
}
