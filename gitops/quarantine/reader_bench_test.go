package quarantine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// processorTime returns the processor time in milliseconds of this process and of the child processes that it waited
// for.
func processorTime(b *testing.B) float64 {
	b.Helper()
	total := 0.0
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		gitopstest.Check(b, syscall.Getrusage(who, &r))
		total += float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6
	}
	return total
}

// BenchmarkReaders reads the objects of a landing with each reader: the commits, their changes, and the new files.
func BenchmarkReaders(b *testing.B) {
	for _, files := range []int{100, 20_000} {
		w := newWorld(b)
		all := gitopstest.Files{}
		for n := range files {
			all[fmt.Sprintf("d%d/e%d/f%d.go", n%50, n%7, n)] = randomText(n+1, 3000)
		}
		tip := w.CommitAll(all)
		w.Run("repack", "-adq")
		commits := []gitops.OID{}
		for n := range 300 {
			tip = w.Built(tip, gitopstest.Files{"d1/e1/f1.go": randomText(1, 3000) + fmt.Sprint(n), "d2/e2/f2.go": fmt.Sprint(n) + randomText(2, 3000)})
			commits = append(commits, tip)
		}
		w.Run("update-ref", "HEAD", string(tip))
		w.Run("repack", "-dq")
		w.Run("prune-packed")
		for _, count := range []int{1, 300} {
			for _, name := range []string{"go-git", "cat-file"} {
				b.Run(fmt.Sprintf("%d files, %d commits, %s", files, count, name), func(b *testing.B) {
					runtime.GC()
					begun := processorTime(b)
					for b.Loop() {
						look := Inspect(b.Context(), w.Git)
						if name == "go-git" {
							look.stores = openFolders("sha1", filepath.Join(w.GitDir, "objects"))
						}
						for _, id := range commits[:count] {
							c, err := look.Commit(b.Context(), id)
							gitopstest.Check(b, err)
							before, err := look.Commit(b.Context(), c.Parents[0])
							gitopstest.Check(b, err)
							changes, err := look.Diff(b.Context(), before.Tree, c.Tree, WithoutLimits)
							gitopstest.Check(b, err)
							for _, change := range changes {
								_, _, err := look.Blob(b.Context(), change.New.OID, 1<<20)
								gitopstest.Check(b, err)
							}
						}
						gitopstest.Check(b, look.Close())
					}
					b.ReportMetric((processorTime(b)-begun)/float64(b.N), "cpu-ms/op")
				})
			}
		}
	}
}
