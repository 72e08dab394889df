package records

import (
	"strings"
	"testing"
)

// TestPrintPlan checks that a plan counts git's objects, and names all other paths.
func TestPrintPlan(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := printPlan(&out, []string{".git/HEAD", ".git/objects/00", ".git/objects/00/11"}, []string{".git/objects/22", "new"})
	want := "write  .git/HEAD\nwrite  2 paths in .git/objects/\nremove new\nremove 1 path in .git/objects/\n"
	if err != nil || out.String() != want {
		t.Errorf("%q, %v, want %q", out.String(), err, want)
	}
}
