package review_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
	"github.com/git-airlock/git-airlock/promote/review"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

// version is a file before and after a commit.
type version struct{ before, after string }

// TestDigestKnowsThePlace compares the digests of random changes in files with repeated blocks. They are equal exactly if git's diffs are,
// apart from the places, and if either the files are the same or each hunk fits a single place of the file before in both commits.
func TestDigestKnowsThePlace(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var all []version
	for range 600 {
		one, other := changedTwice(r)
		all = append(all, one, other)
	}
	changes := diffs(t, all)
	follows, confused := 0, 0
	for i := 0; i < len(all); i += 2 {
		one, other := changes[i], changes[i+1]
		certain := one.single(all[i].before) && other.single(all[i+1].before)
		want := one.hunks == other.hunks && (one.blobs == other.blobs || certain)
		whole := strings.HasSuffix(all[i].before, "\n") && strings.HasSuffix(all[i+1].before, "\n")
		if got := one.digest == other.digest; got != want && (got || whole) {
			t.Fatalf("the digests are equal: %t, want %t\n%q\n%q\n%s\n%s", got, want, all[i], all[i+1], one.hunks, other.hunks)
		}
		switch {
		case want && all[i].before == all[i+1].before && all[i] != all[i+1]:
			t.Fatalf("a verdict follows to another place of the same file:\n%q\n%q", all[i], all[i+1])
		case want && all[i].before != all[i+1].before:
			follows++
		case one.hunks == other.hunks && !want:
			confused++
		}
	}
	if follows < 20 || confused < 20 {
		t.Errorf("%d follow into another file, and %d could be taken for another", follows, confused)
	}
}

// changedTwice returns a change of a file with repeated blocks, and the change of the same lines in another place, or in a file that another
// commit has changed, or both.
func changedTwice(r *rand.Rand) (one, other version) {
	var block, lines, fresh []string
	for range 5 + r.IntN(8) {
		block = append(block, fmt.Sprint("line ", r.IntN(6)))
	}
	for i := range 1 + r.IntN(4) {
		lines = append(append(lines, fmt.Sprint("block ", i)), block...)
	}
	for range r.IntN(3) {
		fresh = append(fresh, fmt.Sprint("line ", r.IntN(9)))
	}
	at, cut := r.IntN(len(lines)), 1-min(1, len(fresh))+r.IntN(2)
	end := []string{"\n", "\n", "\n", ""}[r.IntN(4)]
	change := func(lines []string, at int) version {
		at = min(at, len(lines)-1)
		after := slices.Replace(slices.Clone(lines), at, min(at+cut, len(lines)), fresh...)
		return version{strings.Join(lines, "\n") + end, strings.Join(after, "\n") + end}
	}
	one = change(lines, at)
	if r.IntN(2) == 0 { // another block
		at = (at + len(block) + 1) % len(lines)
	}
	if r.IntN(2) == 0 { // an earlier commit was amended
		elsewhere := r.IntN(len(lines))
		lines = slices.Insert(slices.Clone(lines), elsewhere, fmt.Sprint("line ", r.IntN(12)))
		if elsewhere <= at {
			at++
		}
	}
	return one, change(lines, at)
}

// diff is a change as git prints it.
type diff struct {
	digest string
	blobs  string // before and after
	hunks  string // without their places
}

var (
	hunkPlace = regexp.MustCompile(`(?m)^@@ .*$`)
	blobNames = regexp.MustCompile(`(?m)^index .*$`)
)

// single reports whether the lines before of each hunk occur once in a file.
func (d diff) single(file string) bool {
	lines := strings.SplitAfter(file, "\n")
	for _, hunk := range strings.Split(d.hunks, "@@\n")[1:] {
		var want []string
		for line := range strings.Lines(hunk) {
			if kind := line[0]; kind == '-' || kind == ' ' {
				want = append(want, line[1:])
			} else if kind == '\\' && len(want) > 0 {
				want[len(want)-1] = strings.TrimSuffix(want[len(want)-1], "\n")
			}
		}
		n := 0
		for i := range len(lines) - len(want) + 1 {
			if slices.Equal(lines[i:i+len(want)], want) {
				n++
			}
		}
		if n != 1 {
			return false
		}
	}
	return true
}

// diffs returns the diff of a commit for each version.
func diffs(t *testing.T, all []version) (list []diff) {
	t.Helper()
	w := gitopstest.New(t)
	var commits strings.Builder
	for i, v := range all {
		for _, content := range []string{v.before, v.after} {
			fmt.Fprintf(&commits, "commit refs/heads/%05d\ncommitter A <a@example.com> 0 +0000\ndata 0\nM 644 inline f\ndata %d\n%s\n", i, len(content), content)
		}
	}
	gitopstest.Input(t, w.Top, nil, commits.String(), "fast-import", "--quiet")
	var ids []gitops.OID
	for id := range strings.Lines(w.Run("for-each-ref", "--format=%(objectname)", "refs/heads/0*") + "\n") {
		ids = append(ids, gitops.OID(strings.TrimSpace(id)))
	}
	digests := map[gitops.OID]string{}
	gitopstest.Check(t, w.Patches(t.Context(), ids, func(id gitops.OID, patch []byte) error {
		digests[id] = review.Digest(nil, patch)
		return nil
	}))
	patches, at := map[gitops.OID]string{}, gitops.OID("")
	for line := range strings.Lines(gitopstest.Input(t, w.Top, nil, gitops.Lines(ids), "diff-tree", "--stdin", "-p", "-U3", "--full-index") + "\n") {
		if id, err := gitops.ParseOID(strings.TrimSpace(line)); err == nil {
			patches[id], at = "", id
		} else {
			patches[at] += line
		}
	}
	for _, id := range ids {
		list = append(list, diff{digests[id], blobNames.FindString(patches[id]), blobNames.ReplaceAllString(hunkPlace.ReplaceAllString(patches[id], "@@"), "")})
	}
	return list
}
