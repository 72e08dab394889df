package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote/record"
	"github.com/git-airlock/git-airlock/words"
)

// maxCommits bounds the commits of a run that are made again.
const maxCommits = 10_000

// State describes a commit that was made again.
type State string

// The states.
const (
	Same     State = "same"     // the tree is the one in the record
	Merged   State = "merged"   // its change was merged with the tree of another commit
	Differs  State = "differs"  // the tree is not the one in the record
	Conflict State = "conflict" // its change and the tree of the other commit change the same lines
)

// Commit is a commit of the run.
type Commit struct {
	Recorded gitops.OID // the landed commit
	Want     gitops.OID // its tree in the record
	Made     gitops.OID // empty if it was not made
	Tree     gitops.OID // the tree of Made; if the commit was not made, the wrong tree
	Subject  gitops.Text
	State    State
	Paths    []string // in conflict
}

// Result lists the commits that were made again.
type Result struct {
	Onto    gitops.OID // what the first commit was made on
	Commits []Commit   // up to the first one that could not be made
	Left    int        // commits of the run that did not land
}

// Tip returns the last commit, if all were made.
func (r Result) Tip() gitops.OID {
	if n := len(r.Commits); n > 0 && r.State() != Differs && r.State() != Conflict {
		return r.Commits[n-1].Made
	}
	return ""
}

// State returns the state of all commits.
func (r Result) State() State {
	all := Same
	for _, c := range r.Commits {
		if c.State != Same && all != Differs && all != Conflict {
			all = c.State
		}
	}
	return all
}

// Request describes a replay.
type Request struct {
	Repo *gitops.Repository
	Run  record.Run
	// Onto is the commit to make the commits on. If it is empty, they get the parents that they had.
	Onto gitops.OID
	// Committer is the name and address of the committer of changed commits, or empty if it is not known.
	Committer string
}

// ErrNoCommitter reports that a commit must be changed, and that its committer is not known.
var ErrNoCommitter = errors.New("no identity to make commits with")

// Lacking reports that the repository does not have a commit without which nothing can be made, or not all of its files.
type Lacking struct {
	Commit gitops.OID
	Cause  error // why the files of the commit could not be fetched, if the repository has the commit itself
}

func (l *Lacking) Error() string {
	if l.Cause != nil {
		return fmt.Sprintf("not all files of the commit %.12s are in this repository, and they cannot be fetched: %s", l.Commit, gitops.Text(words.OneLine(l.Cause)))
	}
	return fmt.Sprintf("the commit %.12s, on which the run's commits were made, is not in this repository", l.Commit)
}

// Landed returns the landed commits of a record, oldest first, and the number of the others.
func Landed(run record.Run) (landed []record.Commit, left int, err error) {
	all, err := run.Commits()
	if err != nil && !errors.Is(err, record.ErrAbsent) {
		return nil, 0, err
	}
	for _, c := range all {
		switch {
		case c.State != record.Landed:
			left++
		case c.Outer == "" || c.Tree == "":
			return nil, 0, fmt.Errorf("the record does not have the name of each landed commit")
		default:
			landed = append(landed, c)
		}
	}
	if len(landed) > maxCommits || len(landed) < run.Manifest.Landed {
		return nil, 0, fmt.Errorf("the record lists %d landed commits of %d, and at most %d can be made again", len(landed), run.Manifest.Landed, maxCommits)
	}
	return landed, left, nil
}

// limits bound what is received.
func limits() inner.Limits {
	l := inner.DefaultLimits
	l.Pack, l.Time = math.MaxInt64, 10*time.Minute
	return l
}

// original is a commit as it landed.
type original struct {
	gitops.Commit
	there bool // the repository has it
}

// Make makes the commits of a run again in a workshop. Nothing of it is visible before [workshop.Publish].
func (w *workshop) Make(ctx context.Context, r Request) (Result, error) {
	landed, left, err := Landed(r.Run)
	if err != nil || len(landed) == 0 {
		return Result{Onto: r.Onto, Left: left}, err
	}
	originals, err := w.originals(ctx, r, landed)
	if err != nil {
		return Result{}, err
	}
	b := builder{workshop: w, request: r, originals: map[gitops.OID]original{}, images: map[gitops.OID]gitops.OID{}}
	result := Result{Onto: r.Onto, Left: left}
	if r.Onto == "" && len(originals[0].Parents) > 0 {
		result.Onto = originals[0].Parents[0]
	}
	for i, c := range landed {
		made := Commit{Recorded: c.Outer, Want: c.Tree, Subject: c.Subject, State: Differs, Tree: originals[i].Tree}
		if made.Tree == c.Tree {
			if made, err = b.make(ctx, made, originals[i]); err != nil {
				return result, err
			}
		}
		if result.Commits = append(result.Commits, made); made.Made == "" {
			break
		}
	}
	if w.tip, w.known = result.Tip(), w.bases; r.Onto != "" {
		w.known = append(slices.Clip(w.bases), r.Onto)
	}
	return result, nil
}

// builder makes commits one after the other.
type builder struct {
	*workshop
	request   Request
	originals map[gitops.OID]original   // by their ids in the record
	images    map[gitops.OID]gitops.OID // the made commit of each id in the record
}

// make makes one commit on the images of its parents.
func (b *builder) make(ctx context.Context, c Commit, o original) (Commit, error) {
	b.originals[c.Recorded] = o
	made := o.Commit
	made.Parents = nil
	for _, p := range o.Parents {
		image, err := b.image(ctx, p)
		if err != nil {
			return c, err
		}
		if !slices.Contains(made.Parents, image) {
			made.Parents = append(made.Parents, image)
		}
	}
	if b.request.Onto != "" && len(o.Parents) == 0 {
		made.Parents = []gitops.OID{b.request.Onto}
	}
	c.State = Same
	if err := b.merge(ctx, &c, &made, o); err != nil || c.State == Conflict {
		return c, err
	}
	c.Tree, c.Made = made.Tree, c.Recorded
	if !o.there || made.Tree != o.Tree || !slices.Equal(made.Parents, o.Parents) {
		if b.request.Committer == "" {
			return c, ErrNoCommitter
		}
		_, when := gitops.SplitIdent(o.Committer) // not the present time, so that a replay makes the same commits each time
		made.Committer = b.request.Committer + " " + when
		c.Made = b.bridge.Make("commit", made.Bytes())
	}
	b.images[c.Recorded] = c.Made
	return c, nil
}

// merge gives a commit its tree: the merge of its change with the tree of its first parent.
func (b *builder) merge(ctx context.Context, c *Commit, made *gitops.Commit, o original) error {
	if len(made.Parents) == 0 {
		return nil
	}
	var base gitops.OID
	var err error
	if len(o.Parents) == 0 {
		base = b.bridge.Make("tree", nil)
	} else if base, err = b.tree(ctx, o.Parents[0]); err != nil {
		return err
	}
	ours, err := b.tree(ctx, made.Parents[0])
	if err != nil || ours == base || ours == made.Tree {
		return err
	}
	c.State = Merged
	if made.Tree == base {
		made.Tree = ours
		return nil
	}
	tree, conflicts, err := b.bridge.Merge(ctx, quarantine.Merge{Base: base, Ours: ours, Theirs: made.Tree})
	if gitops.Crashed(err) {
		err = nil // what git cannot merge conflicts
	}
	if err == nil && tree == "" {
		c.State, c.Paths = Conflict, slices.Compact(slices.Sorted(slices.Values(conflicts)))
	}
	made.Tree = tree
	return err
}

// tree returns the tree of a commit. Only this package makes the names of commits that nobody has.
func (b *builder) tree(ctx context.Context, commit gitops.OID) (gitops.OID, error) {
	if o, ok := b.originals[commit]; ok {
		return o.Tree, nil
	}
	c, err := b.across.Commit(ctx, commit)
	return c.Tree, err
}

// image returns the commit that takes the place of a parent. For a commit of the run, that is the commit made from it. For another commit, it is
// the image of the newest commit of the run in its history, or else the commit on which the run is made again.
func (b *builder) image(ctx context.Context, parent gitops.OID) (gitops.OID, error) {
	image, made := b.images[parent]
	switch {
	case made:
		return image, nil
	case b.request.Onto == "":
		return parent, nil
	}
	past, err := b.request.Repo.Output(ctx, "rev-list", "--topo-order", "--max-count="+fmt.Sprint(maxCommits), string(parent), "--not", string(b.bases[0]))
	if err != nil {
		return "", err
	}
	image = b.request.Onto
	for commit := range strings.FieldsSeq(past) {
		if found, made := b.images[gitops.OID(commit)]; made {
			image = found
			break
		}
	}
	b.images[parent] = image
	return image, nil
}
