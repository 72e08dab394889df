package ui

import (
	"strings"
	"testing"
)

// TestStepsOfHostileBuild shows numbers of steps that no builder has.
func TestStepsOfHostileBuild(t *testing.T) {
	for _, step := range []quotedStep{{"x", 9, 1, "y"}, {"x", -9, 1, "y"}, {"x", 1 << 62, 1 << 61, ""}, {"x", 1, -1, ""}} {
		var out strings.Builder
		s := steps{to: &out, terminal: true}
		s.show(step)
		s.end()
		if !strings.Contains(out.String(), "x") {
			t.Errorf("%+v: %q", step, out.String())
		}
	}
}
