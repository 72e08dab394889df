package ui

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestHintsKnowTheConfiguration checks that a hint obeys the configuration that the command has read, and that only a command that has not
// read any makes a hint read it.
func TestHintsKnowTheConfiguration(t *testing.T) {
	var out strings.Builder
	reads := 0
	m := NewMessages(&out, func() gitops.Config { reads++; return gitops.Config{} })
	Hint(m, "first")
	Hint(m, "second")
	if reads != 1 || out.String() != "hint: first\nhint: second\n" {
		t.Errorf("read %d times: %q", reads, out.String())
	}
	Know(m, gitops.Config{"advice.airlock": "false"})
	Hint(m, "third")
	if reads != 1 || strings.Contains(out.String(), "third") {
		t.Errorf("read %d times: %q", reads, out.String())
	}
	Know(&out, gitops.Config{}) // only a Messages has hints
}
