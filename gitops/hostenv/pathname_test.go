package hostenv_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

func TestPathname(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	for _, c := range []struct{ value, path, atTop string }{
		{"", "", ""},
		{"hooks", "hooks", "/top/hooks"},
		{":(optional)hooks", "hooks", ":(optional)/top/hooks"},
		{":(optional)a/:(optional)", "a/:(optional)", ":(optional)/top/a/:(optional)"},
		{":(optional)", "", ":(optional)"},
		{":(optional)~/hooks", "/home/u/hooks", ":(optional)~/hooks"},
		{"~/hooks", "/home/u/hooks", "~/hooks"},
		{"/hooks", "/hooks", "/hooks"},
		{"%(prefix)/hooks", "%(prefix)/hooks", "%(prefix)/hooks"},
	} {
		if got := hostenv.Pathname(c.value); got != c.path {
			t.Errorf("the path of %q: %q", c.value, got)
		}
		if got := hostenv.AtTop(c.value, "/top"); got != c.atTop {
			t.Errorf("%q at the top: %q", c.value, got)
		}
	}
}
