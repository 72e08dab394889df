//go:build linux

package native_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// firstByte returns the time until a started program writes its first byte.
func firstByte(b *testing.B, start func(w *os.File)) time.Duration {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	begun := time.Now()
	start(w)
	if _, err := r.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}

// reportMedian reports the median instead of the mean, which a single interruption would distort.
func reportMedian(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-median")
}

// BenchmarkFirst makes a prison and waits for the first output of a program in it.
func BenchmarkFirst(b *testing.B) {
	backend, s := benchSpec(b)
	var times []time.Duration
	for b.Loop() {
		times = append(times, firstByte(b, func(w *os.File) {
			if _, err := backend.Start(b.Context(), s); err != nil {
				b.Fatal(err)
			}
			p, err := backend.Attach(b.Context(), s)
			if err != nil {
				b.Fatal(err)
			}
			// if this fails, no output comes
			go p.Exec(b.Context(), prison.Process{Argv: []string{"/bin/echo"}, Stdout: writer{w}})
		}))
		if err := backend.Stop(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, times)
}

// writer closes its file after the first write.
type writer struct{ *os.File }

func (w writer) Write(p []byte) (int, error) {
	defer w.Close()
	return w.File.Write(p)
}

// BenchmarkFirstBubblewrap does the same with bubblewrap, with the same namespaces and folders.
func BenchmarkFirstBubblewrap(b *testing.B) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		b.Skip(err)
	}
	var times []time.Duration
	for b.Loop() {
		cmd := exec.Command(program, "--unshare-all", "--unshare-user", "--die-with-parent", "--ro-bind", "/usr", "/usr",
			"--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
			"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "/bin/echo")
		cmd.Stderr = os.Stderr
		times = append(times, firstByte(b, func(w *os.File) {
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			w.Close()
		}))
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, times)
}
