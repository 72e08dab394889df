//go:build linux

package calls

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestScript runs the script on this machine.
func TestScript(t *testing.T) {
	if ownRunner() == nil {
		t.Skip("no program for this processor")
	}
	list := []Call{
		{Number: syscall.SYS_GETUID}, {Number: syscall.SYS_CLOSE, Args: [6]uintptr{1000}},
		{Number: syscall.SYS_WRITE, Args: [6]uintptr{2, Pointer, 4}, Data: []byte("said")},
	}
	script, input, err := Script(list)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command("sh", "-c", script, "sh", t.TempDir())
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	results, err := Results(out, len(list))
	if err != nil {
		t.Fatal(err)
	}
	if results[0] != int64(os.Getuid()) || results[1] != -int64(syscall.EBADF) || results[2] != 4 || said.String() != "said" {
		t.Errorf("%v, %q", results, &said)
	}
	if _, err := Results(out[1:], len(list)); err == nil {
		t.Error("a result is missing, and that is not an error")
	}
}
