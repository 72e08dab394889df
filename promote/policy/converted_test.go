package policy

import "strings"

// diskCases are cases of the rules, in addition to ruleCases, about files whose bytes on the disk or in a diff are not what they seem.
var diskCases = map[string][]ruleCase{
	"secret": {
		{name: "beside a NUL", change: files{"a.js": "// \x00\n" + sampleToken + "\n"}, want: "hold", path: "a.js"},
		{name: "around a NUL", before: files{"a.sh": "x\n"}, change: files{"a.sh": "x\n" + sampleToken[:9] + "\x00" + sampleToken[9:] + "\n"}, want: "hold", path: "a.sh"},
		{name: "among many NULs", change: files{"conf": strings.Repeat("\x00", 99) + "\n" + sampleToken + "\n"}, want: "hold", path: "conf"},
		{name: "in UTF-16", change: files{"a.reg": wide(sampleToken + "\r\n")}, want: "hold", path: "a.reg"},
		{name: "with a NUL before", before: files{"a.js": "// \x00\n" + sampleToken + "\n"}, change: files{"a.js": "// \x00\n" + sampleToken + "\nx\n"}},
		{name: "in a picture", change: files{"a.png": "\x00\x01\x02\n" + sampleToken + "\n"}},
	},
	"hidden-text": {
		{name: "binary without a name", before: files{"a": "\x00\x01"}, change: files{"a": "\x00\x01\u202e\n", "c.dat": "\x00\x01\x02"}},
		{name: "beside a NUL", before: files{"a.c": "\x00\n"}, change: files{"a.c": "\x00\n\u202e\n"}, want: "flag", path: "a.c"},
		{name: "a program with a NUL", change: files{"a": "#!/bin/sh\n#\x00\n"}, want: "flag", path: "a"},
		{name: "a source with a NUL", change: files{"a.c": "\x00\n"}, want: "flag", path: "a.c"},
		{name: "a text gets a NUL", before: files{"a": "text\n"}, change: files{"a": "text\x00\n"}, want: "flag", path: "a"},
		{name: "a text becomes a picture", before: files{"a.png": "text\n"}, change: files{"a.png": "\x89PNG\x00\x00\x00\x01"}},
		{name: "a NUL that was there", before: files{"a.c": "\x00\n"}, change: files{"a.c": "\x00\nx\n"}},
	},
}

// wide returns an ASCII text in UTF-16LE.
func wide(text string) string {
	var out []byte
	for i := range len(text) {
		out = append(out, text[i], 0)
	}
	return string(out)
}
