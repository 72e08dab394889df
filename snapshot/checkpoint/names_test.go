package checkpoint

import (
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/snapshot/checkpoint/files"
)

// FuzzNames checks that each name has one escaped form, which is safe in a tree.
func FuzzNames(f *testing.F) {
	for _, name := range []string{".git", "a", "%", "\xff", "git~1", "dot.", "%2Egit", metaName} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if files.CheckName(name) == nil {
			escaped := treeNameOf(name)
			if back, err := fileNameOf(escaped); err != nil || back != name {
				t.Errorf("%q: %q: %q, %v", name, escaped, back, err)
			}
			if strings.ContainsAny(escaped, `\~/`) || escaped[0] == '.' || escaped == metaName {
				t.Errorf("%q: %q", name, escaped)
			}
		}
		if back, err := fileNameOf(name); err == nil && treeNameOf(back) != name {
			t.Errorf("%q is an escaped form of %q", name, back)
		}
		parseMeta([]byte(name)) // must not panic
	})
}
