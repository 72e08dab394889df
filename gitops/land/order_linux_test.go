package land

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// The refs of a landing's transaction move in the requested order, such as notes before the branch.
func TestRefsMoveInOrder(t *testing.T) {
	t.Parallel()
	k := newKillFixture(t)
	gitopstest.Check(t, Land(t.Context(), k.Repository, k.request))
	k.isAfter()
	order := []string{notesRef, notesRef + "-2", "refs/heads/main", "refs/airlock/7f3a/promoted"}
	var last time.Time
	for _, ref := range order {
		info, err := os.Stat(filepath.Join(k.CommonDir, ref))
		gitopstest.Check(t, err)
		// A rename changes the inode's own time.
		changed := time.Unix(info.Sys().(*syscall.Stat_t).Ctim.Unix())
		if changed.Before(last) {
			t.Errorf("%s moved before the one that comes first", ref)
		}
		last = changed
	}
}
