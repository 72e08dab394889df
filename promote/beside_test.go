package promote_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSeveralCommitsAddFiles lands several commits that add files. One git check-ignore process checks all of them.
func TestSeveralCommitsAddFiles(t *testing.T) {
	w := newWorld(t, "sha1", tree{"a": plain("a\n")})
	w.git("config", "airlock.policy.ignored-path", "hold")
	for _, file := range []string{"one", "two", "three"} {
		check(t, os.WriteFile(filepath.Join(w.inner, file), nil, 0o644))
		git(t, w.inner, "add", file)
		git(t, w.inner, "commit", "-q", "-m", file)
	}
	if o := w.cycle(); o.Pending > 0 || len(o.Holds) > 0 {
		t.Errorf("%+v", o)
	}
}
