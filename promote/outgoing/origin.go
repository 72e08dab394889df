package outgoing

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/airlock"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/operation"
	"github.com/git-airlock/git-airlock/promote/review"
)

// origins maps ids and keys (see keysOf) to agents' commits. It finds the agents' commits that a commit without a note is, or may be a
// rewritten form of.
type origins map[string][]*gitops.Noted

// originsOf reads all agents' commits, unless each commit of the list has a note.
func originsOf(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store, all []gitops.Noted) (origins, error) {
	if !slices.ContainsFunc(all, func(n gitops.Noted) bool { return n.Note == "" }) {
		return nil, nil
	}
	noted, unnoted, err := agentsCommits(ctx, repo, airlocks)
	found, built := origins{}, map[string]bool{} // built has the keys of noted commits with their inner commits
	for i, n := range noted {
		for _, key := range keysOf(n) {
			found[key] = append(found[key], &noted[i])
			built[key+only(fields(n.Note)["Inner-Commit"])] = true
		}
	}
	for i, n := range unnoted {
		found[string(n.ID)] = []*gitops.Noted{&unnoted[i]}
		for _, key := range keysOf(n) {
			if inner := only(fields(n.Note)["Inner-Commit"]); inner == "" || !built[key+inner] { // a commit that was built again has the note
				found[key] = append(found[key], &unnoted[i])
			}
		}
	}
	return found, err
}

// agentsCommits returns all agents' commits: those with a note, and those without one.
func agentsCommits(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store) (noted, unnoted []gitops.Noted, err error) {
	ids, err := repo.NotedIDs(ctx, promote.NotesRef)
	if err != nil {
		return nil, nil, err
	}
	if noted, err = repo.Noted(ctx, promote.NotesRef, gitops.Names(ids), "--no-walk=unsorted"); err != nil {
		return nil, nil, err
	}
	unnoted, err = withoutNote(ctx, repo, airlocks, noted)
	return noted, unnoted, err
}

// withoutNote returns the agents' commits that have no note, because they were undone, rejected, dropped or built again. Each gets a
// note with the little that is known. noted are those with a note.
func withoutNote(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store, noted []gitops.Noted) ([]gitops.Noted, error) {
	known, err := known(ctx, repo, airlocks)
	if err != nil {
		return nil, err
	}
	for _, n := range noted {
		delete(known, n.ID)
	}
	list, err := repo.Noted(ctx, promote.NotesRef, gitops.Names(slices.Sorted(maps.Keys(known))), "--no-walk=unsorted")
	for i, n := range list {
		list[i].Note = fmt.Sprintf("Airlock-Version: 1\nAirlock-Commit: %s\nAirlock-Inner-Commit: %s\n", n.ID, known[n.ID])
	}
	return list, err
}

// known maps the outer commits that a verdict, a ref or an airlock here names to their inner commits, which may be empty.
func known(ctx context.Context, repo *gitops.Repository, airlocks airlock.Store) (map[gitops.OID]gitops.OID, error) {
	inner := map[gitops.OID]gitops.OID{}
	reviewed, err := repo.NotedIDs(ctx, review.NotesRef)
	if err != nil {
		return nil, err
	}
	for _, id := range reviewed {
		inner[id] = ""
	}
	refs, err := repo.Refs(ctx, "refs/airlock")
	if err != nil {
		return nil, err
	}
	inspector := quarantine.Inspect(ctx, repo.Git)
	defer inspector.Close()
	for name, id := range refs {
		if path.Base(path.Dir(name)) == "rejected" {
			inner[id] = ""
		}
		if path.Base(name) != operation.Ref {
			continue
		}
		chain, err := operation.Read(ctx, inspector, id)
		if err != nil {
			return nil, err
		}
		for _, o := range chain {
			for _, p := range o.Landed {
				inner[p.Outer] = p.Inner
			}
		}
	}
	ids, err := airlocks.IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		pairs, err := ledger.Made(airlocks.Dir(id))
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			inner[p.Outer] = p.Inner
		}
	}
	return inner, nil
}

// keysOf returns two texts, of which a rewritten commit has one in common with its original. An amend with another message keeps author, tree
// and parents, and these are certain: a commit that has them makes the same change. A rebase keeps author and subject.
func keysOf(n gitops.Noted) []string {
	return []string{n.Author + "\x00tree " + string(n.Tree) + n.Parents, n.Author + "\x00subject " + n.Subject}
}

// of returns the commits whose notes are about n: n itself, or all commits that can be its original.
func (o origins) of(n gitops.Noted) []*gitops.Noted {
	if n.Note != "" {
		return []*gitops.Noted{&n}
	}
	for _, key := range append([]string{string(n.ID)}, keysOf(n)...) {
		if found := o[key]; found != nil {
			return found
		}
	}
	return nil
}

// narrow leaves, of several commits that can be the original, those that make the same change as the rewritten commit, if there are any. It is
// the same if each file has the same mode and content before and after it, as after a rebase onto commits that change other files.
func narrow(ctx context.Context, repo *gitops.Repository, may map[gitops.OID][]*gitops.Noted) error {
	ids := map[gitops.OID]bool{}
	for id, list := range may {
		if len(list) < 2 {
			continue
		}
		ids[id] = true
		for _, n := range list {
			ids[n.ID] = true
		}
	}
	if len(ids) == 0 {
		return nil
	}
	changes, err := changesOf(ctx, repo, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return ctx.Err() // the repository may lack objects, or have too many; then all have to be approved
	}
	for id, list := range may {
		same := func(n *gitops.Noted) bool { return changes[id] != "" && changes[n.ID] == changes[id] }
		if len(list) > 1 && slices.ContainsFunc(list, same) {
			may[id] = slices.DeleteFunc(slices.Clone(list), func(n *gitops.Noted) bool { return !same(n) })
		}
	}
	return nil
}

// changesLimit bounds the bytes that are read of changes.
const changesLimit = 64 << 20

// changesOf returns a text for the change of each commit since its first parent: the modes, blobs and paths of the files.
func changesOf(ctx context.Context, repo *gitops.Repository, commits []gitops.OID) (map[gitops.OID]string, error) {
	args := []string{"diff-tree", "--stdin", "-r", "--root", "--diff-merges=first-parent", "--ignore-submodules=none", "--no-renames", "--raw", "--no-abbrev", "-z"}
	records, err := repo.Records(ctx, gitops.Call{Args: args, Stdin: strings.NewReader(gitops.Lines(commits)), Limit: changesLimit})
	changes, at := map[gitops.OID]string{}, gitops.OID("")
	for i := 0; i < len(records); i++ {
		if strings.HasPrefix(records[i], ":") && i+1 < len(records) {
			changes[at] += records[i] + "\x00" + records[i+1] + "\x00"
			i++
		} else {
			at = gitops.OID(records[i])
		}
	}
	return changes, err
}
