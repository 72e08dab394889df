package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
)

// modes are the possible modes of a tree entry.
var modes = []string{"", runs, linkTo, gitlink}

// FuzzGate checks commits that add any entry at any path.
func FuzzGate(f *testing.F) {
	for _, cases := range ruleCases {
		for _, c := range cases {
			if testing.Short() { // TestRules checks them, too
				break
			}
			for path, content := range c.change {
				if len(content) < 4<<10 {
					f.Add(path, content, byte(0), c.message)
				}
			}
		}
	}
	f.Add(".gitattributes", "[attr]a b\n[attr]b a\n* a b filter=lfs\n", byte(0), "m")
	f.Add("a/b/c", "../../../b", byte(2), "m")
	facts, programs := testFacts, testFacts.programs()
	facts.Programs = func() hostgit.Programs { return programs }
	f.Fuzz(func(t *testing.T, path, content string, mode byte, message string) {
		if path == "" || len(path) > 4096 || strings.Contains(path, "\x00") || hasEmpty(path) {
			t.Skip("git makes no tree with such a path")
		}
		objects := newStore()
		change := files{path: modes[int(mode)%len(modes)] + content}
		c := objects.commit(testBase, testBase.with(change), message)
		found, err := New(Settings{}, facts, objects).Check(t.Context(), c)
		var refused *inner.Invalid
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if refused != nil {
			found = append(found, Finding{Detail: refused.Reason})
		}
		for _, finding := range found {
			said := finding.Detail + strings.Join(finding.Paths, "")
			if strings.ContainsAny(said, "\x00\x1b\u202e\n") || len(said) > 64<<10 {
				t.Errorf("%+v", finding)
			}
		}
	})
}

func hasEmpty(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			return true
		}
	}
	return false
}
