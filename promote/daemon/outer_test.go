package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
)

// TestLinkedConfigurationIsWatched changes the user's configuration behind two links, and each link.
func TestLinkedConfigurationIsWatched(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"one", "two"} {
		check(os.Mkdir(at(folder), 0o700))
		check(os.WriteFile(at(folder+"/gitconfig"), []byte("[core]\n"), 0o600))
	}
	check(os.Symlink("one", at("way")))
	check(os.Symlink("way/gitconfig", at(".gitconfig")))
	w := outerWatch{repo: &gitops.Repository{GitDir: dir, CommonDir: dir, Top: dir}, config: []string{at(".gitconfig")}}
	before := w.signature(nil)
	for _, c := range []struct {
		what   string
		change func() error
	}{
		{"nothing", func() error { return nil }},
		{"the file", func() error { return os.WriteFile(at("one/gitconfig"), []byte("[core]\n\tabbrev = 9\n"), 0o600) }},
		{"the link on the way", func() error { return relink("two", at("way")) }},
		{"the link itself", func() error { return relink("one/gitconfig", at(".gitconfig")) }},
		{"the link, which now leads nowhere", func() error { return relink("none", at(".gitconfig")) }},
	} {
		check(c.change())
		after := w.signature(nil)
		if changed := after != before; changed != (c.what != "nothing") {
			t.Errorf("%s has changed: a change is seen: %t", c.what, changed)
		}
		before = after
	}
}

// relink makes a link lead elsewhere.
func relink(target, link string) error {
	if err := os.Remove(link); err != nil {
		return err
	}
	return os.Symlink(target, link)
}
