package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProgramOfReplaced replaces the file of a running program, as an update does: the digest stays that of the file that runs.
func TestProgramOfReplaced(t *testing.T) {
	if os.Getenv("AIRLOCK_TEST_REPLACED") != "" {
		self, err := os.Executable()
		if err == nil {
			err = os.Remove(self)
		}
		if err == nil {
			err = os.WriteFile(self, []byte("another program"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(programOf("1").SHA256 + "\n")
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	running := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(running, content, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(running, "-test.run", "^TestProgramOfReplaced$")
	cmd.Env = append(os.Environ(), "AIRLOCK_TEST_REPLACED=1")
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := sha256.Sum256(content)
	if string(printed) != hex.EncodeToString(want[:])+"\n" {
		t.Fatalf("the digest is %q, want %x", printed, want)
	}
}
