package apart_test

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/git-airlock/git-airlock/prison/apart"
)

// TestStart starts processes while the terminal sends ^C again and again. No process may be ended by ^C.
func TestStart(t *testing.T) {
	if os.Getenv("APART_TEST") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStart$", "-test.v")
		again.Env = append(os.Environ(), "APART_TEST=1")
		again.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := syscall.Kill(0, syscall.SIGINT); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	for range 100 {
		p, err := apart.Start("/bin/sh", []string{"sh", "-c", "read nothing || exit 7"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}})
		if err != nil {
			t.Fatal(err)
		}
		if state, err := p.Wait(); err != nil || state.ExitCode() != 7 {
			t.Fatalf("it ended with %v, %v", state, err)
		}
	}
}
