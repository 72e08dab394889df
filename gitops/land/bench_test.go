package land

import (
	"fmt"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// large is a repository of 20,000 files and two commits to go to and fro between, which differ in one of them.
func large(b *testing.B, changed int) (w *world, one, two gitops.OID) {
	w = newWorld(b)
	f, g := gitopstest.Files{}, gitopstest.Files{}
	for i := range 20_000 {
		name := fmt.Sprintf("d%d/e%d/f%d", i%20, i%400, i)
		f[name] = fmt.Sprint("content ", i)
		if i < changed {
			g[name] = fmt.Sprint("changed ", i)
		}
	}
	one = w.CommitAll(f)
	w.Run("status")
	w.Run("gc", "-q")
	return w, one, w.Built(one, g)
}

// BenchmarkLand measures landings in a repository of 20,000 files and reports how they compare
// with git merge --ff-only, which neither journals nor syncs nor spares ignored files.
func BenchmarkLand(b *testing.B) {
	for _, changed := range []int{1, 50, 2000} {
		b.Run(fmt.Sprint(changed), func(b *testing.B) {
			w, one, two := large(b, changed)
			back := func() {
				b.Helper()
				w.Run("reset", "-q", "--hard", string(one))
				w.Run("update-ref", "-d", "refs/airlock/7f3a/promoted")
				rest()
			}
			landing := w.landing(one, two)
			var landed, merged time.Duration
			for b.Loop() {
				b.StopTimer()
				back()
				started := time.Now()
				w.Run("merge", "-q", "--ff-only", string(two))
				merged += time.Since(started)
				back()
				b.StartTimer()
				started = time.Now()
				if err := Land(b.Context(), w.Repository, landing); err != nil {
					b.Fatal(err)
				}
				landed += time.Since(started)
			}
			b.ReportMetric(float64(merged.Microseconds())/float64(b.N)/1000, "merge-ms/op")
			b.ReportMetric(float64(landed.Microseconds())/float64(b.N)/1000, "land-ms/op")
			b.ReportMetric(float64(landed)/float64(merged), "land/merge")
		})
	}
}
