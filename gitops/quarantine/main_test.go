package quarantine

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestMain sets git's home and configuration for the tests.
func TestMain(m *testing.M) { gitopstest.Main(m) }

// world is a repository whose objects the tests read.
type world struct{ *gitopstest.Repo }

func newWorld(t testing.TB, initArgs ...string) *world {
	t.Helper()
	return &world{gitopstest.New(t, initArgs...)}
}
