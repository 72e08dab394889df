package manual

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/prisontest"
)

// TestTroff checks that troff prints hostile text unchanged.
func TestTroff(t *testing.T) {
	_, err := exec.LookPath("mandoc")
	prisontest.Need(t, "shells", err)
	const hostile = `.sp 9 \fIx\fP 'y' "z" -- ~/a ^ \(co \n(.l`
	for _, text := range []string{Literal(hostile), Literal("'br " + hostile), prose(hostile), prose("`" + hostile + "`")} {
		cmd := exec.Command("mandoc", "-Tutf8", "-O", "width=200")
		cmd.Stdin = strings.NewReader(".TH X 1 2025-01-01\n.SH NAME\nx \\- y\n.SH X\n" + text + "\n")
		out, err := cmd.Output()
		if shown := regexp.MustCompile(".\b").ReplaceAllString(string(out), ""); err != nil || !strings.Contains(shown, hostile) {
			t.Errorf("%q is shown as %q: %v", text, shown, err)
		}
	}
}
