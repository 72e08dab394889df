package hold

import (
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

func TestMain(m *testing.M) { gitopstest.Main(m) }

// TestCollisionKeepsItsPaths checks that a hold names another repository once, and that the caller's list of paths stays as it is.
func TestCollisionKeepsItsPaths(t *testing.T) {
	t.Parallel()
	w := gitopstest.New(t)
	w.CommitAll(gitopstest.Files{"a": "1"})
	w.Run("init", "-q", "other")
	paths := []string{"b", "other/.git/HEAD", "other/.git/config"}
	h := Collision(t.Context(), w.Repository, t.TempDir(), paths)
	if !slices.Equal(h.Places, []string{"b", "other"}) || !strings.HasSuffix(h.Message, "over it: other") {
		t.Errorf("%q at %q", h.Message, h.Places)
	}
	if !slices.Equal(paths, []string{"b", "other/.git/HEAD", "other/.git/config"}) {
		t.Errorf("the paths became %q", paths)
	}
}
