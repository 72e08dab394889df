package gitops

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	base := files{"a": "1\n", "crlf": "1\r\n2\r\n", "cr": "1\r2", "link": linkTo + "a", "bin": "\x00\x01\xff", "run": execute + "#!\n", "d/f": mergeLines,
		"odd \"name\"\n": "1", ".gitattributes": "* text eol=crlf\n*.txt working-tree-encoding=UTF-16\n", "u.txt": "u\n"}
	for name, c := range map[string]struct {
		change, onto files
		want         files // nil: refused
	}{
		"lines, modes, links": {files{"a": "2\n", "crlf": "1\r\n3\r\n", "cr": "1\r3", "link": linkTo + "d", "run": "#!\n", "new": "no newline"}, nil, files{}},
		"binary":              {files{"bin": "\x00\x02\xfe", "more": "\xff\xfe\x00"}, nil, files{}},
		"removed, renamed":    {files{"a": absent, "d/f": absent, "e/f": mergeLines, "odd \"name\"\n": absent}, nil, files{}},
		"to a folder":         {files{"a": absent, "a/b": "1\n", "link": absent, "link/x": "x"}, nil, files{}},
		"empty file":          {files{"empty": "", "u.txt": "ü\n"}, nil, files{}},
		"onto another":        {files{"d/f": mergeLines + "last\n"}, files{"d/f": "first\n" + mergeLines, "x": "1"}, files{"d/f": "first\n" + mergeLines + "last\n", "x": "1"}},
		"conflict":            {files{"a": "2\n"}, files{"a": "3\n"}, nil},
		"in the way":          {files{"n": "2\n"}, files{"n": "3\n"}, nil},
	} {
		for _, format := range []string{"sha1", "sha256"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				t.Parallel()
				f := &mergeFixture{newInner(t, files{"a": "1\n"}, "--object-format="+format)}
				f.base = f.outer.built(f.base, base) // as it is: a checkout would have converted it
				b, err := f.q.Bridge(f.outer.Repository, filepath.Join(t.TempDir(), "bridge"))
				check(t, err)
				defer b.Close()
				want := f.tree(t, f.base, c.change)
				if len(c.want) > 0 {
					want = f.tree(t, f.base, c.want)
				}
				tree, err := b.Patch(t.Context(), f.tree(t, f.base, nil), f.tree(t, f.base, c.change), f.tree(t, f.base, c.onto))
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
