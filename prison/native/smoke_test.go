//go:build linux

package native

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

func TestMain(m *testing.M) { Reexec(); os.Exit(m.Run()) }

func TestSmoke(t *testing.T) {
	b := New()
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	s := prison.Spec{ID: "x", Dir: dir, Workspace: t.TempDir() + "/ws", UID: 1879049000, GID: 1879049000, User: "dev", Hostname: "box"}
	if os.Geteuid() != 0 {
		s.UID, s.GID = 100234, 100234
	}
	ctx := context.Background()
	if err := b.Prepare(ctx, s); err != nil {
		t.Fatal(err)
	}
	t0 := time.Now()
	iso, err := b.Start(ctx, s)
	t.Log(time.Since(t0), iso, err)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Wipe(ctx, s)
	defer b.Stop(ctx, s)
	p, err := b.Attach(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := os.Getenv("SMOKE")
	if cmd == "" {
		cmd = "id; cat /proc/self/status | grep -E 'Cap|NoNew|Secc|Uid|Groups'; cat /proc/self/mountinfo; ls -la / /workspace ~ /dev; env; ps -ef; cat /proc/1/comm /proc/1/task/*/comm; ls /proc/1/fd; cat /proc/net/dev; hostname; touch ~/x /workspace/y; echo hi > /dev/stderr"
	}
	for i := 0; i < 10; i++ {
		t0 = time.Now()
		st, err := p.Exec(ctx, prison.Process{Argv: []string{"/bin/true"}})
		t.Log(time.Since(t0), st, err)
	}
	st, err := p.Exec(ctx, prison.Process{Argv: []string{"/bin/sh", "-c", cmd}, Stdout: &out, Stderr: &out})
	t.Log(st, err, out.String())
	t0 = time.Now()
	t.Log(b.Stop(ctx, s), time.Since(t0))
	t0 = time.Now()
	o, err := b.Open(ctx, s)
	t.Log(err, time.Since(t0))
	if err == nil {
		out.Reset()
		st, err := o.Exec(ctx, prison.Process{Argv: []string{"/bin/sh", "-c", "id; ls -la /workspace"}, Stdout: &out, Stderr: &out})
		t.Log(st, err, out.String())
		o.Close()
	}
}
