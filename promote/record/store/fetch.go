package store

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// Offer lists the refs of a remote below the prefix of records.
type Offer struct {
	New  []string // the refs of records that this repository does not have
	Left []string // other refs: those that cannot be records, or that would replace a record here
}

// offerLimit bounds the list of refs that a remote sends.
const offerLimit = 32 << 20

// Offered asks a remote for its records. It leaves out the sessions in mine, which belong to airlocks of this repository. Their records are made
// here: with a ref such as "<session>/999999999", a remote could keep the next run from being recorded.
func Offered(ctx context.Context, r *gitops.Repository, remote string, mine []string) (o Offer, err error) {
	here, err := r.Refs(ctx, strings.TrimSuffix(record.RefPrefix, "/"))
	if err != nil {
		return o, err
	}
	var out bytes.Buffer
	call := gitops.Call{Args: []string{"ls-remote", "--quiet", "--refs", remote, record.RefPrefix + "*"}, Stdout: &out, Limit: offerLimit}
	if err := r.Look(ctx, call); err != nil {
		return o, err
	}
	for line := range strings.Lines(out.String()) {
		id, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		session, _, isRecord := record.ParseRef(ref)
		at, known := here[ref]
		switch {
		case known && string(at) == id:
		case !isRecord || known || slices.Contains(mine, session):
			o.Left = append(o.Left, ref)
		default:
			o.New = append(o.New, ref)
		}
	}
	return o, nil
}

// Fetch creates refs with the values that they have in a remote. It removes those that are not commits, and returns them: a remote lists its refs
// without the types of their objects.
func Fetch(ctx context.Context, r *gitops.Repository, remote string, refs []string) (left []string, err error) {
	var specs []string
	for _, ref := range refs {
		specs = append(specs, ref+":"+ref)
	}
	if err := r.FetchRefs(ctx, remote, specs); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	call := gitops.Call{Args: []string{"for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", record.RefPrefix}, Stdout: &out}
	if err := r.Look(ctx, call); err != nil {
		return nil, err
	}
	fetched := gitops.SetOf(refs...)
	var removals []gitops.RefUpdate
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		if fields[0] != "commit" && fetched[fields[2]] {
			left = append(left, fields[2])
			removals = append(removals, gitops.RefUpdate{Ref: fields[2], Old: gitops.OID(fields[1])})
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return left, r.UpdateRefs(ctx, "airlock: not a record", removals...)
}
