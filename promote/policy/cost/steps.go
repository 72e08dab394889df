package cost

import (
	"sort"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
)

// StepLimit is the number of steps that git may need to match the patterns of one file with one path, which takes about two seconds. Usual
// patterns need a thousandth, and a few common ones, such as report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json, up to a seventh.
const StepLimit = 1 << 32

// TotalSteps is the number of steps for all files of patterns that a commit changes and all paths that it changes below their folders, which
// takes two minutes, as long as git may compute for a landing. 200 usual patterns with 200,000 usual paths need half of it. Paths and patterns of
// different commits are not added up: a landing that takes longer ends and names the commit. The user's git status has no such bound.
const TotalSteps = 1 << 38

// UncountedSteps is the number of steps that all files together may have without a look at the paths. A commit with few paths keeps it even if
// each of them were as long as a path can be.
const UncountedSteps = TotalSteps / 16

// Below returns the changes below a folder, which is empty for the top. The changes are sorted by their paths.
func Below(changes []gitops.Change, folder string) []gitops.Change {
	if folder == "" {
		return changes
	}
	from := func(changes []gitops.Change, path string) int {
		return sort.Search(len(changes), func(n int) bool { return changes[n].Path >= path })
	}
	rest := changes[from(changes, folder+"/"):]
	return rest[:from(rest, folder+"0")] // "0" comes after "/"
}

// Sizes returns the sizes of the paths that changes below a folder leave, each with the number of paths. Sizes that are about equal become equal.
func Sizes(below []gitops.Change, folder string) map[ignore.Limits]int {
	sizes := map[ignore.Limits]int{}
	for _, c := range below {
		if c.New.Mode == 0 {
			continue
		}
		rest, longest := strings.TrimPrefix(c.Path, folder+"/"), 0
		for name := range strings.SplitSeq(rest, "/") {
			longest = max(longest, len(name))
		}
		sizes[ignore.Limits{Bytes: float64(len(rest) | 63), Component: float64(longest | 31), Slashes: float64(strings.Count(rest, "/") | 7)}]++
	}
	return sizes
}
