//go:build linux

package native_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/git-airlock/git-airlock/prison"
)

// TestWatchTree changes files in a running prison, whose workspace is an overlay inside. The tree must report each changed folder, and
// must fail when the agent has filled the kernel's queue.
func TestWatchTree(t *testing.T) {
	b, s := prepared(t)
	start(t, b, s)
	box, err := b.Attach(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	sh := func(script string) {
		t.Helper()
		if status, err := box.Exec(t.Context(), prison.Process{Argv: []string{"sh", "-ec", script}}); err != nil || status != 0 {
			t.Fatalf("%s: status %d, %v", script, status, err)
		}
	}
	sh(`mkdir -p a/b c; echo 1 >a/b/file; echo 1 >c/file`)
	tree, err := box.(prison.TreeWatcher).WatchTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, step := range []struct {
		script string
		want   []string
	}{
		{`true`, nil},
		{`printf x | dd of=a/b/file conv=notrunc 2>/dev/null`, []string{"a/b"}},
		{`chmod 600 c/file; touch a`, []string{"", "a", "c"}},
		{`mv c a/d; mkdir new`, []string{"", "a", "a/d", "new"}},
		{`echo >a/d/file; mkdir -p new/x/y; echo >new/x/y/z`, []string{"a/d", "new", "new/x", "new/x/y"}},
		{`rm -r new; printf "" >"$(printf 'a/\377')"`, []string{"", "a", "new", "new/x", "new/x/y"}},
	} {
		sh(step.script)
		touched, err := tree.Touched()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range step.want {
			if !slices.Contains(touched, path) {
				t.Errorf("%s: %q lacks %q", step.script, touched, path)
			}
		}
		if len(step.want) == 0 && len(touched) > 0 {
			t.Errorf("%s: %q", step.script, touched)
		}
	}
	sh(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do mkdir many$i; i=$((i+1)); done`, 300))
	if touched, err := tree.Touched(); err != nil || len(touched) != 301 {
		t.Errorf("%d folders, %v", len(touched), err)
	}
}
