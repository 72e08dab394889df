package image

import (
	"slices"
	"testing"
)

// TestPrintedStepsAreOutput checks that a step cannot print the beginning of another step.
func TestPrintedStepsAreOutput(t *testing.T) {
	var told []Step
	f := follower{progress: func(s Step) { told = append(told, s) }}
	for _, line := range []string{
		"Step 1/3 : FROM base", " ---> 0123456789ab",
		"Step 2/3 : RUN sh a", "Step 9/1 : x", "Step 3/9 : x", "Step 2/3 : x", "Step 99999999999999999999/3 : x", "Step 0/3 : x",
		"Step 3/3 : RUN sh b",
	} {
		f.line(line)
	}
	begun := slices.DeleteFunc(told, func(s Step) bool { return s.Said != "" })
	want := []Step{{Number: 1, Of: 3, What: "FROM base"}, {Number: 2, Of: 3, What: "RUN sh a"}, {Number: 3, Of: 3, What: "RUN sh b"}}
	if !slices.Equal(begun, want) {
		t.Errorf("%+v", begun)
	}
}
