package land

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// TestLandObeysTheAttributesFile compares landings with git merge --ff-only, for paths of core.attributesFile that git takes from the top of
// the work tree, and others.
func TestLandObeysTheAttributesFile(t *testing.T) {
	t.Parallel()
	const attributes = "*.txt text eol=crlf\n*.id ident\n*.up filter=up\n"
	for name, of := range map[string]func(w *world) string{
		"absolute":        func(w *world) string { return filepath.Join(w.GitDir, "attributes") },
		"in the git dir":  func(*world) string { return ".git/attributes" },
		"beside":          func(*world) string { return "../beside/attributes" },
		"through a link":  func(*world) string { return "link/../attributes" },
		"with a dot":      func(*world) string { return "./.git/attributes" },
		"with odd bytes":  func(*world) string { return ".git/a=b \"c" },
		"absent":          func(*world) string { return "none" },
		"optional":        func(*world) string { return ":(optional).git/attributes" }, // since git 2.52
		"optional absent": func(*world) string { return ":(optional)none" },
		"empty":           func(*world) string { return "" },
		"global settings": func(*world) string { return ".git/attributes" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			beside := filepath.Join(filepath.Dir(w.Top), "beside")
			gitopstest.Check(t, os.MkdirAll(filepath.Join(beside, "in"), 0o755))
			old := w.CommitAll(gitopstest.Files{"link": gitopstest.LinkTo + "../beside/in", "a.txt": "1\n", "a.up": "abc\n"})
			for _, dir := range []string{w.GitDir, beside} {
				for _, file := range []string{"attributes", "a=b \"c"} {
					gitopstest.Check(t, os.WriteFile(filepath.Join(dir, file), []byte(attributes), 0o600))
				}
			}
			w.Run("config", "filter.up.smudge", "tr a-z A-Z")
			w.Run("config", "filter.up.clean", "tr A-Z a-z")
			if name == "global settings" {
				settings := filepath.Join(beside, "config")
				w.Run("config", "--file", settings, "core.attributesFile", of(w))
				w.Run("config", "include.path", settings)
			} else {
				w.Run("config", "core.attributesFile", of(w))
			}
			w.Run("reset", "-q", "--hard")
			new := w.Built(old, gitopstest.Files{"a.txt": "2\n", "d/b.txt": "3\n", "c.id": "$Id$\n", "a.up": "def\n", "d/e.up": "x\n"})
			twin := w.Top + "-twin"
			copied, err := exec.Command("cp", "-a", w.Top, twin).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, copied)
			}
			w.land(old, new)
			w.Run("-C", twin, "merge", "-q", "--ff-only", string(new))
			for _, file := range []string{"a.txt", "d/b.txt", "c.id", "a.up", "d/e.up"} {
				got, err := os.ReadFile(filepath.Join(w.Top, file))
				gitopstest.Check(t, err)
				want, err := os.ReadFile(filepath.Join(twin, file))
				gitopstest.Check(t, err)
				if string(got) != string(want) {
					t.Errorf("%s is %q, and git writes %q", file, got, want)
				}
			}
			w.wantStatus("")
		})
	}
}
