package calls

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestRunnerElsewhere runs the runner of the other processor architecture.
func TestRunnerElsewhere(t *testing.T) {
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		// This test cannot use prisontest, which imports this package.
		if slices.Contains(strings.Split(os.Getenv("AIRLOCK_TEST_REQUIRE"), ","), "native") {
			t.Fatal(err)
		}
		t.Skip("SKIPPED: no qemu-aarch64-static (apt-get install qemu-user-static)")
	}
	path := filepath.Join(t.TempDir(), "runner")
	if err := os.WriteFile(path, runner(arm64Machine, arm64Code), 0o700); err != nil {
		t.Fatal(err)
	}
	// getcwd(2) writes to the memory that an argument points to. close(2) fails with EBADF.
	requests := append(Call{Number: 17, Args: [6]uintptr{Pointer, 200}}.encode(), Call{Number: 57, Args: [6]uintptr{999}}.encode()...)
	cmd := exec.Command(emulator, path)
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(requests)
	out, err := cmd.Output()
	if err != nil || len(out) != 16 {
		t.Fatalf("%v: %q", err, out)
	}
	for i, want := range []int64{2, -int64(syscall.EBADF)} {
		if got := int64(binary.LittleEndian.Uint64(out[8*i:])); got != want {
			t.Errorf("result %d: %d, want %d", i, got, want)
		}
	}
}
