package containers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/prison/hostfile"
	"github.com/git-airlock/git-airlock/prison/native/wire"
)

// TestRecorderWithoutKeeper checks recorders whose keeper does not answer. One belongs to a copy of the folder. The keeper of another one was
// killed: that recorder has ended the container, and runs for a moment longer.
func TestRecorderWithoutKeeper(t *testing.T) {
	recorder := exec.Command("sleep", "1000")
	recorder.Args[0] = wire.Recorder
	ended := exec.Command("true")
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { recorder.Process.Kill(); recorder.Wait() })
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		first, recorder int
		want            bool
	}{
		"in a copy of the folder":   {os.Getpid(), recorder.Process.Pid, true},
		"the container has ended":   {ended.Process.Pid, recorder.Process.Pid, false},
		"the recorder has ended":    {os.Getpid(), ended.Process.Pid, false},
		"another process's id":      {os.Getpid(), os.Getpid(), false},
		"a record that never began": {},
	} {
		dir := t.TempDir()
		// Each line of a process's control groups has a colon, which is the container here.
		if err := hostfile.Write(filepath.Join(dir, stateName), state{Container: ":", First: c.first, Recorder: c.recorder}); err != nil {
			t.Fatal(err)
		}
		if got := AliveElsewhere(dir); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestRuns looks for a process that runs, for one that belongs to another container, and for one that has ended.
func TestRuns(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if !Runs(":", os.Getpid()) || Runs("0123456789abcdef", os.Getpid()) || Runs(":", ended.Process.Pid) || Runs(":", 0) {
		t.Errorf("this process: %v, another container's: %v, an ended one: %v, none: %v",
			Runs(":", os.Getpid()), Runs("0123456789abcdef", os.Getpid()), Runs(":", ended.Process.Pid), Runs(":", 0))
	}
}
