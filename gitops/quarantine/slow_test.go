package quarantine

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/busy"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// slowLines returns lines for which git needs seconds to compare them with those of another seed.
func slowLines(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	var text strings.Builder
	for range 300_000 {
		text.WriteByte(byte('a' + r.IntN(8)))
		text.WriteByte('\n')
	}
	return text.String()
}

// TestSlowMerge merges files that differ everywhere, in less time than git needs, and small ones after that.
func TestSlowMerge(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no clock of another process")
	}
	f := &mergeFixture{newInner(t, gitopstest.Files{"lines": mergeLines})}
	base, ours, theirs := slowLines(1), slowLines(2), slowLines(3)
	b := f.bridges(t)["merger"]
	b.Time = new(busy.Slow).Budget(time.Second, false)
	merge := func(base, ours, theirs string) Merge {
		of := func(text string) gitops.OID { return f.tree(t, f.base, gitopstest.Files{"lines": text}) }
		return Merge{Base: of(base), Ours: of(ours), Theirs: of(theirs)}
	}

	slow := merge(base, ours, theirs)
	for range 2 {
		if _, _, err := b.Merge(t.Context(), slow); !gitops.Spent(err) || !gitops.Crashed(err) || !strings.HasPrefix(err.Error(), "it needs more than the 1 s of processor time") {
			t.Errorf("git merges slow files: %v", err)
		}
	}
	small := merge(mergeLines, "ours\n"+mergeLines+"ours\n", "theirs\n"+mergeLines)
	_, conflicts, err := b.Merge(t.Context(), small)
	gitopstest.Check(t, err)
	inspector := b.Inspect(t.Context(), nil)
	defer inspector.Close()
	tree, byLines, err := b.MergeTheirs(t.Context(), inspector, small)
	gitopstest.Check(t, err)
	if len(conflicts) != 1 || byLines || tree != small.Theirs {
		t.Errorf("conflicts %q, tree %s, by lines: %t; want the file of theirs", conflicts, tree, byLines)
	}

	b.Time = new(busy.Slow).Budget(time.Second, false)
	if _, err := b.Patch(t.Context(), Merge{Base: slow.Base, Ours: slow.Base, Theirs: slow.Theirs}); !gitops.Spent(err) {
		t.Errorf("git makes a patch of a slow file: %v", err)
	}
	b.Time = new(busy.Slow).Budget(time.Minute, false)
	if _, byLines, err := b.MergeTheirs(t.Context(), inspector, small); err != nil || !byLines {
		t.Errorf("small files, by lines: %t, %v", byLines, err)
	}
}
