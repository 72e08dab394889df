package quarantine

import (
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/inner"
)

// TestExceededLimits checks that a caller can see that another try will not help.
func TestExceededLimits(t *testing.T) {
	for _, err := range []error{tooLong(inner.DefaultLimits, "", strings.Repeat("x", 300)), tooManyChanges(inner.DefaultLimits, "")} {
		var invalid *inner.Invalid
		if !errors.As(err, &invalid) || !invalid.Limit {
			t.Errorf("%v is not an exceeded limit", err)
		}
	}
}
