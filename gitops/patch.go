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
)

// ErrLargePatch reports that the diff of a commit is too large, or takes too long.
var ErrLargePatch = errors.New("the diff is too large")

// diffTree returns the arguments of git diff-tree for the change of a commit since its first parent. No program that a
// configuration or an attribute names is run.
func diffTree(commit OID, more ...string) []string {
	args := []string{"diff-tree", "-r", "--root", "--no-commit-id", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv", "--no-color"}
	return append(append(args, more...), string(commit))
}

// Patch writes the change of a commit since its first parent as a diff. Every file counts as text, and blob ids are
// whole. The error is [ErrLargePatch] if the diff is too large.
func (g *Git) Patch(ctx context.Context, commit OID, out io.Writer) error {
	return g.patch(ctx, out, diffTree(commit, "-p", "-U3", "--no-renames", "--text", "--full-index"))
}

func (g *Git) patch(ctx context.Context, out io.Writer, args []string) error {
	to := &counted{to: out}
	err := g.Look(ctx, Call{Args: args, Stdout: to, Limit: patchLimit, For: patchTime})
	if err != nil && ctx.Err() == nil && (to.n >= patchLimit || errors.Is(err, context.DeadlineExceeded)) {
		return ErrLargePatch
	}
	return err
}

// counted counts the bytes written.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.to.Write(p)
}

// PatchID returns the stable patch-id of a commit (git-patch-id(1)), or empty if the commit has no patch or a patch that
// is too large.
func (g *Git) PatchID(ctx context.Context, commit OID) (string, error) {
	var diff, id bytes.Buffer
	err := g.patch(ctx, &diff, diffTree(commit, "-p", "--full-index"))
	if errors.Is(err, ErrLargePatch) {
		return "", nil
	}
	if err == nil {
		err = g.Look(ctx, Call{Args: []string{"patch-id", "--stable"}, Stdin: &diff, Stdout: &id})
	}
	first, _, _ := strings.Cut(id.String(), " ")
	return first, err
}

// Stat is a changed file of a commit.
type Stat struct {
	Path           string
	Added, Removed int // lines; -1 for a binary file
	Before, Blob   OID // before and after the change; zeros if there is no such file
}

// Stats lists the files that a commit changes since its first parent, at some paths (all without any).
func (g *Git) Stats(ctx context.Context, commit OID, paths ...string) ([]Stat, error) {
	args := append(diffTree(commit, "--no-renames", "--raw", "--numstat", "--no-abbrev", "-z"), "--")
	records, err := g.With("GIT_LITERAL_PATHSPECS=0").Records(ctx, Call{Args: append(args, paths...), For: patchTime})
	if err != nil {
		return nil, err
	}
	all, err := parseStats(records, commit)
	return all[commit], err
}

// statsTime bounds the listing of the files of many commits.
const statsTime = time.Minute

// AllStats lists the files that each of several commits changes since its first parent.
func (g *Git) AllStats(ctx context.Context, commits []OID) (map[OID][]Stat, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	args := []string{"diff-tree", "--stdin", "-r", "--root", "--diff-merges=first-parent", "--no-renames", "--raw", "--numstat", "--no-abbrev", "-z"}
	records, err := g.Records(ctx, Call{Args: args, For: statsTime, Stdin: strings.NewReader(strings.Join(Names(commits), "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	return parseStats(records, "")
}

// parseStats reads the output of git diff-tree. The name of a commit comes before its files; at is the commit without one.
func parseStats(records []string, at OID) (map[OID][]Stat, error) {
	all := map[OID][]Stat{}
	blobs := map[string][2]OID{}
	for i := 0; i < len(records); i++ {
		if id, err := ParseOID(records[i]); err == nil {
			at = id
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

// PatchIDs returns the ids of the changes in mails or in the output of git log -p, in their order. An id depends on the change
// alone, see git-patch-id(1). Commits without a change have none.
func (g *Git) PatchIDs(ctx context.Context, patch []byte) (ids []string, err error) {
	var out bytes.Buffer
	err = g.Look(ctx, Call{Args: []string{"patch-id", "--stable"}, Stdin: bytes.NewReader(patch), Stdout: &out})
	for line := range strings.Lines(out.String()) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		ids = append(ids, id)
	}
	return append([]string{}, ids...), err
}
