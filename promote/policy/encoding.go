package policy

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// encodingAttribute has git convert a file by iconv(3), which loads a module of the C library by the name that it is given.
const encodingAttribute = "working-tree-encoding="

// charsets are those that people have files in, without their hyphens and underscores.
var charsets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:utf(?:7|8|16|32)(?:le|be)?(?:bom)?|ucs[24](?:le|be)?|(?:us)?ascii|iso8859\d{1,2}|latin\d{1,2}|(?:windows|cp|ibm)\d{3,5}|` +
		`shiftjis|sjis|euc(?:jp|kr|tw|cn)|iso2022(?:jp|kr|cn)\d?|gbk|gb2312|gb18030|big5(?:hkscs)?|koi8[rut]|tis620|macintosh|viscii)$`)
})

// encodings holds attributes that name a charset that is none of the known ones.
func encodings(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	a, err := in.attributeLines(ctx, c, r)
	for _, l := range a.added() {
		for _, state := range l.states { // a macro that gives one is a line, too
			name, has := strings.CutPrefix(state, encodingAttribute)
			if has && !charsets().MatchString(strings.NewReplacer("-", "", "_", "").Replace(name)) {
				r.at(c.Path, "line %d has git load a converter for the charset %q", l.number, name)
			}
		}
	}
	return err
}
