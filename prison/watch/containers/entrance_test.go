package containers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// harmless makes the entrance call getpid(2) in place of seccomp(2), so that it goes on.
func harmless(architecture string) []byte {
	program := entrance(architecture, make([]byte, 8), 0)
	le := binary.LittleEndian
	switch architecture {
	case "amd64":
		le.PutUint32(program[headSize+1:], 39)
	case "arm64":
		le.PutUint32(program[headSize:], 0xd2801588) // mov x8, 172
	}
	return program
}

// TestEntrance runs the entrance of both architectures. Without no_new_privs, or under an emulator, it gets no listener, and must not
// execute anything.
func TestEntrance(t *testing.T) {
	emulators := map[string]string{"arm64": "qemu-aarch64-static"}
	emulators[runtime.GOARCH] = ""
	for architecture, emulator := range emulators {
		var run []string
		if architecture != runtime.GOARCH {
			path, err := exec.LookPath(emulator)
			if err != nil {
				continue // the test of the runner in package calls reports that
			}
			run = []string{path}
		}
		for name, c := range map[string]struct {
			program []byte
			status  int
			out     string
		}{
			"no listener": {entrance(architecture, make([]byte, 7), 0), 126, ""},
			"listener":    {harmless(architecture), 3, "a b|value\n"},
		} {
			path := filepath.Join(t.TempDir(), "enter")
			if err := os.WriteFile(path, c.program, 0o700); err != nil {
				t.Fatal(err)
			}
			argv := append(run, path, "/bin/sh", "-c", `echo "$1|$VARIABLE"; exit 3`, "sh", "a b")
			var out bytes.Buffer
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env, cmd.Stdout = []string{"VARIABLE=value"}, &out
			var ended *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != c.status || out.String() != c.out {
				t.Errorf("%s, %s: %v, %q", architecture, name, err, out.String())
			}
		}
	}
}
