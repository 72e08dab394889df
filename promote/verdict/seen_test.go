package verdict

import (
	"maps"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/ledger"
	"github.com/git-airlock/git-airlock/promote/review"
)

// TestPathsOnLines checks that many long paths are written as lines that a reader accepts, with a bound.
func TestPathsOnLines(t *testing.T) {
	t.Parallel()
	var files []gitops.Stat
	for i := range pathsSeen + 100 {
		files = append(files, gitops.Stat{Path: strings.Repeat("\xff", i%2000) + strings.Repeat("a", i/2000) + "x", Blob: gitops.OID(strings.Repeat("ab", 20))})
	}
	fresh := unseen(nil, files)
	if len(fresh) != pathsSeen {
		t.Fatalf("%d paths are recorded", len(fresh))
	}
	read := map[string]gitops.OID{}
	for _, paths := range portions(fresh) {
		line, err := review.Verdict{Word: review.Seen, Paths: paths}.Line()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range review.Parse(line) {
			maps.Copy(read, v.Paths)
		}
	}
	if !maps.Equal(fresh, read) {
		t.Errorf("%d of %d paths are read", len(read), len(fresh))
	}
	if again := unseen(&ledger.Reviewed{Verdict: review.Verdict{Paths: fresh}}, files); len(again) != 0 {
		t.Errorf("%d paths are recorded again", len(again))
	}
}

// TestNumberOf reads names that are numbers, and others.
func TestNumberOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"1": 1, "999999": 999999, "1234567": 0, "0": 0, "01": 0, "+1": 0, "-1": 0, "1~": 0, "": 0, "a": 0} {
		if got := numberOf(name); got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
	}
}
