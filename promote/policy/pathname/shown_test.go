package pathname

import (
	"strings"
	"testing"
)

// TestShownPathsDiffer compares the shown forms of paths that look alike. Each stands for one path.
func TestShownPathsDiffer(t *testing.T) {
	paths := map[string]string{ // by what is shown
		"q/\x1ba":      `q/\u001ba`,
		`q/\u001ba`:    `q/\\u001ba`,
		`q/\\u001ba`:   `q/\\\\u001ba`,
		"q/\x1ba\\b":   `q/\u001ba\\b`,
		`a\b`:          `a\b`,
		`a\\b`:         `a\\\\b`,
		"a\nb":         `a\nb`,
		`a\nb`:         `a\\nb`,
		"a\xffb":       `a\xffb`,
		`a\xffb`:       `a\\xffb`,
		"a\U000e0041b": `a\U000e0041b`,
		`a\x41b`:       `a\x41b`,
		`C:\users`:     `C:\users`,
		`end\`:         `end\`,
		"plain/é b":    "plain/é b",
	}
	for path, want := range paths {
		shown := Shown(path)
		if shown != want {
			t.Errorf("%q is shown as %s, want %s", path, shown, want)
		}
		if got := Meant(shown); got != path {
			t.Errorf("%q, shown as %s, means %q", path, shown, got)
		}
		if got := Meant(path); !strings.Contains(path, `\`) && got != path {
			t.Errorf("%q means %q", path, got)
		}
	}
}

// FuzzShown checks that the shown form of a path names this path.
func FuzzShown(f *testing.F) {
	for _, path := range []string{`q/\u001b`, "q/\x1b", `\\`, "\xff\\x", `\U0010ffff`, "\u202e"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if got := Meant(Shown(path)); len(path) < 2000 && got != path {
			t.Errorf("%q, shown as %q, means %q", path, Shown(path), got)
		}
	})
}
