package filekind

import (
	"regexp"
	"strings"
	"sync"
)

var commonCharsets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:utf(?:7|8|16|32)(?:le|be)?(?:bom)?|ucs[24](?:le|be)?|(?:us)?ascii|iso8859\d{1,2}|latin\d{1,2}|(?:windows|cp|ibm)\d{3,5}|` +
		`shiftjis|sjis|euc(?:jp|kr|tw|cn)|iso2022(?:jp|kr|cn)\d?|gbk|gb2312|gb18030|big5(?:hkscs)?|koi8[rut]|tis620|macintosh|viscii)$`)
})

var asciiCharsets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:utf8|(?:us)?ascii|iso8859\d{1,2}|latin\d{1,2}|(?:windows|cp)(?:125[0-7]|874)|euc(?:kr|tw|cn)|gb2312|koi8[rut]|tis620|macintosh)$`)
})

var withoutMarks = strings.NewReplacer("-", "", "_", "")

// CommonCharset reports whether every C library has a converter for a charset.
func CommonCharset(name string) bool { return commonCharsets().MatchString(withoutMarks.Replace(name)) }

// ASCIICharset reports whether each ASCII character and its byte stand for each other in a charset, so that a program
// reads in the encoded text what a person reads in the original. It is false for EUC-JP, which has a backslash for a yen
// sign, for CP1258, which writes letters with accents as ASCII letters and accents, and for charsets whose characters
// have ASCII as a second byte.
func ASCIICharset(name string) bool { return asciiCharsets().MatchString(withoutMarks.Replace(name)) }
