package exchange

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Offered lists the notes refs of a remote that have other values than here.
type Offered struct {
	Refs []string
	New  []string // the refs in Refs that do not exist here
}

// offerLimit bounds the list of refs that a remote sends.
const offerLimit = 1 << 20

// Offer asks a remote for its notes refs.
func Offer(ctx context.Context, r *gitops.Repository, remote string) (o Offered, err error) {
	here, err := r.Refs(ctx, NoteRefs...)
	if err != nil {
		return o, err
	}
	var out bytes.Buffer
	args := append([]string{"ls-remote", "--quiet", "--refs", remote}, NoteRefs...)
	if err := r.Look(ctx, gitops.Call{Args: args, Stdout: &out, Limit: offerLimit}); err != nil {
		return o, err
	}
	for line := range strings.Lines(out.String()) {
		id, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		// git ls-remote also lists longer refs that end with one of the names.
		if !slices.Contains(NoteRefs, ref) || string(here[ref]) == id {
			continue
		}
		o.Refs = append(o.Refs, ref)
		if here[ref] == "" {
			o.New = append(o.New, ref)
		}
	}
	return o, nil
}

// Checked makes git check the form of each object that it fetches.
const Checked = "fetch.fsckObjects=true"

// Spec returns the refspec with which a notes ref is fetched. It replaces a value that a killed fetch may have left.
func Spec(ref string) string { return "+" + ref + ":" + Fetched(ref) }

// Fetch gets notes refs of a remote and merges them into the refs here. Either all refs move that are not left out, or none. who is the author of the merges.
func Fetch(ctx context.Context, r *gitops.Repository, remote string, who User, refs []string) (merged []Merged, err error) {
	var specs []string
	for _, ref := range refs {
		specs = append(specs, Spec(ref))
	}
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx), r)) }()
	if err := r.Configured(Checked).FetchRefs(ctx, remote, specs); err != nil {
		return nil, err
	}
	theirs, err := r.Refs(ctx, fetched)
	if err != nil {
		return nil, err
	}
	err = gitops.RetryMoved(ctx, func() (err error) {
		merged, err = merge(ctx, r, who, refs, theirs)
		return err
	})
	return merged, err
}

// drop removes the refs below fetched.
func drop(ctx context.Context, r *gitops.Repository) error {
	at, err := r.Refs(ctx, fetched)
	if err != nil || len(at) == 0 {
		return err
	}
	var updates []gitops.RefUpdate
	for ref, id := range at {
		updates = append(updates, gitops.RefUpdate{Ref: ref, Old: id})
	}
	return r.UpdateRefs(ctx, "", updates...)
}
