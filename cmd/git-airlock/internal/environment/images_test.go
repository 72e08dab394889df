package environment

import (
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker/image"
)

// TestDistrustIsExplainedFirst has a build that trusts no authority of the network and leaves images on a slow engine: the way out of the first
// comes before what removes the images.
func TestDistrustIsExplainedFirst(t *testing.T) {
	failed := &image.BuildError{Reason: "x509: certificate signed by unknown authority"}
	if !distrusts(failed) {
		t.Fatal("the message is not recognized")
	}
	for _, x := range []struct {
		err  error
		want int
	}{{failed, 1}, {errors.Join(failed, &image.LeftError{}), 2}} {
		own, ok := errors.AsType[interface { // as session.Next finds it
			error
			Next() []string
		}](error(distrustError{x.err}))
		if !ok {
			t.Fatal("no commands")
		}
		next := own.Next()
		if len(next) != x.want || !strings.HasPrefix(next[0], "git airlock help recipe") || x.want > 1 && !strings.Contains(next[1], "image prune") {
			t.Errorf("%v: %q", x.err, next)
		}
	}
}
