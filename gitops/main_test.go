package gitops_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestMain gives git a home and a configuration of the tests.
func TestMain(m *testing.M) { gitopstest.Main(m) }
