package quarantine

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/git-airlock/git-airlock/gitops/gitopstest"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	base := gitopstest.Files{"a": "1\n", "crlf": "1\r\n2\r\n", "cr": "1\r2", "link": gitopstest.LinkTo + "a", "bin": "\x00\x01\xff", "run": gitopstest.Execute + "#!\n", "d/f": mergeLines,
		"odd \"name\"\n": "1", ".gitattributes": "* text eol=crlf\n*.txt working-tree-encoding=UTF-16\n", "u.txt": "u\n"}
	for name, c := range map[string]struct {
		change, onto gitopstest.Files
		want         gitopstest.Files // nil: refused
	}{
		"lines, modes, links": {gitopstest.Files{"a": "2\n", "crlf": "1\r\n3\r\n", "cr": "1\r3", "link": gitopstest.LinkTo + "d", "run": "#!\n", "new": "no newline"}, nil, gitopstest.Files{}},
		"binary":              {gitopstest.Files{"bin": "\x00\x02\xfe", "more": "\xff\xfe\x00"}, nil, gitopstest.Files{}},
		"removed, renamed":    {gitopstest.Files{"a": gitopstest.Absent, "d/f": gitopstest.Absent, "e/f": mergeLines, "odd \"name\"\n": gitopstest.Absent}, nil, gitopstest.Files{}},
		"to a folder":         {gitopstest.Files{"a": gitopstest.Absent, "a/b": "1\n", "link": gitopstest.Absent, "link/x": "x"}, nil, gitopstest.Files{}},
		"empty file":          {gitopstest.Files{"empty": "", "u.txt": "ü\n"}, nil, gitopstest.Files{}},
		"onto another":        {gitopstest.Files{"d/f": mergeLines + "last\n"}, gitopstest.Files{"d/f": "first\n" + mergeLines, "x": "1"}, gitopstest.Files{"d/f": "first\n" + mergeLines + "last\n", "x": "1"}},
		"conflict":            {gitopstest.Files{"a": "2\n"}, gitopstest.Files{"a": "3\n"}, nil},
		"in the way":          {gitopstest.Files{"n": "2\n"}, gitopstest.Files{"n": "3\n"}, nil},
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				t.Parallel()
				f := &mergeFixture{newInner(t, gitopstest.Files{"a": "1\n"}, "--object-format="+format)}
				f.base = f.outer.Built(f.base, base) // as it is: a checkout would have converted it
				b, err := f.q.Bridge(f.outer.Repository, nil, filepath.Join(t.TempDir(), "bridge"))
				gitopstest.Check(t, err)
				defer b.Close()
				want := f.tree(t, f.base, c.change)
				if len(c.want) > 0 {
					want = f.tree(t, f.base, c.want)
				}
				tree, err := b.Patch(t.Context(), Merge{Base: f.tree(t, f.base, nil), Theirs: f.tree(t, f.base, c.change), Ours: f.tree(t, f.base, c.onto)})
				var refused *RefusedPatch
				if c.want == nil {
					if !errors.As(err, &refused) {
						t.Errorf("%s, %v, want a refusal", tree, err)
					}
					return
				}
				if err != nil || tree != want {
					t.Errorf("%s, %v, want %s", tree, err, want)
				}
				if left, _ := filepath.Glob(b.dir + ".*"); len(left) > 0 && b.merger == nil {
					t.Errorf("left over: %s", left)
				}
			})
		}
	}
}
