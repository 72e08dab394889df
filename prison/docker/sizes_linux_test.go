package docker_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/prison/docker"
	"github.com/git-airlock/git-airlock/prison/prisontest"

	"golang.org/x/sys/unix"
)

// TestSizesThatArriveTogether joins a terminal while conmon is stopped. So conmon then reads two sizes at once, and drops the second.
func TestSizesThatArriveTogether(t *testing.T) {
	onEachAsRoot(t, []string{"podman"}, func(t *testing.T, b *docker.Backend, o prisontest.Options) {
		s := prisontest.NewSpec(t, b, o)
		prepare(t, b, s)
		p := again(t, b, s)
		script := `until [ "$(stty size)" = "31 62" ]; do sleep 0.05; done; echo seen`
		if err := p.Launch(t.Context(), prison.Process{Argv: []string{"sh", "-c", script}}); err != nil {
			t.Fatal(err)
		}
		conmon := conmonOf(t, s)
		unix.Kill(conmon, unix.SIGSTOP)
		time.AfterFunc(250*time.Millisecond, func() { unix.Kill(conmon, unix.SIGCONT) })
		out, screen := io.Pipe()
		joined := make(chan error, 1)
		go func() {
			joined <- p.Join(t.Context(), prison.Process{Stdout: screen, Terminal: &prison.Terminal{Size: prison.Size{Rows: 31, Cols: 62}}})
			screen.Close()
		}()
		text, err := io.ReadAll(out)
		if !strings.Contains(string(text), "seen") || err != nil || <-joined != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// conmonOf returns the conmon process of a launched command.
func conmonOf(t *testing.T, s prison.Spec) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "command.json"))
	var launched struct{ Exec string }
	if err == nil {
		err = json.Unmarshal(text, &launched)
	}
	if err != nil || launched.Exec == "" {
		t.Fatalf("%s: %v", text, err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		args, _ := os.ReadFile(name)
		if bytes.Contains(args, []byte("conmon")) && bytes.Contains(args, []byte(launched.Exec)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	t.Fatal("no conmon has " + launched.Exec)
	return 0
}
