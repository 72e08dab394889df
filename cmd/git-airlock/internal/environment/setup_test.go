package environment

import (
	"testing"

	"github.com/git-airlock/git-airlock/prison/docker/image"
)

// TestContextsDiffer checks that no other files of a build have the list of these.
func TestContextsDiffer(t *testing.T) {
	two := contextList([]image.File{{Name: "a", Content: []byte("1"), Mode: 0o644}, {Name: "b", Content: []byte("2"), Mode: 0o644}})
	one := contextList([]image.File{{Name: "a 644\n" + digestOf([]byte("2")) + "  b", Content: []byte("1"), Mode: 0o644}})
	if one == two {
		t.Errorf("one file with a strange name has the list of two: %q", one)
	}
	file := contextList([]image.File{{Name: "a", Content: []byte("target"), Mode: 0o644}})
	if link := contextList([]image.File{{Name: "a", Link: "target", Mode: 0o644}}); link == file {
		t.Errorf("a link has the list of a file: %q", link)
	}
	if escaped, plain := sumLine(nil, `a\nb`), sumLine(nil, "a\nb"); escaped == plain {
		t.Errorf("%q", plain)
	}
}
