package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops/ancestry"
)

// MergeBase returns the best common ancestor of two commits, empty if there is none.
func (g *Git) MergeBase(ctx context.Context, a, b OID) (OID, error) {
	text, err := g.Output(ctx, "merge-base", string(a), string(b))
	if Status(err) == 1 {
		return "", nil
	}
	return OID(text), err
}

// Steps lists the first-parent history from one commit (excluded) to a descendant (included), oldest first. With
// paths, it lists only commits that change one of the paths or something below it.
func (g *Git) Steps(ctx context.Context, from, to OID, paths ...string) ([]OID, error) {
	args := []string{"rev-list", "--first-parent", "--reverse", string(from) + ".." + string(to), "--"}
	text, err := g.Output(ctx, append(args, paths...)...)
	return oids(text), err
}

// reflogRead is the largest number of reflog entries that are read.
const reflogRead = 1000

// Past lists the previous commits of a branch from its reflog, newest first.
func (r *Repository) Past(ctx context.Context, branch string) ([]OID, error) {
	text, err := r.Output(ctx, "rev-list", "--walk-reflogs", "--max-count="+strconv.Itoa(reflogRead), branch, "--")
	return oids(text), err
}

// PastBesides lists the commits to which a branch was moved, newest first. It leaves out moves whose message in the reflog begins with a prefix.
// So our own landings do not count as moves by the user: a commit that was undone and built again in the same second has the same id.
func (r *Repository) PastBesides(ctx context.Context, branch, prefix string) ([]OID, error) {
	text, err := r.Output(ctx, "log", "--walk-reflogs", "--max-count="+strconv.Itoa(reflogRead), "--format=%H %gs", "--no-show-signature", branch, "--")
	var ids []OID
	for line := range strings.Lines(text) {
		if id, message, _ := strings.Cut(line, " "); !strings.HasPrefix(message, prefix) {
			ids = append(ids, OID(id))
		}
	}
	return ids, err
}

// reflogTail is how much of the end of a reflog is read for its newest entry.
const reflogTail = 8 << 10

// LastMoved reports whether the newest entry in the reflog of a branch moved it to a commit, with a message that begins with a
// prefix. It reads the file of the reflog itself, and reports false if there is none, as with reftable.
func (r *Repository) LastMoved(branch string, to OID, prefix string) bool {
	f, err := os.Open(filepath.Join(r.CommonDir, "logs", branch))
	if err != nil {
		return false
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, max(0, end-reflogTail), reflogTail))
	whole, ended := strings.CutSuffix(string(tail), "\n")
	if err != nil || !ended {
		return false
	}
	about, message, _ := strings.Cut(whole[strings.LastIndex(whole, "\n")+1:], "\t")
	ids := strings.SplitN(about, " ", 3) // a line that does not begin here has no ids
	return len(ids) == 3 && ids[1] == string(to) && strings.HasPrefix(message, prefix)
}

// Unreached lists the commits that are reachable from tips but not from others, children first. Commits in either
// list that no longer exist are ignored.
func (g *Git) Unreached(ctx context.Context, tips, others []OID) ([]OID, error) {
	return ancestry.Unreached(tips, others, func(revisions io.Reader, out io.Writer, options ...string) error {
		return g.Look(ctx, Call{Args: append([]string{"rev-list", "--ignore-missing", "--stdin"}, options...), Stdin: revisions, Stdout: out})
	})
}

// Present returns those of the commits that exist.
func (g *Git) Present(ctx context.Context, commits []OID) ([]OID, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	err := g.Look(ctx, Call{Args: []string{"cat-file", "--batch-check=%(objecttype) %(objectname)"},
		Stdin: strings.NewReader(Lines(commits)), Stdout: &out})
	var there []OID
	for line := range strings.Lines(out.String()) {
		if id, isCommit := strings.CutPrefix(strings.TrimSpace(line), "commit "); isCommit {
			there = append(there, OID(id))
		}
	}
	return there, err
}

// oids returns the object names in the lines of git's output.
func oids(text string) []OID {
	var list []OID
	for line := range strings.Lines(text) {
		list = append(list, OID(strings.TrimSpace(line)))
	}
	return list
}

// MergeTree merges two commits (git-merge-tree(1)). The files with conflicts have markers in the tree. conflicts is nil after a clean merge.
func (g *Git) MergeTree(ctx context.Context, ours, theirs OID) (tree OID, conflicts []Unmerged, err error) {
	var out bytes.Buffer
	merged := g.Change(ctx, Call{Args: []string{"merge-tree", "--write-tree", "-z", "--no-messages", string(ours), string(theirs)}, Stdout: &out})
	if merged != nil && Status(merged) != 1 {
		return "", nil, merged
	}
	records := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	if merged != nil {
		conflicts = []Unmerged{}
	}
	for _, record := range records[1:] {
		about, path, _ := strings.Cut(record, "\t")
		f := strings.Fields(about) // mode, name and stage
		if n := len(conflicts); n == 0 || conflicts[n-1].Path != path {
			conflicts = append(conflicts, Unmerged{Path: path})
		}
		if conflicts[len(conflicts)-1].Stages[f[2][0]-'1'], err = entry(f[0], f[1]); err != nil {
			return "", nil, err
		}
	}
	tree, err = ParseOID(records[0])
	return tree, conflicts, err
}

// Unmerged is a path with a conflict, and its entries in the base, ours and theirs: the stages of git-ls-files(1).
type Unmerged struct {
	Path   string
	Stages [3]Entry
}

// StartMerge merges a commit into the checked-out branch, with some configuration of git. It stops where the user must continue: at a conflict, or before the commit.
func (r *Repository) StartMerge(ctx context.Context, commit OID, config ...string) error {
	err := r.Configured(config...).Change(ctx, Call{Args: []string{"merge", "--no-ff", "--no-commit", string(commit)}, Stdout: io.Discard})
	if r.Operation() == "merge" {
		return nil
	}
	return err
}

// ErrNoCommit means that a name does not resolve to a commit.
var ErrNoCommit = errors.New("no such commit")

// Commit returns the commit that a revision resolves to. ":/" finds only commits, and takes all that follows it for a part of the text.
func (r *Repository) Commit(ctx context.Context, revision string) (OID, error) {
	if r.noName(ctx, revision) {
		return "", fmt.Errorf("%q: %w", revision, ErrNoCommit)
	}
	text, err := r.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+map[bool]string{false: "^{commit}"}[strings.HasPrefix(revision, ":/")])
	if failed, ok := errors.AsType[*Error](err); ok && (failed.Status == 1 || failed.Said() == "") { // nothing: an entry that the reflog does not have
		return "", fmt.Errorf("%q: %w", revision, ErrNoCommit)
	}
	if err != nil {
		return "", err
	}
	return ParseOID(text)
}

// leastAbbreviation is the smallest number of digits by which git finds an object.
const leastAbbreviation = 4

// noName reports whether a revision is a number that cannot name a commit, such as the number of a commit in a list: it is too short for an object
// name, and no ref has this name. Then git need not be started.
func (r *Repository) noName(ctx context.Context, revision string) bool {
	if len(revision) >= leastAbbreviation || strings.Trim(revision, "0123456789") != "" || revision == "" {
		return false
	}
	refs, err := r.Refs(ctx, "refs/"+revision, "refs/tags/"+revision, "refs/heads/"+revision, "refs/remotes/"+revision)
	return err == nil && len(refs) == 0
}

// CommitTime returns the time at which a commit was made, by its committer line.
func (r *Repository) CommitTime(ctx context.Context, commit OID) (time.Time, error) {
	text, err := r.Output(ctx, "log", "-1", "--no-show-signature", "--format=%ct", string(commit), "--")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err
}

// PathspecLimit is the number of paths up to which they are passed to git. Git matches each index entry against
// each pathspec, so for more paths it is cheaper to request everything.
const PathspecLimit = 100

// Range lists the commits of a range such as main..topic, oldest first.
func (r *Repository) Range(ctx context.Context, revisions string) ([]OID, error) {
	text, err := r.Output(ctx, "rev-list", "--reverse", "--topo-order", "--end-of-options", revisions, "--")
	return oids(text), err
}

// IsAncestor reports whether a commit is reachable from another.
func (g *Git) IsAncestor(ctx context.Context, ancestor, of OID) bool {
	return g.Look(ctx, Call{Args: []string{"merge-base", "--is-ancestor", string(ancestor), string(of)}}) == nil
}

// Tree returns the tree of a commit. The tree itself may be missing, as in a partial clone.
func (g *Git) Tree(ctx context.Context, commit OID) (OID, error) {
	tree, err := g.Output(ctx, "rev-list", "--no-walk", "--no-commit-header", "--format=%T", string(commit))
	return OID(tree), err
}

// Summary is a commit or branch in one line, safe to show.
type Summary struct {
	Name    string // abbreviated
	Subject string
}

// Summaries lists at most a certain number of the commits in some revisions, newest first.
func (r *Repository) Summaries(ctx context.Context, most int, revisions ...string) ([]Summary, error) {
	args := append([]string{"log", "-z", "--no-show-signature", "--no-notes", fmt.Sprintf("--max-count=%d", most), "--format=%h%x09%s"}, revisions...)
	return r.summaries(ctx, append(args, "--"))
}

// RefNames lists at most a certain number of the refs below a prefix such as "refs/heads", the most recently used
// first, by their short names. It leaves out names that would have to be escaped.
func (r *Repository) RefNames(ctx context.Context, most int, below string) ([]Summary, error) {
	return r.summaries(ctx, []string{"for-each-ref", "--sort=-committerdate", fmt.Sprintf("--count=%d", most),
		"--format=%(refname:short)%09%(contents:subject)%00", below})
}

func (r *Repository) summaries(ctx context.Context, args []string) ([]Summary, error) {
	records, err := r.Records(ctx, Call{Args: args})
	var all []Summary
	for _, record := range records {
		name, subject, _ := strings.Cut(strings.TrimPrefix(record, "\n"), "\t")
		if name != "" && Text(name).Plain() {
			all = append(all, Summary{name, Text(subject).String()})
		}
	}
	return all, err
}

// Contained reports whether a branch, a remote-tracking branch or a tag has a commit.
func (r *Repository) Contained(ctx context.Context, commit OID) bool {
	ref, err := r.Output(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains="+string(commit), "refs/heads", "refs/remotes", "refs/tags")
	return err == nil && ref != ""
}

// revertLine matches the line that git-revert(1) writes into a message.
var revertLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^This reverts commit ([0-9a-f]{40,64})\b`) })

// Reverts finds the commits in revisions that revert other commits, according to their messages. It maps them to these other commits.
func (g *Git) Reverts(ctx context.Context, revisions []string, options ...string) (map[OID][]OID, error) {
	args := []string{"log", "-z", "--no-show-signature", "--no-notes", "--no-color", "--format=%H%x00%b", "--basic-regexp", "--grep=^This reverts commit [0-9a-f]", "--ignore-missing", "--stdin"}
	records, err := g.Records(ctx, Call{Args: append(args, options...), Limit: notedLimit, Stdin: strings.NewReader(strings.Join(revisions, "\n") + "\n")})
	reverts := map[OID][]OID{}
	for i := 0; i+1 < len(records); i += 2 {
		for _, m := range revertLine().FindAllStringSubmatch(records[i+1], -1) {
			reverts[OID(records[i])] = append(reverts[OID(records[i])], OID(m[1]))
		}
	}
	return reverts, err
}
