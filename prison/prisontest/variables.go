package prisontest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// variables checks that a prison has the variables of its last start, with any values, that a process's own variables replace them, and
// that the host folder contains no value.
func variables(t *testing.T, b prison.Backend, o Options) {
	const token = "value-that-no-file-has"
	odd := "it's \"$HOME\" \\n `x`\n \xff\x80 " + token + "\n"
	s := NewSpec(t, b, o)
	s.Env = []string{"ODD=" + odd, "EMPTY=", "TERM=dumb", "GIVEN=prison", "UID=7", "LONG=" + strings.Repeat("long ", 20000)}
	x := startFirst(t, b, s)
	if got := x.must(t, `printf '%s|' "$ODD"`); got != odd+"|" {
		t.Errorf("%q came in as %q", odd, got)
	}
	if got := x.must(t, `echo "${EMPTY-unset}$TERM $GIVEN ${#LONG}"`); got != "dumb prison 100000" {
		t.Errorf("the others: %q", got)
	}
	var out bytes.Buffer
	_, err := x.Exec(t.Context(), prison.Process{
		Argv: []string{"sh", "-c", `echo "$GIVEN $TERM"`}, Env: []string{"GIVEN=process"}, Stdout: &out, Terminal: &prison.Terminal{Term: "vt100"},
	})
	if err != nil || strings.TrimSpace(out.String()) != "process vt100" {
		t.Errorf("%v: a process's own: %q", err, out.String())
	}
	out.Reset()
	_, err = x.Exec(t.Context(), prison.Process{
		Argv: []string{"sh", "-c", `echo "$OWN${GIVEN-}${ODD-}"`}, Env: []string{"OWN=own"}, Stdout: &out, Bare: true,
	})
	if err != nil || strings.TrimSpace(out.String()) != "own" {
		t.Errorf("%v: a bare process: %q", err, out.String())
	}
	err = x.Launch(t.Context(), prison.Process{Argv: []string{"sh", "-c", `printf %s "$GIVEN $ODD" >launched; sleep 1000`}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the launched command has them", func() bool { return x.sh(t, "cat launched; echo").out == "prison "+odd })
	x.must(t, "! grep -aqs "+token[:5]+"[-]that /proc/[0-9]*/cmdline")
	noValue(t, s.Dir, token)
	if err := b.Stop(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	noValue(t, s.Dir, token)
	s.Env = []string{"GIVEN=again"}
	x = restart(t, b, s)
	if got := x.must(t, `echo "$GIVEN${ODD-}"`); got != "again" {
		t.Errorf("after another start: %q", got)
	}
}

func noValue(t *testing.T, dir, value string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // the agent's own folders cannot be read
		}
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte(value)) {
			t.Errorf("%s has the value", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
