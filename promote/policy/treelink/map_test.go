package treelink

import (
	"strings"
	"testing"
)

// TestLongLinksTakeFewSteps checks that following a link takes a step for each part of its target, however long the way is by then.
func TestLongLinksTakeFewSteps(t *testing.T) {
	m := &Map{own: map[string]string{}, unusable: map[string]string{}, root: &place{}}
	m.add("a/b", named{name: "b", target: strings.Repeat("c/", targetLimit/2-1) + "c"})
	m.add("d", named{name: "d", target: "a/b/../b"})
	if steps := m.Read(); steps > 3*targetLimit {
		t.Errorf("%d steps", steps)
	}
	if end := strings.Repeat("c/", targetLimit/2-1) + "c"; !strings.HasSuffix(m.names.leading["a/"+end][0], "b") {
		t.Errorf("the links lead to %d places", len(m.names.leading))
	}
}
