package verdict

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Looked is a commit with those of its files that somebody has looked at.
type Looked struct {
	Inner gitops.OID
	Files []gitops.Stat
}

const (
	// pathsSeen bounds the files of one commit that are recorded as seen.
	pathsSeen = 2000
	// pathsOnLine bounds the bytes of paths on one line of a note: longer lines are ignored.
	pathsOnLine = 32 << 10
)

// See records that the user has looked at files of pending commits. It records the blob of each file, so that the file counts as unseen when
// it changes again. The verdicts on the commits stay as they are.
func See(ctx context.Context, e *promote.Engine, looked []Looked) error {
	if e.Repo.Dry || len(looked) == 0 {
		return nil
	}
	q, err := open(ctx, e, Request{Word: review.Seen})
	if err != nil {
		return err
	}
	defer q.Close()
	var notes []quarantine.Note
	changed := false
	for _, l := range looked {
		fresh := unseen(q.Decisions.ReviewOf(l.Inner), l.Files)
		if len(fresh) == 0 || !q.there(l.Inner) {
			continue
		}
		note, err := q.see(ctx, l.Inner, fresh)
		if err != nil {
			return err
		}
		if changed = true; note.Text != "" {
			notes = append(notes, note)
		}
	}
	if !changed {
		return nil
	}
	if err := q.note(ctx, notes); err != nil {
		return fmt.Errorf("write what was seen: %w", err)
	}
	return q.Decisions.Write(e.Dir())
}

// unseen returns the files that a verdict, which may be nil, does not record as seen, up to pathsSeen for each commit.
func unseen(r *ledger.Reviewed, files []gitops.Stat) map[string]gitops.OID {
	fresh := map[string]gitops.OID{}
	for _, f := range files {
		path := gitops.ToText(f.Path)
		if r != nil && (r.Paths[path] == f.Blob || len(r.Paths)+len(fresh) >= pathsSeen) || len(fresh) >= pathsSeen {
			continue
		}
		fresh[path] = f.Blob
	}
	return fresh
}

// see adds seen files to the decisions, and returns the new note of the outer commit. Its text is empty if there is no such
// commit.
func (q *request) see(ctx context.Context, inner gitops.OID, fresh map[string]gitops.OID) (note quarantine.Note, err error) {
	outer, now := q.outerOf(inner), ledger.Timestamp(q.Now)
	seen := review.Verdict{Word: review.Seen, By: q.Settings.User.String(), At: now, Commit: outer, Inner: inner}
	r := q.Decisions.ReviewOf(inner)
	if r == nil {
		about, err := q.Inside.About(ctx, inner)
		if err != nil {
			return note, err
		}
		r = &about[0]
		r.Verdict = seen
	}
	r.Paths = both(r.Paths, fresh)
	q.Decisions = q.Decisions.Replace(*r)
	if outer == "" {
		return note, nil
	}
	_, inspector, err := q.Bridge(ctx)
	if err != nil {
		return note, err
	}
	note.Commit = outer
	if note.Text, err = q.noteOf(ctx, inspector, outer); err != nil {
		return note, err
	}
	for _, paths := range portions(fresh) {
		seen.Paths = paths
		line, err := seen.Line()
		if err != nil {
			return note, err
		}
		note.Text = review.Add(note.Text, line)
	}
	return note, nil
}

// both returns the entries of two maps. If both have a key, the entry of b counts.
func both(a, b map[string]gitops.OID) map[string]gitops.OID {
	all := map[string]gitops.OID{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// portions splits paths for the lines of a note.
func portions(paths map[string]gitops.OID) (list []map[string]gitops.OID) {
	size := pathsOnLine
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		more := 6*len(path) + len(paths[path]) // JSON writes some characters with six bytes
		if size += more; size > pathsOnLine {
			list, size = append(list, map[string]gitops.OID{}), more
		}
		list[len(list)-1][path] = paths[path]
	}
	return list
}

// note replaces the notes with verdicts on several commits, and updates refs, in one transaction. Without notes it does nothing.
func (q *request) note(ctx context.Context, notes []quarantine.Note, refs ...gitops.RefUpdate) error {
	old, err := q.e.Repo.Ref(ctx, review.NotesRef)
	if err != nil || len(notes) == 0 {
		return err
	}
	bridge, inspector, err := q.Bridge(ctx)
	if err != nil {
		return err
	}
	drafted, made, err := bridge.DraftNotes(ctx, inspector, old, q.Settings.User.String(), notes)
	if err != nil {
		return err
	}
	if drafted != old {
		if err := bridge.Give(ctx, inspector, "", nil, made...); err != nil {
			return err
		}
		refs = append(refs, gitops.RefUpdate{Ref: review.NotesRef, Old: old, New: drafted})
	}
	if len(refs) == 0 {
		return nil
	}
	return q.e.Repo.UpdateRefs(ctx, "airlock: "+string(q.Word), refs...)
}

// Unseen returns the files that the user has not looked at in this commit, or in the one that it replaces.
func (r Reviewable) Unseen() []gitops.Stat {
	return slices.DeleteFunc(slices.Clone(r.Files), func(f gitops.Stat) bool { return r.Seen(f) })
}

// Seen reports whether the user has looked at a file of the commit.
func (r Reviewable) Seen(f gitops.Stat) bool {
	blob, seen := r.looked[gitops.ToText(f.Path)]
	return seen && blob == f.Blob
}
