//go:build linux

package native_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/prison"
)

// TestFrozen freezes busy processes many times, and lets one go on in between. Everything runs again afterwards.
func TestFrozen(t *testing.T) {
	b, s := prepared(t)
	i := start(t, b, s)
	p := attach(t, b, s)
	output(t, b, s, `for i in 1 2; do setsid sh -c "while :; do /bin/true; echo x >/tmp/$i; done" >/dev/null 2>&1 & done; setsid sleep 1000 >/dev/null 2>&1 &`)
	inside := func(argv ...string) string {
		t.Helper()
		var out bytes.Buffer
		status, err := p.Exec(t.Context(), prison.Process{Argv: argv, Stdout: &out, Stderr: &out, Frozen: true})
		if err != nil || status != 0 {
			t.Errorf("%q: %d, %v: %s", argv, status, err, out.Bytes())
		}
		return out.String()
	}
	carryOn := func() { inside("sh", "-p", "-c", "kill -CONT -1") }
	for n := range 12 {
		f, err := p.(prison.Freezer).Freeze(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			id := strings.Fields(inside("grep", "^Uid:", "/proc/self/status"))
			if own := !i.Lacks(prison.SharedInit); len(id) < 3 || own && id[1] == id[2] {
				t.Errorf("the process of a restore has the uids %q, so the agent's processes can stop it", id)
			}
		}
		early, late := n == 3 || n == 7, n == 5
		if early {
			carryOn()
		}
		time.Sleep(10 * time.Millisecond)
		if err := f.Hold(); errors.Is(err, prison.ErrMoved) != early || !early && err != nil {
			t.Errorf("hold %d: %v", n, err)
		}
		if late {
			carryOn()
		}
		if err := f.Thaw(); errors.Is(err, prison.ErrMoved) != late || !late && err != nil {
			t.Errorf("thaw %d: %v", n, err)
		}
	}
	if got := output(t, b, s, `for i in 1 2; do rm -f /tmp/$i; until test -e /tmp/$i; do sleep 0.01; done; done; grep -l "^State:.T" /proc/[0-9]*/status; echo run`); got != "run" {
		t.Errorf("stopped afterwards: %s", got)
	}
}
