package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/git-airlock/git-airlock/promote/policy/attribute"
)

// diskCases are cases of the rules, in addition to ruleCases, about files whose bytes on the disk or in a diff are not what they seem.
var diskCases = map[string][]ruleCase{
	"workspace-exposed": {
		{name: "in another encoding", change: files{".gitattributes": ".gitignore working-tree-encoding=UTF-16LE\n", ".gitignore": "\u2f21\u2a2e\n"}, want: "hold", path: ".gitignore"},
		{name: "the encoding was there", before: files{".gitattributes": "* working-tree-encoding=UTF-16\n"}, change: files{".gitignore": "\u2f21\n"}, want: "hold", path: ".gitignore"},
		{name: "the content was there", before: files{".gitignore": "\u2f21\n"}, change: files{".gitattributes": "[.]gitig* working-tree-encoding=UTF-16\n"}, want: "hold", path: ".gitignore"},
		{name: "an exception is removed", before: files{".gitignore": "x\n", ".gitattributes": "*e working-tree-encoding=UTF-16\n.git* !working-tree-encoding\n"},
			change: files{".gitattributes": "*e working-tree-encoding=UTF-16\n"}, want: "hold", path: ".gitignore"},
		{name: "a macro changes", before: files{".gitignore": "x\n", ".gitattributes": "[attr]m text\n.gitignore m\n"},
			change: files{".gitattributes": "[attr]n working-tree-encoding=UTF-16\n[attr]m n\n.gitignore m\n"}, want: "hold", path: ".gitignore"},
		{name: "an exception that git may not read", before: files{".gitattributes": "* working-tree-encoding=UTF-16\n\x00\n.git* !working-tree-encoding\n"},
			change: files{".gitignore": "x\n"}, want: "hold", path: ".gitignore"},
		{name: "on a disk without case", before: files{".gitattributes": ".GITIGNORE working-tree-encoding=UTF-16\n"}, change: files{".gitignore": "x\n"}, want: "hold", path: ".gitignore"},
		{name: "hexadecimal digits in a class", change: files{".gitattributes": "* ident\n", ".gitignore": "!.[$Id$]*\n"}, want: "hold", path: ".gitignore"},
		{name: "of other files", before: files{".gitattributes": "*.rc working-tree-encoding=UTF-16\n*.c ident\n"}, change: files{".gitignore": "*.o\n", ".gitattributes": "*.rc working-tree-encoding=UTF-16LE\n"}},
		{name: "with an exception", before: files{".gitattributes": "* working-tree-encoding=UTF-16\n.git* working-tree-encoding=utf8\n"}, change: files{".gitignore": "*.o\n"}},
		{name: "ident without a mark", before: files{".gitattributes": "* ident\n"}, change: files{".gitignore": "*.o\n"}},
		{name: "encoded before", before: files{".gitattributes": "* working-tree-encoding=UTF-16\n", ".gitignore": "x\n"}, change: files{"a/.gitattributes": "*.c ident\n", "a/b.c": "x"}},
	},
	"submodule": {
		{name: "in another encoding", before: files{".gitmodules": "x\n"}, change: files{".gitattributes": "*s working-tree-encoding=UTF-16\n"}, want: "hold", path: ".gitmodules"},
	},
	"agent-config": {
		{name: "in another encoding", before: files{"a/.mcp.json": "{}"}, change: files{"a/.gitattributes": "*.json working-tree-encoding=UTF-7\n"}, want: "hold", path: "a/.mcp.json"},
	},
	"host-exec": {
		{name: "package in another encoding", before: files{"a/.gitattributes": "*.json working-tree-encoding=Shift_JIS\n"}, change: files{"a/package.json": `{"name":"\u00a5"}`}, want: "flag", path: "a/package.json"},
	},
	"recipe": {
		{name: "in another encoding", before: files{"docker/Dockerfile": "x"}, change: files{"docker/.gitattributes": "* working-tree-encoding=UTF-16\n"}, want: "hold", path: "docker/Dockerfile"},
	},
	"secret": {
		{name: "beside a NUL", change: files{"a.js": "// \x00\n" + sampleToken + "\n"}, want: "hold", path: "a.js"},
		{name: "around a NUL", before: files{"a.sh": "x\n"}, change: files{"a.sh": "x\n" + sampleToken[:9] + "\x00" + sampleToken[9:] + "\n"}, want: "hold", path: "a.sh"},
		{name: "among many NULs", change: files{"conf": strings.Repeat("\x00", 99) + "\n" + sampleToken + "\n"}, want: "hold", path: "conf"},
		{name: "in UTF-16", change: files{"a.reg": wide(sampleToken + "\r\n")}, want: "hold", path: "a.reg"},
		{name: "with a NUL before", before: files{"a.js": "// \x00\n" + sampleToken + "\n"}, change: files{"a.js": "// \x00\n" + sampleToken + "\nx\n"}},
		{name: "in a picture", change: files{"a.png": "\x00\x01\x02\n" + sampleToken + "\n"}},
	},
	"hidden-text": {
		{name: "escape sequence", before: files{"a.sh": "x\n"}, change: files{"a.sh": "x\n: '\x1b[8m'; y; : '\x1b[0m'\n"}, want: "flag", path: "a.sh"},
		{name: "escape sequence of one character", change: files{"a.sh": ": '\u009b8m'; y\n"}, want: "flag", path: "a.sh"},
		{name: "backspace", change: files{"a.py": "y()#\b\b\b\b# z\n"}, want: "flag", path: "a.py"},
		{name: "carriage return", change: files{"a.py": "y() #\r# z\n"}, want: "flag", path: "a.py"},
		{name: "carriage return after others", change: files{"a.py": "y() #\r\r# z\n"}, want: "flag", path: "a.py"},
		{name: "carriage return in the message", message: "y\rz\n", want: "flag"},
		{name: "escape sequence that was there", before: files{"a.sh": "\x1b[8m\n"}, change: files{"a.sh": "\x1b[8m\nx\n"}},
		{name: "line ends and form feeds", change: files{"a.bat": "x\r\n\ty\x0c\r\r\nz\r", "b.bin": "\x00\x01\x1b"}, message: "x\r\ny\r\n"},
		{name: "binary without a name", before: files{"a": "\x00\x01"}, change: files{"a": "\x00\x01\u202e\n", "c.dat": "\x00\x01\x02"}},
		{name: "beside a NUL", before: files{"a.c": "\x00\n"}, change: files{"a.c": "\x00\n\u202e\n"}, want: "flag", path: "a.c"},
		{name: "a program with a NUL", change: files{"a": "#!/bin/sh\n#\x00\n"}, want: "flag", path: "a"},
		{name: "a source with a NUL", change: files{"a.c": "\x00\n"}, want: "flag", path: "a.c"},
		{name: "a text gets a NUL", before: files{"a": "text\n"}, change: files{"a": "text\x00\n"}, want: "flag", path: "a"},
		{name: "a text becomes a picture", before: files{"a.png": "text\n"}, change: files{"a.png": "\x89PNG\x00\x00\x00\x01"}},
		{name: "a NUL that was there", before: files{"a.c": "\x00\n"}, change: files{"a.c": "\x00\nx\n"}},
		{name: "other bytes on the disk", change: files{".gitattributes": "*.js working-tree-encoding=Shift_JIS\n"}, want: "flag", path: ".gitattributes"},
		{name: "other bytes by a macro", change: files{".gitattributes": "[attr]m text working-tree-encoding=UTF-7\n"}, want: "flag", path: ".gitattributes"},
		{name: "a backslash for a yen sign", change: files{"a/.gitattributes": "*.js working-tree-encoding=euc-jp\n"}, want: "flag", path: "a/.gitattributes"},
		{name: "a program that ident removes", before: files{"a.js": "x\n"}, change: files{"a.js": "x\nif (!valid(t) /* $Id: */||expired(t)/* $ */) return\n"}, want: "flag", path: "a.js"},
		{name: "ident without a space", change: files{"a.sh": "$Id:;rm;$\n"}, want: "flag", path: "a.sh"},
		{name: "texts that ident keeps or that git writes", change: files{"a.c": "/* $Id: a.c,v 1.2 2003/01/02 root Exp $ */\n/* $Id$ $Id: 8c2e5f $ $Id: x\n$ $Id: a b$ */\n"}},
		{name: "a text for ident that was there", before: files{"a.c": "$Id:x$\n"}, change: files{"a.c": "$Id:x$\ny\n"}},
		{name: "carriage returns in scripts", change: files{".gitattributes": "*.sh text eol=crlf\n"}, want: "flag", path: ".gitattributes"},
		{name: "carriage returns in files without a certain extension", change: files{"a/.gitattributes": "bin/* eol=crlf\n"}, want: "flag", path: "a/.gitattributes"},
		{name: "carriage returns by a macro", change: files{".gitattributes": "[attr]dos text eol=crlf\n"}, want: "flag", path: ".gitattributes"},
		{name: "carriage returns by a macro that was there", before: files{".gitattributes": "[attr]dos text eol=crlf\n"}, change: files{".gitattributes": "[attr]dos text eol=crlf\n*.sh dos\n"}, want: "flag", path: ".gitattributes"},
		{name: "carriage returns in the files of a shell", change: files{".gitattributes": ".bashrc eol=crlf\n"}, want: "flag", path: ".gitattributes"},
		{name: "carriage returns that scripts get", before: files{".gitattributes": "* text eol=crlf\n*.sh eol=lf\n"}, change: files{".gitattributes": "* text eol=crlf\n"}, want: "flag", path: ".gitattributes"},
		{name: "carriage returns in other files", before: files{".gitattributes": "*.sh eol=lf\n"}, change: files{".gitattributes": "*.bat text eol=crlf\nsrc/*.sln eol=crlf\na.b/*.Cmd eol=crlf\n*.sh text eol=lf\n"}},
		{name: "merges without conflicts", change: files{".gitattributes": "CHANGELOG.md merge=union\n"}, want: "flag", path: ".gitattributes"},
		{name: "merges without conflicts by a macro", before: files{".gitattributes": "[attr]m n\n[attr]n merge=union\n"}, change: files{"src/.gitattributes": "*.py m\n"}, want: "flag", path: "src/.gitattributes"},
		{name: "a macro that merges without conflicts", before: files{"src/.gitattributes": "*.py m\n"}, change: files{".gitattributes": "[attr]m merge=union\n"}, want: "flag", path: ".gitattributes"},
		{name: "merges with conflicts", before: files{".gitattributes": "[attr]u merge=union\nnews merge=union\n"}, change: files{".gitattributes": "[attr]u merge=union\nnews merge=union\n*.a -merge\n*.b merge=binary\n*.c merge=text\n*.d merge\n*.e !merge\n*.f -u\n"}},
		{name: "a macro after its use", before: files{".gitattributes": "*.js m\n"}, change: files{".gitattributes": "*.js m\n[attr]m -diff\n"}, want: "flag", path: ".gitattributes"},
		{name: "a macro for lines elsewhere", before: files{"src/.gitattributes": "*.js m\n"}, change: files{".gitattributes": "[attr]m n\n[attr]n binary\n"}, want: "flag", path: ".gitattributes"},
		{name: "a macro that kept the diff", before: files{".gitattributes": "[attr]m diff\n*.js -diff m\n"}, change: files{".gitattributes": "*.js -diff m\n"}, want: "flag", path: ".gitattributes"},
		{name: "a macro that kept the diff, with its file", before: files{".gitattributes": "[attr]m diff\n", "src/.gitattributes": "*.js -diff m\n"}, change: files{".gitattributes": ""}, want: "flag", path: ".gitattributes"},
		{name: "a macro for binary files", before: files{".gitattributes": "*.png m\n"}, change: files{".gitattributes": "*.png m\n[attr]m -diff\n"}},
		{name: "a macro that hid the diff before", before: files{".gitattributes": "[attr]m -diff\n*.js m\n"}, change: files{".gitattributes": "[attr]m -diff -text\n*.js m\n"}},
		{name: "bytes that are ASCII in both", change: files{".gitattributes": "*.a working-tree-encoding=ISO-8859-1\n*.b working-tree-encoding=cp1252\n*.c working-tree-encoding=utf-8\n*.d working-tree-encoding=EUC-KR\n*.e -working-tree-encoding\n"}},
	},
	"user-driver": {
		{name: "no charset", change: files{".gitattributes": "*.a working-tree-encoding\n"}, want: "hold", path: ".gitattributes"},
		{name: "attributes in another encoding", change: files{".gitattributes": "a/.gitattributes working-tree-encoding=UTF-16LE\n", "a/.gitattributes": "\u2a2a\n"}, want: "hold", path: "a/.gitattributes"},
		{name: "a hook in another encoding", before: files{".husky/pre-commit": "x"}, change: files{".gitattributes": ".husky/* working-tree-encoding=UTF-16\n"}, want: "hold", path: ".husky/pre-commit"},
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

// TestManyEndings replaces so many lines that a search of all new lines for each previous one takes several minutes.
func TestManyEndings(t *testing.T) {
	t.Parallel()
	const lines = 150_000
	a, r := &attributeChange{}, &report{action: Flag}
	for n := range lines {
		a.before = append(a.before, attribute.Line{Number: n + 1, Pattern: fmt.Sprintf("x%06d.sh", n), States: []string{"-text"}})
		a.after = append(a.after, attribute.Line{Number: n + 1, Pattern: fmt.Sprintf("y%06d.sh", n), States: []string{"eol=crlf"}})
	}
	begun := time.Now()
	endings(a, ".gitattributes", r)
	if hits, took := r.results[flagging].hits, time.Since(begun); hits != 2*lines || took > time.Minute {
		t.Errorf("%d reports in %s", hits, took)
	}
}
