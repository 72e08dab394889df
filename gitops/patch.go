package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// patchLimit and patchTime bound the diff of one commit.
	patchLimit = 64 << 20
	patchTime  = 10 * time.Second
	statsTime  = time.Minute // for the files of many commits
)

// ErrLargePatch reports that the diff of a commit is too large, or takes too long.
var ErrLargePatch = errors.New("the diff is too large")

// diffTree returns the arguments of git diff-tree for the changes of commits since their first parents. No program that a
// configuration or an attribute names is run.
func diffTree(more ...string) []string {
	args := []string{"diff-tree", "-r", "--root", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv", "--no-color"}
	return append(args, more...)
}

// Patches calls do with the change of each commit since its first parent as a diff, in their order. Every file counts as text and is
// there with all its lines, and blob ids are whole. A commit without a change has an empty diff. A commit with a diff that is too large is left out.
func (g *Git) Patches(ctx context.Context, commits []OID, do func(commit OID, diff []byte) error) error {
	return g.patches(ctx, commits, patchLimit, diffTree("--stdin", "-p", "-U"+strconv.Itoa(patchLimit), "--no-renames", "--text", "--full-index"), func(part []OID, diffs []byte) error {
		of := splitPatches(diffs)
		for _, id := range part {
			if err := do(id, of[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

// splitPatches returns the diffs by their commits. Before each diff is a line with the name of its commit. No line of a diff has that form.
func splitPatches(diffs []byte) map[OID][]byte {
	of, at, begin, end := map[OID][]byte{}, OID(""), 0, 0
	for line := range bytes.Lines(diffs) {
		if id, err := ParseOID(string(bytes.TrimSuffix(line, []byte("\n")))); err == nil {
			of[at], at, begin = diffs[begin:end], id, end+len(line)
		}
		end += len(line)
	}
	of[at] = diffs[begin:end]
	return of
}

// patches calls do with the diffs of commits. Before each diff is a line with the name of its commit. If all diffs together are larger than limit,
// patches calls do several times, with a part of the commits each time. It leaves out a diff that alone is larger than limit.
func (g *Git) patches(ctx context.Context, commits []OID, limit int64, args []string, do func(part []OID, diffs []byte) error) error {
	if len(commits) == 0 {
		return nil
	}
	var diffs bytes.Buffer
	err := g.Look(ctx, Call{Args: args, Stdin: strings.NewReader(Lines(commits)), Stdout: &diffs, Limit: limit, For: patchTime})
	large := ctx.Err() == nil && (errors.Is(err, ErrOutput) || errors.Is(err, context.DeadlineExceeded))
	switch half := len(commits) / 2; {
	case large && half > 0:
		if err := g.patches(ctx, commits[:half], limit, args, do); err != nil {
			return err
		}
		return g.patches(ctx, commits[half:], limit, args, do)
	case large:
		return nil
	case err != nil:
		return err
	}
	return do(commits, diffs.Bytes())
}

// noIndex keeps git from reading the index, which a diff of commits needs only for attribute files that the user has removed.
const noIndex = "GIT_INDEX_FILE=/nonexistent/index"

// PatchIDs returns the stable patch-ids of commits (git-patch-id(1)). Commits without a patch, and those whose patch is too large, have no entry.
func (g *Git) PatchIDs(ctx context.Context, commits []OID) (map[OID]string, error) {
	return g.patchIDs(ctx, "--stable", commits, patchLimit)
}

// VerbatimPatchIDs returns the patch-ids of commits to which white space counts. Commits without a patch, and those whose patch is larger than
// limit, have no entry. It uses several times that memory.
func (g *Git) VerbatimPatchIDs(ctx context.Context, commits []OID, limit int64) (map[OID]string, error) {
	return g.patchIDs(ctx, "--verbatim", commits, limit)
}

// patchIDs returns the patch-ids of one form of git-patch-id(1).
func (g *Git) patchIDs(ctx context.Context, form string, commits []OID, limit int64) (map[OID]string, error) {
	ids := map[OID]string{}
	if len(commits) == 0 {
		return ids, nil
	}
	in, patches := io.Pipe()
	var text string
	var diffErr error
	err := Together(
		func() (err error) {
			text, err = g.patchID(ctx, form, in) // git patch-id starts while git diff-tree makes the diffs
			in.Close()
			return err
		},
		func() error {
			diffErr = g.With(noIndex).patches(ctx, commits, limit, diffTree("--stdin", "-p", "--full-index"), func(_ []OID, diffs []byte) error {
				_, err := patches.Write(diffs)
				return err
			})
			return patches.CloseWithError(diffErr)
		})
	if diffErr != nil && !errors.Is(diffErr, io.ErrClosedPipe) { // git patch-id reports it as well, or has ended first
		err = diffErr
	}
	for line := range strings.Lines(text) {
		id, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		ids[OID(commit)] = id
	}
	return ids, err
}

// patchID returns a line with patch-id and commit for each patch.
func (g *Git) patchID(ctx context.Context, form string, patches io.Reader) (string, error) {
	var out bytes.Buffer
	err := g.Look(ctx, Call{Args: []string{"patch-id", form}, Stdin: patches, Stdout: &out})
	return out.String(), err
}

// Stat is a changed file of a commit.
type Stat struct {
	Path           string
	Added, Removed int // lines; -1 for a binary file
	Before, Blob   OID // before and after the change; zeros if there is no such file
}

// Stats lists the files that a commit changes since its first parent, at some paths (all without any).
func (g *Git) Stats(ctx context.Context, commit OID, paths ...string) ([]Stat, error) {
	all, err := g.With("GIT_LITERAL_PATHSPECS=0").stats(ctx, patchTime, []OID{commit}, paths)
	if _, read := all[commit]; err == nil && !read { // git diff-tree --stdin passes over a commit that it does not have
		err = fmt.Errorf("commit %s is missing", commit)
	}
	return all[commit], err
}

// AllStats lists the files that each of several commits changes since its first parent. Missing commits have no entry.
func (g *Git) AllStats(ctx context.Context, commits []OID) (map[OID][]Stat, error) {
	return g.stats(ctx, statsTime, commits, nil)
}

func (g *Git) stats(ctx context.Context, limit time.Duration, commits []OID, paths []string) (map[OID][]Stat, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	args := append(diffTree("--stdin", "--always", "--no-renames", "--raw", "--numstat", "--no-abbrev", "-z", "--"), paths...)
	records, err := g.Records(ctx, Call{Args: args, For: limit, Stdin: strings.NewReader(Lines(commits))})
	if err != nil {
		return nil, err
	}
	return parseStats(records)
}

// parseStats reads the output of git diff-tree. The name of a commit comes before its files. With --always, a commit without files is named, too.
func parseStats(records []string) (map[OID][]Stat, error) {
	var at OID
	all := map[OID][]Stat{}
	blobs := map[string][2]OID{}
	for i := 0; i < len(records); i++ {
		if id, err := ParseOID(records[i]); err == nil {
			at, all[id] = id, nil
			continue
		}
		if raw, isRaw := strings.CutPrefix(records[i], ":"); isRaw && i+1 < len(records) {
			if fields := strings.Fields(raw); len(fields) == 5 {
				i++
				blobs[records[i]] = [2]OID{OID(fields[2]), OID(fields[3])}
				continue
			}
		}
		fields := strings.SplitN(records[i], "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("git diff-tree answered %q", Text(records[i]))
		}
		all[at] = append(all[at], Stat{fields[2], lines(fields[0]), lines(fields[1]), blobs[fields[2]][0], blobs[fields[2]][1]})
	}
	return all, nil
}

func lines(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return -1
}

// PatchIDsIn returns the ids of the changes in mails or in the output of git log -p, in their order. An id depends on the change
// alone, see git-patch-id(1). Commits without a change have none.
func (g *Git) PatchIDsIn(ctx context.Context, patch []byte) (ids []string, err error) {
	text, err := g.patchID(ctx, "--stable", bytes.NewReader(patch))
	for line := range strings.Lines(text) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		ids = append(ids, id)
	}
	return append([]string{}, ids...), err
}
