package land

import (
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestSlowPatterns lands a commit with an attribute file for which git needs exponential time. The landing ends and leaves
// nothing behind.
func TestSlowPatterns(t *testing.T) {
	defer func(before time.Duration) { buildTime = before }(buildTime)
	buildTime = time.Second
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a/b": "1"})
	rest()
	slow := gitopstest.Files{".gitattributes": strings.Repeat("**/a/", 40) + "b text\n", strings.Repeat("a/", 60) + "c": "1"}
	err := Land(t.Context(), w.Repository, w.landing(old, w.Built(old, slow)))
	if !gitops.Spent(err) {
		t.Errorf("the landing ends with %v", err)
	}
	if got := gitops.OID(w.Run("rev-parse", "HEAD")); got != old {
		t.Errorf("HEAD is %s, want %s", got, old)
	}
	w.NothingLeft()
	w.land(old, w.Built(old, gitopstest.Files{".gitattributes": "*.b text\n", "a/b": "2"}))
}
