package ui

import (
	"strings"
	"testing"
)

// TestFold folds a line with colours at each width.
func TestFold(t *testing.T) {
	const line = "command    sh -c \x1b[32mwhile true\x1b[m; do something with a long name; done: \x1b[1mrunning\x1b[m"
	plain := func(s string) string {
		return strings.NewReplacer("\x1b[32m", "", "\x1b[1m", "", "\x1b[m", "").Replace(s)
	}
	for cols := 1; cols < 100; cols++ {
		rows := fold(line, cols)
		whole := ""
		for i, row := range rows {
			if n := len(plain(row)); n > cols {
				t.Errorf("%d columns: %q takes %d", cols, row, n)
			}
			if i > 0 && cols > 2*statusIndent {
				row = strings.TrimPrefix(row, strings.Repeat(" ", statusIndent))
			}
			whole += row
		}
		if whole != line {
			t.Errorf("%d columns: %q", cols, whole)
		}
	}
	if got := fold("hold       a reason of some words", 26); len(got) != 2 || got[0] != "hold       a reason of " || got[1] != "           some words" {
		t.Errorf("%q", got)
	}
	if got := fold(line, 0); len(got) != 1 { // a terminal without columns
		t.Errorf("%q", got)
	}
}

func TestViewFitsTheTerminal(t *testing.T) {
	var out strings.Builder
	v := View{out: &out, shown: "something", size: func() (int, int) { return 7, 30 },
		last: Document{State: "running", ID: "7f3a", Branch: "feat/" + strings.Repeat("long", 20), Workspace: ".meadow-7f3a"}}
	v.Draw()
	if n := strings.Count(out.String(), "\n") + 1; n != 6 {
		t.Errorf("%d rows of 7 are filled: %q", n, out.String())
	}
}
