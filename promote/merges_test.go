package promote_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/quarantine"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/build"
	"github.com/git-airlock/git-airlock/promote/review"
)

// keptMerges makes the merges that the airlock has kept in a file again, as far as it still has their trees, and returns the
// number of those that were clean and of those with conflicts. Who reads a merge from the file must get the same result.
func (w *world) keptMerges() (clean, conflicting int) {
	w.t.Helper()
	dir := w.engine.Dir()
	content, err := os.ReadFile(filepath.Join(dir, build.MergesFile))
	if err != nil {
		check(w.t, gitops.Unless(err, os.ErrNotExist))
		return 0, 0
	}
	bridge, err := quarantine.Open(promote.QuarantineDir(dir), w.Format).Bridge(w.Repository, nil, filepath.Join(w.t.TempDir(), "bridge"))
	check(w.t, err)
	defer bridge.Close()
	stored := bridge.Inspect(w.t.Context(), nil)
	defer stored.Close()
	kept := build.NewTrees(nil, false, dir, nil, stored) // cannot merge
	missing := func(id gitops.OID) bool {
		_, err := stored.Tree(w.t.Context(), id)            // starts the process that Has needs for SHA-256
		return err != nil || !stored.Has(w.t.Context(), id) // Tree also finds what an earlier line made again
	}
	for line := range strings.Lines(string(content)) {
		key, result, _ := strings.Cut(line, "\t")
		var of [3]gitops.OID
		_, err := fmt.Sscan(key, &of[0], &of[1], &of[2])
		check(w.t, err)
		var l struct{ Tree gitops.OID }
		check(w.t, json.Unmarshal([]byte(result), &l))
		if slices.ContainsFunc(append(of[:], cmp.Or(l.Tree, of[0])), missing) {
			continue
		}
		tree, paths, err := kept.Merge(w.t.Context(), of[0], of[1], of[2])
		check(w.t, err)
		want, conflicts, err := bridge.Merge(w.t.Context(), quarantine.Merge{Base: of[0], Ours: of[1], Theirs: of[2], NoDirectoryRenames: true})
		check(w.t, err)
		if tree != want || !slices.Equal(paths, conflicts) || (paths == nil) != (conflicts == nil) {
			w.t.Errorf("kept: %s %q, merged again: %s %q; %s", tree, paths, want, conflicts, line)
		}
		if clean++; conflicts != nil {
			clean, conflicting = clean-1, conflicting+1
		}
	}
	return clean, conflicting
}

// TestMergesAreKept rejects a commit. Of the commits after it, one conflicts at a path that is not UTF-8. A process that finds a
// damaged file of merges, or none, comes to the same result.
func TestMergesAreKept(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(content []byte) []byte{
		"whole":     func(content []byte) []byte { return content },
		"cut":       func(content []byte) []byte { return content[:len(content)-3] },
		"no result": func(content []byte) []byte { return regexp.MustCompile(`\{.*`).ReplaceAll(content, []byte("{}")) },
		"zeros":     func(content []byte) []byte { return slices.Concat(content[:100], make([]byte, len(content)-100)) },
		"too large": func(content []byte) []byte { return slices.Concat(content, make([]byte, 1<<20)) },
		"gone":      nil,
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+" "+format, func(t *testing.T) {
				t.Parallel()
				const odd = "odd\xff"
				w := newWorld(t, format, tree{"a": plain("a\n"), odd: plain("0\n")})
				w.git("config", "airlock.review", "land")
				w.commits("one", odd, "1\n")
				w.commits("two", odd, "2\n")
				w.commits("three", "three", "3\n")
				w.cycle()
				w.verdict(review.Reject, "no", "one")
				w.cycle()
				if clean, conflicting := w.keptMerges(); clean != 1 || conflicting != 1 {
					t.Fatalf("%d clean merges and %d with conflicts are kept", clean, conflicting)
				}
				before := w.states()
				file := filepath.Join(w.engine.Dir(), build.MergesFile)
				content, err := os.ReadFile(file)
				check(t, err)
				check(t, os.Remove(file))
				if damage != nil {
					check(t, os.WriteFile(file, damage(content), 0o600))
				}
				w.engine = newEngine(w.Repository, w.record, w.inner)
				w.cycle()
				if got := w.states(); got != before {
					t.Errorf("states %q, before %q", got, before)
				}
				w.verdict(review.Approve, "", "three")
				w.cycle()
				if got := w.subjects(); got != "three" {
					t.Errorf("landed %q", got)
				}
				w.nothingLeft()
			})
		}
	}
}
