//go:build linux

package native

import (
	"context"
	"fmt"
	"os"
	"sort"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

func TestFigures(t *testing.T) {
	if os.Getenv("FIG") == "" {
		t.Skip()
	}
	b := New()
	dir := t.TempDir()
	s := prison.Spec{ID: "x", Dir: dir, Workspace: t.TempDir() + "/ws", UID: 1879049000, GID: 1879049000, User: "dev", Hostname: "box"}
	if os.Geteuid() != 0 {
		s.UID, s.GID = 100234, 100234
	}
	ctx := context.Background()
	if err := b.Prepare(ctx, s); err != nil {
		t.Fatal(err)
	}
	defer b.Wipe(ctx, s)
	times := map[string][]time.Duration{}
	tm := func(name string, f func()) {
		t0 := time.Now()
		f()
		times[name] = append(times[name], time.Since(t0))
	}
	for i := 0; i < 20; i++ {
		tm("probe", func() { must(t, b.Probe(ctx)) })
		tm("start", func() {
			iso, err := b.Start(ctx, s)
			must(t, err)
			if i == 0 {
				t.Log(iso)
			}
		})
		p, err := b.Attach(ctx, s)
		must(t, err)
		for range 10 {
			tm("exec true", func() { _, err := p.Exec(ctx, prison.Process{Argv: []string{"/bin/true"}}); must(t, err) })
		}
		tm("exec git --version", func() { _, err := p.Exec(ctx, prison.Process{Argv: []string{"git", "--version"}}); must(t, err) })
		if i == 0 {
			st, _ := readState(dir)
			for _, pid := range []int{st.Keeper.PID, st.Init.PID} {
				c, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
				c2, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				t.Logf("%s%s", c, c2)
			}
		}
		tm("stop", func() { must(t, b.Stop(ctx, s)) })
		tm("open", func() { p, err = b.Open(ctx, s); must(t, err) })
		tm("open exec", func() { _, err := p.Exec(ctx, prison.Process{Argv: []string{"/bin/true"}}); must(t, err) })
		tm("close", func() { p.Close() })
	}
	for n, d := range times {
		sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
		t.Log(n, d[len(d)/2], d[0], d[len(d)-1])
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
