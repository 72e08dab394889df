package gitops

import (
	"fmt"
	"testing"
)

// TestSmudgeFailure uses messages of git. An agent chooses the names of files, and with them what a filter prints.
func TestSmudgeFailure(t *testing.T) {
	for _, c := range []struct {
		lines              []string
		file, filter, text string
	}{
		{[]string{"fatal: one.bin: smudge filter lfs failed"}, "one.bin: ", "lfs", "smudge filter lfs failed"},
		{[]string{"fatal: a: smudge filter nb failed", "fatal: one.bin: smudge filter lfs failed"}, "one.bin: ", "lfs", "smudge filter lfs failed; fatal: a: smudge filter nb failed"},
		{[]string{"fatal: a: smudge filter nb failed: smudge filter lfs failed"}, "a: smudge filter nb failed: ", "lfs", "smudge filter lfs failed"},
		{[]string{"server is down", "error: external filter 'cd /top && git-lfs filter-process' failed", "fatal: a b: smudge filter a b failed"}, "a b: ", "a b",
			"smudge filter a b failed; server is down"},
		{[]string{"fatal: one.bin: smudge filter lfs failed", "fatal: other"}, "", "", "step: git checkout-index: all"},
		{nil, "", "", "step: git checkout-index: all"},
	} {
		failed := &Error{Args: []string{"checkout-index"}, Stderr: "all", Lines: c.lines}
		file, filter, text := SmudgeFailure(fmt.Errorf("step: %w", failed))
		if file != c.file || filter != c.filter || text != c.text {
			t.Errorf("%q: %q, %q, %q", c.lines, file, filter, text)
		}
	}
}
