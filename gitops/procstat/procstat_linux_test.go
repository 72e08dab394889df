package procstat

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestFieldsAfterName reads the fields of a process whose name looks like the end of a name and a state.
func TestFieldsAfterName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "a) T 1 b")
	if err := os.Symlink(sleep, program); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command(program, "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	fields, err := Fields(sleeper.Process.Pid)
	if err != nil || len(fields) < 50 || fields[0] == "T" || fields[1] != strconv.Itoa(os.Getpid()) {
		t.Errorf("the fields are %q, error %v", fields, err)
	}
}

// TestFieldsOfNoProcess reads the fields of a process that does not exist.
func TestFieldsOfNoProcess(t *testing.T) {
	if fields, err := Fields(-1); err == nil || len(fields) > 0 {
		t.Errorf("the fields are %q, error %v", fields, err)
	}
}
