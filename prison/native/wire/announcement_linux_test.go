package wire

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// The other side learns what the machine lacks, and no other cause: its own errors decide what a missing file means.
func TestFailureKeepsLack(t *testing.T) {
	for errno, kept := range map[unix.Errno]bool{unix.ENOSPC: true, unix.EDQUOT: true, unix.EMFILE: true, unix.ENOENT: false, unix.EACCES: false} {
		ours, file, err := Pair()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		theirs, err := FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		sent := fmt.Errorf("step: %w", errno)
		if err := theirs.Send(Failed(sent)); err != nil {
			t.Fatal(err)
		}
		_, err = AwaitReady(ours, Handed{})
		if err == nil || err.Error() != sent.Error() || errors.Is(err, errno) != kept {
			t.Errorf("%v: received %v, with the cause: %t", errno, err, errors.Is(err, errno))
		}
	}
}
