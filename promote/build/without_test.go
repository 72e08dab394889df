package build

import "testing"

// TestNeedsReadsNothingBeyondItsBound has no commits that could be read.
func TestNeedsReadsNothingBeyondItsBound(t *testing.T) {
	t.Parallel()
	trees := &Trees{followed: mostFollowed + 1}
	if needs, err := trees.Needs(t.Context(), "c", nil); !needs || err != nil {
		t.Errorf("%t, %v", needs, err)
	}
}
