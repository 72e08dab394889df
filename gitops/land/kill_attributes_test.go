package land

import (
	"fmt"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

// attributed is the content of the attribute files: line ends that a checkout changes, and an encoding with which git
// reads plain bytes as changed ones.
const attributed = "*.txt text eol=crlf\n*.u working-tree-encoding=UTF-16LE\n"

// attributesSwings is the number of files that the landing of newAttributesFixture moves or removes.
const attributesSwings = 11

// newAttributesFixture returns a landing that adds attribute files: at the top, in a folder, and in a folder that
// replaces a file. The link points to attributes that do not apply at its place. The attributes in the folder mine
// are the user's, untracked, and always apply.
func newAttributesFixture(t *testing.T) *killFixture {
	w := newWorld(t)
	old := w.CommitAll(gitopstest.Files{"a.txt": "1\n", "a.u": "1\n", "d/a.md": "1\n", "file": "1\n", "link/a.md": "1\n", "mine/a.md": "1\n"})
	new := w.Built(old, gitopstest.Files{".gitattributes": attributed, "a.txt": "2\n", "a.u": "2\n", "d/.gitattributes": "*.md text eol=crlf\n", "d/a.md": "2\n",
		"file": gitopstest.Absent, "file/.gitattributes": "*.md text eol=crlf\n", "file/a.md": "2\n", "link/a.md": gitopstest.Absent, "link": gitopstest.LinkTo + "d", "mine/a.md": "2\n"})
	w.Write(gitopstest.Files{"mine/.gitattributes": "*.md text eol=crlf\n", "mine/a.md": "1\r\n"})
	w.Run("add", "mine/a.md") // the same blob, of which git now knows that size
	rest()
	return &killFixture{world: w, old: old, new: new, request: w.landing(old, new), before: w.picture()}
}

// isAfterAttributes checks that all files are as a checkout of the landed commit writes them.
func (k *killFixture) isAfterAttributes() {
	k.T.Helper()
	k.landed(k.new)
	k.tree().equals(k.T, picture{".gitattributes": "-rw-r--r-- " + attributed, "a.txt": "-rw-r--r-- 2\r\n", "a.u": "-rw-r--r-- 2\x00\n\x00",
		"d/.gitattributes": "-rw-r--r-- *.md text eol=crlf\n", "d/a.md": "-rw-r--r-- 2\r\n", "file/.gitattributes": "-rw-r--r-- *.md text eol=crlf\n",
		"file/a.md": "-rw-r--r-- 2\r\n", "link": "Lrwxrwxrwx d", "mine/.gitattributes": "-rw-r--r-- *.md text eol=crlf\n", "mine/a.md": "-rw-r--r-- 2\r\n"})
	k.wantStatus("?? mine/.gitattributes")
}

// The attribute files of the landing are undone as well, and do not apply to the files that were there before.
func TestRecoveryTakesAttributesBack(t *testing.T) {
	t.Parallel()
	steps := []string{stepTree, stepRefs, stepIndex}
	for i := range attributesSwings {
		steps = append(steps, fmt.Sprint(stepSwing, ":", i+1))
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			k := newAttributesFixture(t)
			k.mustKill(step)
			gitopstest.Check(t, k.recover())
			if step == stepRefs || step == stepIndex {
				k.isAfterAttributes()
				return
			}
			k.isBefore()
			gitopstest.Check(t, Land(t.Context(), k.Repository, k.request))
			k.isAfterAttributes()
		})
	}
}

// A killed recovery leaves some of the attribute files in place.
func TestKilledRecoveryTakesAttributesBack(t *testing.T) {
	t.Parallel()
	for at := range attributesSwings {
		t.Run(fmt.Sprint(at+1), func(t *testing.T) {
			t.Parallel()
			k := newAttributesFixture(t)
			k.mustKill(stepTree)
			k.mustKill(fmt.Sprint(stepSwing, ":", at+1))
			gitopstest.Check(t, k.recover())
			k.isBefore()
		})
	}
}

// A power loss can undo the removal of attribute files, which do not apply to landed files.
func TestRecoveryFinishesWithoutRemovedAttributes(t *testing.T) {
	t.Parallel()
	before := gitopstest.Files{".gitattributes": attributed, "a.txt": "1\r\n", "a.u": "1\x00\n\x00", "d/.gitattributes": "*.md text eol=crlf\n", "d/a.md": "1\r\n"}
	w := newWorld(t)
	old := w.CommitAll(before)
	new := w.Built(old, gitopstest.Files{".gitattributes": gitopstest.Absent, "a.txt": "2\n", "a.u": "2\n", "d/.gitattributes": gitopstest.Absent, "d/a.md": "2\n"})
	rest()
	k := &killFixture{world: w, old: old, new: new, request: w.landing(old, new)}
	k.mustKill(stepRefs)
	k.Write(before)
	gitopstest.Check(t, k.recover())
	k.landed(new)
	k.tree().equals(t, picture{"a.txt": "-rw-r--r-- 2\n", "a.u": "-rw-r--r-- 2\n", "d/a.md": "-rw-r--r-- 2\n"})
	k.wantStatus("")
}
