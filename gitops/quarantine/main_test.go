package quarantine

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestMain gives git a home and a configuration of the tests.
func TestMain(m *testing.M) { gitopstest.Main(m) }

// world is a repository whose objects are read.
type world struct{ *gitopstest.Repo }

func newWorld(t testing.TB, initArgs ...string) *world {
	t.Helper()
	return &world{gitopstest.New(t, initArgs...)}
}
