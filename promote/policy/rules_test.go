package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/identity"
)

// The user's side in the tests.
var (
	testFacts = Facts{
		Workspace: ".devspace-7f3a", Ghost: identity.Ghost{Name: "Robin Vale", Mail: "robin.vale@mail.example"}, Placeholders: []string{"", samplePhantom},
		Top: "/home/u/project", Recipe: []string{"docker/Dockerfile"}, Ignores: ignoredFolders{".venv": true},
		Config: gitops.Config{
			"core.hookspath": ".husky/_", "filter.fmt.smudge": "./tools/fmt --in %f", "filter.lfs.process": "git-lfs filter-process",
			"diff.img.textconv": "/home/u/project/tools/img", "core.fsmonitor": "tools/watch", "alias.x": "!sh tools/alias.sh",
			"alias.y": "log tools/none", "filter.nb.clean": "\"/opt/venv/bin/python3\" -m lib.nb", "diff.pdf.textconv": "pdftotext", "alias.lg": "!git log --graph | less",
			"credential.helper": "!/usr/bin/gh auth git-credential", "interactive.difffilter": "delta --color-only", "alias.fmt": "!npm run fmt",
			"mergetool.own.cmd": "cd hack && ./own.sh $LOCAL", "alias.p": "-c core.pager=hack/pager log", "tar.tar.xz.command": "hack/xz -c",
			"gpg.ssh.allowedsignersfile": "etc/signers", "new.key": "etc/new", "hook.lint.command": "hack/lint", "core.editor": "vim", "airlock.credential.x.source": "command:/home/u/project/tools/key api", "airlock.credential.y.source": "command:op read /notes", "airlock.credential.z.source": "file:/home/u/project/keys.json#api.key",
			"airlock.policyfile": "/home/u/project/policy.toml", "include.path": "../team.gitconfig", "core.pager": "$(git rev-parse --show-toplevel)/tools/pager | less",
		},
	}
	testBase = files{"README": "one\ntwo\n", "src/main.go": "package main\n", "docs/a.md": "# a\n"}
)

// Put together here, so that this file holds no secret for others to find.
const (
	sampleToken   = "gh" + "p_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	samplePhantom = "gh" + "p_" + "WXYZ5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
	sampleKey     = "id = AKIA" + "QYLPMN5HHHFPZAM2\n"
	sampleExcused = "id = AKIA" + "IOSFODNN7EXAMPLE\n"
	sampleGuess   = `api_key = "` + "8b1f3c5d7e9a2b4c6d8e0f1a3b5c7d9e" + `"` + "\n"
)

// keyAround is a private key with that for its middle.
func keyAround(middle string) string {
	return "-----BEGIN " + "RSA PRIVATE KEY-----\n" + middle + "-----END " + "RSA PRIVATE KEY-----\n"
}

// keeping are attributes that keep files from a driver by a macro.
var keeping = files{".gitattributes": "*.bin filter=lfs\n[attr]plain -filter\nv/*.bin plain\n"}

// and adds lines to attributes.
func (f files) and(lines string) files {
	return files{".gitattributes": f[".gitattributes"] + lines}
}

// ruleCase is one commit and what one rule says about it: "hold", "flag" or nothing.
type ruleCase struct {
	name    string
	before  files // over testBase
	change  files // empty content removes
	message string
	want    string
	path    string // that the finding names, escaped
}

// ignoredFolders are folders that the user ignores.
type ignoredFolders map[string]bool

func (i ignoredFolders) Close() error { return nil }

func (i ignoredFolders) Ignored(_ context.Context, paths []string) (map[string]string, error) {
	found := map[string]string{}
	for _, p := range paths {
		if dir, _, _ := strings.Cut(p, "/"); dir == "broken" {
			return nil, errors.New("git ended")
		} else if i[dir] {
			found[p] = ".gitignore:1: " + dir
		}
	}
	return found, nil
}

var ruleCases = map[string][]ruleCase{
	"ignored-path": {
		{name: "a program", change: files{".venv/bin/git": runs + "x"}, want: "hold", path: ".venv/bin/git"},
		{name: "a link", change: files{".venv/bin": linkTo + "../src"}, want: "hold", path: ".venv/bin"},
		{name: "git cannot say", change: files{"broken/x": "x"}, want: "hold", path: "broken/x"},
		{name: "a file that was there", before: files{".venv/x": "1"}, change: files{".venv/x": "2"}},
		{name: "removed", before: files{".venv/x": "1"}, change: files{".venv/x": ""}},
		{name: "elsewhere", change: files{"src/x": "1"}},
		{name: "a link in the place of the folder", change: files{".venv": linkTo + "src"}, want: "hold", path: ".venv"},
	},
	"slow-pattern": slowCases, "git-resources": resourceCases,
	"symlink-escape": slices.Concat(uncreatableLinks, []ruleCase{
		{name: "absolute", change: files{"l": linkTo + "/etc/passwd"}, want: "hold", path: "l"},
		{name: "upwards", change: files{"src/l": linkTo + "../../x"}, want: "hold", path: "src/l"},
		{name: "into .git", change: files{"src/l": linkTo + "../.GIT/config"}, want: "hold", path: "src/l"},
		{name: "into the workspace", change: files{"l": linkTo + "./.devspace-7f3a/x"}, want: "hold", path: "l"},
		{name: "through another link", before: files{"d": linkTo + "src"}, change: files{"l": linkTo + "d/../../x"}, want: "hold", path: "l"},
		{name: "an old link is led out by a new one", before: files{"l": linkTo + "d/../x"}, change: files{"d": linkTo + "."}, want: "hold", path: "l"},
		{name: "a folder becomes a link", before: files{"l": linkTo + "src/d/../../x", "src/d/f": "1"}, change: files{"src/d/f": "", "src/d": linkTo + ".."}, want: "hold", path: "l"},
		{name: "Windows", change: files{"l": linkTo + `C:\x`, "m": linkTo + `..\..\x`}, want: "hold", path: "l"},
		{name: "names that are one without case", before: files{"n/A": "1", "n/a": "2"}, change: files{"n/A": linkTo + "/etc/passwd", "n/a": linkTo + "b"}, want: "hold", path: "n/A"},
		{name: "through one of two names", before: files{"n/A": "1", "n/a": linkTo + "../src"}, change: files{"n/A": linkTo + "../docs", "l": linkTo + "n/a/x"}, want: "hold", path: "l"},
		{name: "within", change: files{"src/l": linkTo + "../docs/a.md", "m": linkTo + "src"}},
		{name: "dangling within", change: files{"src/l": linkTo + "nothing/here"}},
		{name: "a loop", change: files{"a": linkTo + "b", "b": linkTo + "a"}},
		{name: "was there", before: files{"l": linkTo + "/etc"}, change: files{"m": linkTo + "src"}},
		{name: "removed", before: files{"l": linkTo + "/etc"}, change: files{"l": ""}},
		{name: "a file that says so", change: files{"l": "/etc/passwd"}},
	}),
	"workspace-exposed": {
		{name: "un-ignored", change: files{".gitignore": "*.o\n!.devspace-*\n"}, want: "hold", path: ".gitignore"},
		{name: "un-ignored by its name", change: files{".gitignore": "!/.devspace-7f3a/\n"}, want: "hold", path: ".gitignore"},
		{name: "by all", change: files{".gitignore": "!*\n"}, want: "hold", path: ".gitignore"},
		{name: "other case", change: files{".gitignore": "!.DEVSPACE-7F3A\n"}, want: "hold", path: ".gitignore"},
		{name: "a path in it", change: files{".devspace-7f3a/x": "1"}, want: "hold", path: ".devspace-7f3a/x"},
		{name: "its attributes", change: files{".gitattributes": ".devspace-7f3a/** filter=x\n"}, want: "hold", path: ".gitattributes"},
		{name: "more than is read", change: files{".gitignore": strings.Repeat("*.o\n", textLimit/4) + "!*\n"}, want: "hold", path: ".gitignore"},
		{name: "attributes, more than is read", change: files{".gitattributes": strings.Repeat("* text\n", textLimit/7+1)}, want: "hold", path: ".gitattributes"},
		{name: "by a line longer than is read", change: files{".gitignore": "!." + strings.Repeat("*", 8<<10) + "\n"}, want: "hold", path: ".gitignore"},
		{name: "ignored by a line longer than is read", change: files{".gitignore": "." + strings.Repeat("*", 8<<10) + "\n"}},
		{name: "its attributes, quoted", change: files{".gitattributes": "\"\\056devspace-7f3a/**\" filter=x\n"}, want: "hold", path: ".gitattributes"},
		{name: "its attributes, badly quoted", change: files{".gitattributes": "\"\\9.devspace-7f3a/**\" filter=x\n"}},
		{name: "by stars behind a literal part", change: files{".gitignore": "!/.**\n"}, want: "hold", path: ".gitignore"},
		{name: "by an escaped slash", change: files{".gitignore": "!**\\/\n!.**\\/**\n!/**\n"}, want: "hold", path: ".gitignore"},
		{name: "behind a byte order mark", change: files{".gitignore": "\ufeff!.*\n"}, want: "hold", path: ".gitignore"},
		{name: "as a class", change: files{".gitignore": "![.]*[[:xdigit:]]/\r\n"}, want: "hold", path: ".gitignore"},
		{name: "a link", change: files{".gitignore": linkTo + "ignore"}, want: "hold", path: ".gitignore"},
		{name: "its content below", change: files{".gitignore": "!.*/*\n"}},
		{name: "no pattern", change: files{".gitignore": "#!.*\n\\!.*\n!\n!/\n!.*\\\n"}},
		{name: "ignored", change: files{".gitignore": "*.o\n!keep.o\n!.github\n"}},
		{name: "un-ignored and ignored again", change: files{".gitignore": "!.*\n.devspace-*\n"}},
		{name: "below", change: files{"src/.gitignore": "!*\n"}},
		{name: "attributes of all", change: files{".gitattributes": "* text=auto\n"}},
		{name: "was so", before: files{".gitignore": "!.*\n"}, change: files{".gitignore": "!.*\n*.o\n"}},
	},
	"submodule": {
		{name: "added", change: files{"mod": gitlink + "1"}, want: "hold", path: "mod"},
		{name: "moved", before: files{"mod": gitlink + "1"}, change: files{"mod": gitlink + "2"}, want: "hold", path: "mod"},
		{name: "removed", before: files{"mod": gitlink + "1"}, change: files{"mod": ""}, want: "hold", path: "mod"},
		{name: "its file", change: files{".gitmodules": "[submodule \"x\"]\n"}, want: "hold", path: ".gitmodules"},
		{name: "its file on Windows", change: files{"GITMOD~1": "x\n"}, want: "hold", path: "GITMOD~1"},
		{name: "its file on HFS+", change: files{".gitmodules\u200c": "x\n"}, want: "hold", path: `.gitmodules\u200c`},
		{name: "beside one", before: files{"mod": gitlink + "1"}, change: files{"README": "x\n"}},
		{name: "a file of a like name", change: files{"gitmodules.txt": "x\n"}},
	},
	"user-driver": {
		{name: "a hook", change: files{".husky/pre-commit": runs + "#!/bin/sh\n"}, want: "hold", path: ".husky/pre-commit"},
		{name: "a filter", change: files{"tools/fmt": runs + "x"}, want: "hold", path: "tools/fmt"},
		{name: "a filter is removed", before: files{"tools/fmt": runs + "x"}, change: files{"tools/fmt": ""}, want: "hold", path: "tools/fmt"},
		{name: "a link above a filter", change: files{"tools": linkTo + "src"}, want: "hold", path: "tools"},
		{name: "an absolute one", change: files{"tools/img": runs + "x"}, want: "hold", path: "tools/img"},
		{name: "what prints a key", change: files{"tools/key": runs + "x"}, want: "hold", path: "tools/key"},
		{name: "a file with a key", change: files{"keys.json": "{}"}, want: "hold", path: "keys.json"},
		{name: "the team's policy", change: files{"policy.toml": "version = 1\n"}, want: "hold", path: "policy.toml"},
		{name: "a word of what prints a key", change: files{"notes": "x"}},
		{name: "fsmonitor, other case", change: files{"Tools/Watch": runs + "x"}, want: "hold", path: "Tools/Watch"},
		{name: "an alias's argument", change: files{"tools/alias.sh": "x"}, want: "hold", path: "tools/alias.sh"},
		{name: "from the top level", change: files{"tools/pager": "x"}, want: "hold", path: "tools/pager"},
		{name: "attributes", change: files{"src/.gitattributes": "*.bin filter=lfs -text\n"}, want: "hold", path: "src/.gitattributes"},
		{name: "attributes by a macro", before: files{".gitattributes": "[attr]big filter=lfs\n"}, change: files{"src/.gitattributes": "*.bin big\n"}, want: "hold", path: "src/.gitattributes"},
		{name: "attributes, more than is read", change: files{"src/.gitattributes": strings.Repeat("* text\n", textLimit/7+1)}, want: "hold", path: "src/.gitattributes"},
		{name: "attributes by a quoted macro", before: files{".gitattributes": "\"[attr]big\" filter=lfs\n"}, change: files{"src/.gitattributes": "*.bin big\n"}, want: "hold", path: "src/.gitattributes"},
		{name: "attributes in a link", change: files{"src/.gitattributes": linkTo + "*.bin filter=lfs\n"}, want: "hold", path: "src/.gitattributes"},
		{name: "attributes that kept a file from it", before: files{"src/.gitattributes": "*.txt text\n*.bin -filter\n"}, change: files{"src/.gitattributes": "*.txt text\n"}, want: "hold", path: "src/.gitattributes"},
		{name: "all of them", before: files{"src/.gitattributes": "*.bin !filter\n"}, change: files{"src/.gitattributes": ""}, want: "hold", path: "src/.gitattributes"},
		{name: "attributes in another order", before: files{".gitattributes": "*.bin filter=lfs\n*.bin -filter\n"}, change: files{".gitattributes": "*.bin -filter\n*.bin filter=lfs\n"}, want: "hold", path: ".gitattributes"},
		{name: "attributes once more", before: files{".gitattributes": "*.bin filter=lfs\n*.bin filter=x\n"}, change: files{".gitattributes": "*.bin filter=lfs\n*.bin filter=x\n*.bin filter=lfs\n"}, want: "hold", path: ".gitattributes"},
		{name: "attributes that hand nothing over any more", before: files{".gitattributes": "*.bin filter=lfs\n*.bin -filter\n*.x text\n"}, change: files{".gitattributes": "*.x -text\n*.bin -filter\n"}},
		{name: "attributes of other kinds", before: files{".gitattributes": "*.x text\n*.bin -export-ignore\n"}, change: files{".gitattributes": "*.y text\n"}},
		{name: "a macro is unset", before: keeping, change: keeping.and("v/*.bin -plain\n"), want: "hold", path: ".gitattributes"},
		{name: "a macro is unset below", before: keeping, change: files{"v/.gitattributes": "*.bin -plain\n"}, want: "hold", path: "v/.gitattributes"},
		{name: "a macro is left unspecified", before: keeping, change: keeping.and("v/*.bin !plain\n"), want: "hold", path: ".gitattributes"},
		{name: "a macro with a value", before: keeping, change: keeping.and("v/*.bin plain=x\n"), want: "hold", path: ".gitattributes"},
		{name: "a macro is unset by another", before: keeping, change: keeping.and("[attr]other -plain\nv/*.bin other\n"), want: "hold", path: ".gitattributes"},
		{name: "an attribute becomes a macro that unsets another", before: keeping.and("v/*.bin other\n"), change: keeping.and("v/*.bin other\n[attr]other !plain\n"), want: "hold", path: ".gitattributes"},
		{name: "git's own macro is unset", before: files{".gitattributes": "* diff=img\n*.x binary\n"}, change: files{".gitattributes": "* diff=img\n*.x binary\na.x -binary\n"}, want: "hold", path: ".gitattributes"},
		{name: "a macro is defined anew", before: keeping, change: keeping.and("[attr]plain text\n"), want: "hold", path: ".gitattributes"},
		{name: "git's own macro is defined anew", before: files{".gitattributes": "* diff=img\n*.x binary\n"}, change: files{".gitattributes": "* diff=img\n*.x binary\n[attr]binary -text\n"}, want: "hold", path: ".gitattributes"},
		{name: "a macro says something else", before: keeping, change: files{".gitattributes": "*.bin filter=lfs\n[attr]plain text\nv/*.bin plain\n"}, want: "hold", path: ".gitattributes"},
		{name: "a macro is gone", before: keeping, change: files{".gitattributes": "*.bin filter=lfs\nv/*.bin plain\n"}, want: "hold", path: ".gitattributes"},
		{name: "the definitions of a macro in another order", before: files{".gitattributes": "[attr]plain text\n[attr]plain -filter\n"}, change: files{".gitattributes": "[attr]plain -filter\n[attr]plain text\n"}, want: "hold", path: ".gitattributes"},
		{name: "the last definition of a macro is gone", before: files{".gitattributes": "[attr]big filter=lfs\n[attr]big text\n*.bin big\n"}, change: files{".gitattributes": "[attr]big filter=lfs\n*.bin big\n"}, want: "hold", path: ".gitattributes"},
		{name: "a line that git ignores for its length", before: keeping, change: files{".gitattributes": "*.bin filter=lfs\n[attr]plain -filter\nv/*.bin" + strings.Repeat(" ", 2048-12) + "plain\n"}, want: "hold", path: ".gitattributes"},
		{name: "a line that git ignored for its length", before: files{".gitattributes": "*.bin" + strings.Repeat(" ", 2048) + "filter=lfs\n"}, change: files{".gitattributes": "*.bin filter=lfs\n"}, want: "hold", path: ".gitattributes"},
		{name: "a NUL", before: keeping, change: files{".gitattributes": "*.bin filter=lfs\n#\x00\n[attr]plain -filter\nv/*.bin plain\n"}, want: "hold", path: ".gitattributes"},
		{name: "a byte order mark", before: files{"v/.gitattributes": "*.bin -filter\n"}, change: files{"v/.gitattributes": "\ufeff*.bin -filter\n"}, want: "hold", path: "v/.gitattributes"},
		{name: "a byte order mark, and a driver in another line", before: files{".gitattributes": "*.bin -filter\n"}, change: files{".gitattributes": "\ufeff* text\n*.bin -filter\n"}},
		{name: "a long line", before: keeping, change: keeping.and("*.txt text" + strings.Repeat(" ", 2047-10) + "\n")},
		{name: "macros are used", before: keeping, change: keeping.and("*.png binary\n*.sh text eol=lf\n*.lock -diff\nw/*.bin plain\n[attr]other plain -text\n")},
		{name: "a macro that applies a driver is unset", before: files{".gitattributes": "[attr]big filter=lfs\n*.bin big\n"}, change: files{".gitattributes": "[attr]big filter=lfs\n*.bin big\nv/*.bin -big\n"}},
		{name: "a macro that applies a driver is gone", before: files{".gitattributes": "[attr]big filter=lfs\n*.bin big\n"}, change: files{".gitattributes": "[attr]big text\n*.bin big\n"}},
		{name: "a pattern that looks like a macro", change: files{".gitattributes": "[attr] filter=lfs\n"}, want: "hold", path: ".gitattributes"},
		{name: "a quoted macro", change: files{".gitattributes": "\"[attr] x y\" filter=lfs\n"}, want: "hold", path: ".gitattributes"},
		{name: "no macro below the top", change: files{"w/.gitattributes": "[attr]x filter=lfs\n"}},
		{name: "a line that git does not obey", change: files{".gitattributes": "* filter=lfs --x\n!a filter=lfs\n[attr]-x filter=lfs\n"}},
		{name: "no value of what is taken back", change: files{".gitattributes": "a -text=lfs\n"}},
		{name: "macros of themselves", change: files{".gitattributes": "[attr]a -a b\n[attr]b !a text\n* -a b=x\n"}},
		{name: "a module that a filter may run", change: files{"lib/nb.py": "x"}, want: "hold", path: "lib/nb.py"},
		{name: "the package of a module", change: files{"lib/__init__.py": "x"}, want: "hold", path: "lib/__init__.py"},
		{name: "a module that comes before Python's own", change: files{"json.py": "x"}, want: "hold", path: "json.py"},
		{name: "a script of a runner", change: files{"package.json": "{}"}, want: "hold", path: "package.json"},
		{name: "a script in a folder that a shell goes to", change: files{"hack/own.sh": "x"}, want: "hold", path: "hack/own.sh"},
		{name: "an alias that sets a pager", change: files{"hack/pager": "x"}, want: "hold", path: "hack/pager"},
		{name: "an archive's command", change: files{"hack/xz": "x"}, want: "hold", path: "hack/xz"},
		{name: "allowed signers", change: files{"etc/signers": "x"}, want: "hold", path: "etc/signers"},
		{name: "a key that nobody knows", change: files{"etc/new": "x"}, want: "hold", path: "etc/new"},
		{name: "a hook in the configuration", change: files{"hack/lint": "x"}, want: "hold", path: "hack/lint"},
		{name: "where git-lfs sends to", change: files{".lfsconfig": "[lfs]\n\turl = https://lfs.example\n"}, want: "hold", path: ".lfsconfig"},
		{name: "a charset that iconv loads", change: files{"src/.gitattributes": "*.t working-tree-encoding=/tmp/x//\n"}, want: "hold", path: "src/.gitattributes"},
		{name: "a charset by a macro", change: files{".gitattributes": "[attr]odd working-tree-encoding=INTERNAL\n*.t odd\n"}, want: "hold", path: ".gitattributes"},
		{name: "known charsets", change: files{".gitattributes": "*.a working-tree-encoding=UTF-16LE-BOM\n*.b working-tree-encoding=Shift_JIS\n*.c working-tree-encoding=windows-1252\n*.d working-tree-encoding=ISO-8859-15\n*.e -working-tree-encoding\n"}},
		{name: "files beside all that", change: files{"src/log.go": "x", "docs/less": "x", "src/nb2.py": "x", "setup/x.py": "x", "gh/auth": "x", "lib2/x.sh": "x"}},
		{name: "another tool", change: files{"tools/other": runs + "x", "tools/none": "x"}},
		{name: "attributes of no driver", change: files{".gitattributes": "*.bin binary\n*.x filter=unknown\n"}},
		{name: "attributes that were there", before: files{".gitattributes": "*.bin filter=lfs\n"}, change: files{".gitattributes": "*.bin filter=lfs\n*.txt text\n"}},
	},
	"embedded-repo": {
		{name: "bare", change: files{"docs/r/HEAD": "x", "docs/r/objects/k": "x", "docs/r/refs/k": "x"}, want: "hold", path: "docs/r/HEAD"},
		{name: "completed", before: files{"r/HEAD": "x", "r/objects/k": "x"}, change: files{"r/refs/k": "x"}, want: "hold", path: "r/refs/k"},
		{name: "other case", change: files{"r/head": "x", "r/Objects/k": "x", "r/REFS/k": "x"}, want: "hold", path: "r/Objects/k"},
		{name: "a linked one", change: files{"r/HEAD": "x", "r/commondir": "x"}, want: "hold", path: "r/HEAD"},
		{name: "at the top", change: files{"HEAD": "x", "objects/k": "x", "refs/k": "x"}, want: "hold", path: "HEAD"},
		{name: "its configuration", before: files{"r/HEAD": "x", "r/objects/k": "x", "r/refs/k": "x"}, change: files{"r/config": "x"}, want: "hold", path: "r/config"},
		{name: "parts", change: files{"r/HEAD": "x", "r/objects/k": "x", "s/refs/k": "x", "config": "x", "hooks/x": "x"}},
		{name: "objects of one that was there", before: files{"r/HEAD": "x", "r/objects/k": "x", "r/refs/k": "x"}, change: files{"r/objects/l": "x"}},
	},
	"odd-path": {
		{name: "newline", change: files{"a\nb": "x"}, want: "hold", path: `a\nb`},
		{name: "escape", change: files{"d\x1b[31m/x": "x"}, want: "hold", path: `d\u001b[31m/x`},
		{name: "right to left", change: files{"a\u202eb": "x"}, want: "hold", path: `a\u202eb`},
		{name: "bytes", change: files{"a\xff": "x"}, want: "flag", path: `a\xff`},
		{name: "backslash", change: files{`a\b`: "x"}, want: "hold", path: `a\b`},
		{name: "stream", change: files{"a:b": "x"}, want: "hold", path: "a:b"},
		{name: "refused by Windows", change: files{"a?\"b": "x"}, want: "flag", path: "a?\"b"},
		{name: "device", change: files{"src/aux.c": "x"}, want: "hold", path: "src/aux.c"},
		{name: "dot at the end", change: files{"a./x": "x"}, want: "hold", path: "a./x"},
		{name: "no-break space at the end", change: files{"src\u00a0/x": "x"}, want: "hold", path: "src\u00a0/x"},
		{name: "wide space before the extension", change: files{"a\u2003.js": "x"}, want: "hold", path: "a\u2003.js"},
		{name: "wide space at the beginning", change: files{" \u3000a": "x"}, want: "hold", path: " \u3000a"},
		{name: "wide spaces between letters", change: files{"10.00.00\u202fAM.png": "x", "日\u3000本": "x", " a .b": "x"}},
		{name: "nothing but a wide space", change: files{"\u00a0": "x"}, want: "hold", path: "\u00a0"},
		{name: "short name", change: files{"PROGRA~1": "x"}, want: "hold", path: "PROGRA~1"},
		{name: "ordinary", change: files{"a b/ü.txt": "x", "auxiliary.c": "x", "console": "x", "backup~": "x", "日本": "x", ".x": "x", "a~b": "x"}},
		{name: "was there", before: files{"a:b": "x"}, change: files{"a:b": "y"}},
		{name: "removed", before: files{"a:b": "x"}, change: files{"a:b": ""}},
	},
	"case-collision": {
		{name: "file", change: files{"readme": "x"}, want: "hold", path: "readme"},
		{name: "folder", change: files{"SRC/x": "x"}, want: "hold", path: "SRC/x"},
		{name: "accents", change: files{"\u00e9": "x", "e\u0301": "x"}, want: "hold", path: "e\u0301"},
		{name: "long s", change: files{"\u017frc/x": "x"}, want: "hold", path: "\u017frc/x"},
		{name: "another folder", change: files{"docs/README": "x"}},
		{name: "a change of case alone", change: files{"README": "", "readme": "x"}},
		{name: "was there", before: files{"readme": "x"}, change: files{"readme": "y"}},
	},
	"secret": {
		{name: "token", change: files{"src/main.go": "package main\nconst t = \"" + sampleToken + "\"\n"}, want: "hold", path: "src/main.go"},
		{name: "in the message", message: "use " + sampleToken + "\n", want: "hold"},
		{name: "what the prison has in its place", change: files{"src/main.go": "package main\nconst t = \"" + samplePhantom + "\"\n"}},
		{name: "what the prison has in its place, in the message", message: "use " + samplePhantom + "\n"},
		{name: "a token beside it", change: files{"a": samplePhantom + "\n" + sampleToken + "\n"}, want: "hold", path: "a"},
		{name: "a guess", change: files{"a.py": sampleGuess}, want: "flag", path: "a.py"},
		{name: "after many guesses", change: files{"a.py": strings.Repeat(sampleGuess, 200) + sampleToken + "\n"}, want: "hold", path: "a.py"},
		{name: "after many excused ones", change: files{"a.py": strings.Repeat(sampleExcused, 200) + sampleKey}, want: "hold", path: "a.py"},
		{name: "after many in the message", message: strings.Repeat(sampleExcused, 200) + sampleKey, want: "hold"},
		{name: "after many that were there", before: files{"a.py": strings.Repeat(sampleKey, 200)}, change: files{"a.py": strings.Repeat(sampleKey, 200) + "x " + sampleKey}, want: "hold", path: "a.py"},
		{name: "between many that were there", before: files{"a.py": strings.Repeat(sampleKey, 200)}, change: files{"a.py": strings.Repeat(sampleKey, 200) + "x\n" + strings.Repeat(sampleKey, 200)}, want: "hold", path: "a.py"},
		{name: "beside many that were there", before: files{"a.py": strings.Repeat(sampleKey, 200)}, change: files{"a.py": "x\n" + strings.Repeat(sampleKey, 200) + "y\n"}},
		{name: "many excused ones", change: files{"a.py": strings.Repeat(sampleExcused, 200)}},
		{name: "within a key that was there", before: files{"k": keyAround("placeholder\n")}, change: files{"k": keyAround(strings.Repeat("MIIEowIBAAKCAQEAx7Kf9Qb3\n", 8))}, want: "hold", path: "k"},
		{name: "beside a key that was there", before: files{"k": keyAround(strings.Repeat("MIIEowIBAAKCAQEAx7Kf9Qb3\n", 8))}, change: files{"k": "first\n" + keyAround(strings.Repeat("MIIEowIBAAKCAQEAx7Kf9Qb3\n", 8)) + "last\n"}},
		{name: "was binary", before: files{"a.dat": "\x00\x01\x02\n" + sampleToken + "\n"}, change: files{"a.dat": sampleToken + "\n"}, want: "hold", path: "a.dat"},
		{name: "moved with its file", before: files{"a": sampleToken + "\n"}, change: files{"a": "", "b": sampleToken + "\n"}},
		{name: "was there", before: files{"a": sampleToken + "\n"}, change: files{"a": "more\n" + sampleToken + "\r\n"}},
		{name: "removed", before: files{"a": sampleToken + "\n"}, change: files{"a": "none\n"}},
		{name: "nothing", change: files{"a": "ghp_ and keys = none\n"}, message: "tokens\n"},
	},
	"large-file": {
		{name: "large", change: files{"a": strings.Repeat("x", 1001)}, want: "hold", path: "a"},
		{name: "at the limit", change: files{"a": strings.Repeat("x", 1000)}},
		{name: "was there", before: files{"a": strings.Repeat("x", 1001)}, change: files{"b/a": strings.Repeat("x", 1001), "a": ""}},
	},
	"agent-config": {
		{name: "servers", change: files{"sub/.mcp.json": "{}"}, want: "hold", path: "sub/.mcp.json"},
		{name: "hooks", change: files{".claude/settings.json": "{}"}, want: "hold", path: ".claude/settings.json"},
		{name: "other case", change: files{".Claude/Hooks/x": "x"}, want: "hold", path: ".Claude/Hooks/x"},
		{name: "instructions", change: files{"AGENTS.md": "x"}, want: "flag", path: "AGENTS.md"},
		{name: "a link in the folder's place", change: files{".claude": linkTo + "docs"}, want: "hold", path: ".claude"},
		{name: "removed", before: files{".mcp.json": "{}"}, change: files{".mcp.json": ""}},
		{name: "a like name", change: files{"docs/mcp.md": "x", "claude/x": "x"}},
	},
	"host-exec": {
		{name: "CI", change: files{".github/workflows/x.yml": "x"}, want: "flag", path: ".github/workflows/x.yml"},
		{name: "editor", change: files{"a/.vscode/tasks.json": "x"}, want: "flag", path: "a/.vscode/tasks.json"},
		{name: "git lfs", change: files{".lfsconfig": "[lfs]\n\turl = https://x\n"}, want: "flag", path: ".lfsconfig"},
		{name: "shell", change: files{".envrc": "x"}, want: "flag", path: ".envrc"},
		{name: "CI edited", before: files{".github/workflows/x.yml": "x"}, change: files{".github/workflows/x.yml": "y"}},
		{name: "CI becomes a link", before: files{".github/workflows/x.yml": "x"}, change: files{".github/workflows/x.yml": linkTo + "y"}, want: "flag", path: ".github/workflows/x.yml"},
		{name: "editor edited", before: files{".vscode/tasks.json": "x"}, change: files{".vscode/tasks.json": "y"}, want: "flag", path: ".vscode/tasks.json"},
		{name: "tests", change: files{"src/conftest.py": "x"}, want: "flag", path: "src/conftest.py"},
		{name: "tests edited", before: files{"conftest.py": "x"}, change: files{"conftest.py": "y"}},
		{name: "package script edited", before: files{"package.json": `{"scripts":{"a":"b"}}`}, change: files{"package.json": `{"scripts":{"a":"c"}}`}},
		{name: "package script added", before: files{"package.json": `{"scripts":{"a":"b"}}`}, change: files{"package.json": `{"scripts":{"a":"b","prea":"c"}}`}, want: "flag", path: "package.json"},
		{name: "install script edited", before: files{"package.json": `{"scripts":{"postinstall":"b"}}`}, change: files{"package.json": `{"scripts":{"postinstall":"c"}}`}, want: "flag", path: "package.json"},
		{name: "scripts that are none", before: files{"package.json": `{"scripts":{"a":"b"}}`}, change: files{"package.json": `{"scripts":["a"]}`}, want: "flag", path: "package.json"},
		{name: "package too deep to be read", change: files{"package.json": strings.Repeat("[", 9000)}, want: "flag", path: "package.json"},
		{name: "version", before: files{"package.json": `{"version":1,"scripts":{"a":"b"}}`}, change: files{"package.json": `{"version":2,"scripts":{"a":"b"}}`}},
		{name: "editor's folder is a link", change: files{".vscode": linkTo + "docs"}, want: "flag", path: ".vscode"},
		{name: "package with a mark", change: files{"package.json": "\ufeff" + `{"scripts":{"a":"c"}}`}, want: "flag", path: "package.json"},
		{name: "package that cannot be read", change: files{"package.json": strings.Repeat(" ", textLimit) + `{"scripts":{"a":"c"}}`}, want: "flag", path: "package.json"},
		{name: "package that is a link", change: files{"package.json": linkTo + "README"}, want: "flag", path: "package.json"},
		{name: "ordinary", change: files{"Makefile": "x", "src/setup.go": "x", ".github/ISSUE_TEMPLATE.md": "x"}},
	},
	"hidden-text": {
		{name: "bidirectional", change: files{"a.c": "if (x) \u202e// y\n"}, want: "flag", path: "a.c"},
		{name: "zero width", change: files{"a.c": "pass\u200bword\n"}, want: "flag", path: "a.c"},
		{name: "tags", change: files{"a.md": "hello \U000e0069\U000e0067\n"}, want: "flag", path: "a.md"},
		{name: "message", message: "a\u2066b\n", want: "flag"},
		{name: "name", change: files{"a\u200bb": "x"}, want: "flag", path: `a\u200bb`},
		{name: "names of authors", change: files{".mailmap": "A <a@x> <b@x>\n"}, want: "flag", path: ".mailmap"},
		{name: "names below", change: files{"docs/.mailmap": "A <a@x> <b@x>\n"}},
		{name: "emoji and joined scripts", change: files{"a.md": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f می\u200cخواهم क्\u200dष\n"}},
		{name: "bits of an invisible text", change: files{"a.js": "t='\ufe0e\ufe0f\ufe0f'\n"}, want: "flag", path: "a.js"},
		{name: "byte order mark", change: files{"a.txt": "\ufeffhello\n"}},
		{name: "binary", change: files{"a.bin": "\x00\u202e"}},
		{name: "longer than is read", change: files{"a.c": strings.Repeat("x\n", textLimit/2) + "\u202e\n"}, want: "flag", path: "a.c"},
		{name: "more than is searched", change: filled(textBudget/textLimit + 1), want: "flag", path: "a8"},
		{name: "was there", before: files{"a.c": "\u202e\n"}, change: files{"a.c": "\u202e\nx\n"}},
		{name: "no diff", change: files{".gitattributes": "*.go -diff\n"}, want: "flag", path: ".gitattributes"},
		{name: "as if binary", change: files{"src/.gitattributes": "* binary\n"}, want: "flag", path: "src/.gitattributes"},
		{name: "by macros", before: files{".gitattributes": "[attr]a b\n[attr]b -diff\n"}, change: files{"src/.gitattributes": "*.go a\n"}, want: "flag", path: "src/.gitattributes"},
		{name: "of pictures", change: files{".gitattributes": "*.PNG -diff\n*.woff2 binary\n[attr]m -diff\n*.go diff=golang text\n"}},
		{name: "no diff before", before: files{".gitattributes": "*.go  -diff\n"}, change: files{".gitattributes": "*.go -diff\n*.c text\n"}},
	},
	"recipe": {
		{name: "itself", change: files{"coding-environment.toml": "x"}, want: "hold", path: "coding-environment.toml"},
		{name: "other case", change: files{"Coding-Environment.toml": "x"}, want: "hold", path: "Coding-Environment.toml"},
		{name: "what it names", change: files{"docker/Dockerfile": "x"}, want: "hold", path: "docker/Dockerfile"},
		{name: "the folder above becomes a link", change: files{"docker": linkTo + "src"}, want: "hold", path: "docker"},
		{name: "removed", before: files{"coding-environment.toml": "x"}, change: files{"coding-environment.toml": ""}, want: "hold", path: "coding-environment.toml"},
		{name: "below another folder", change: files{"docs/coding-environment.toml": "x", "docker/other": "x"}},
	},
	"ghost-leak": {
		{name: "name", message: "Fix\n\nSigned-off-by: robin vale\n", want: "flag"},
		{name: "mail", message: "by robin.vale@mail.example\n", want: "flag"},
		{name: "another", message: "Thanks to Robin Hood <robin@example.org>\n"},
	},
	"phantom": {
		{name: "in a text", change: files{"src/main.go": "package main\n\nconst key = \"" + samplePhantom + "\"\n"}, want: "flag", path: "src/main.go"},
		{name: "in a binary", change: files{"a.bin": "\x00\x01" + samplePhantom}, want: "flag", path: "a.bin"},
		{name: "in a name", change: files{"log/" + samplePhantom: "x"}, want: "flag", path: "log/" + samplePhantom},
		{name: "in the message", message: "Use " + samplePhantom + "\n", want: "flag"},
		{name: "was there", before: files{"a": samplePhantom + "\n"}, change: files{"a": samplePhantom + "\nmore\n"}},
		{name: "removed", before: files{"a": samplePhantom + "\n"}, change: files{"a": ""}},
		{name: "a part of it", change: files{"a": samplePhantom[:20] + "\n"}},
	},
	"protected-path": {
		{name: "held", change: files{"deploy/x/y": "x"}, want: "hold", path: "deploy/x/y"},
		{name: "flagged", change: files{"a/b.tf": "x"}, want: "flag", path: "a/b.tf"},
		{name: "the folder is a link", change: files{"deploy": linkTo + "src"}, want: "hold", path: "deploy"},
		{name: "removed", before: files{"deploy/x": "x"}, change: files{"deploy/x": ""}, want: "hold", path: "deploy/x"},
		{name: "beside", change: files{"deploy.md": "x", "src/deploy": "x"}},
	},
}

// filled returns files of the largest size that is read.
func filled(n int) files {
	all := files{}
	for i := range n {
		all[fmt.Sprint("a", i)] = fmt.Sprint(i) + strings.Repeat(" ", textLimit-1)
	}
	return all
}

// testSettings are the defaults, with a small limit and a team that guards paths.
func testSettings(t *testing.T) Settings {
	t.Helper()
	s, err := ReadSettings(gitops.Config{"airlock.maxfilesize": "1000"})
	check(t, err)
	team, err := ParseTeam([]byte(`version = 1
[[paths]]
patterns = ["/deploy/**"]
action = "hold"
reason = "ask the platform team"
[[paths]]
patterns = ["*.tf"]
action = "flag"
`))
	check(t, err)
	return s.With(team)
}

// TestRules shows each rule a commit that it must find something in, and one that it must not.
func TestRules(t *testing.T) {
	for rule := range ruleCases {
		for _, c := range casesOf(rule) {
			t.Run(rule+"/"+c.name, func(t *testing.T) {
				s := newStore()
				before := testBase.with(c.before)
				if c.message == "" {
					c.message = "change\n"
				}
				found, err := New(testSettings(t), testFacts, s).Check(t.Context(), s.commit(before, before.with(c.change), c.message))
				check(t, err)
				got, path := "", ""
				for _, f := range found {
					if f.Rule == rule && got == "" {
						got, path = f.Action.String(), strings.Join(f.Paths[:min(1, len(f.Paths))], "")
					}
				}
				if got != c.want || path != c.path {
					t.Errorf("%q at %q, want %q at %q: %+v", got, path, c.want, c.path, found)
				}
			})
		}
	}
}

// TestMessageEncoding checks messages in other encodings: git decodes a message by the encoding in its header.
func TestMessageEncoding(t *testing.T) {
	for _, c := range []struct {
		encoding, message string
		flagged           bool
	}{
		{"", "a +IC4-b\n", false}, {"UTF-8", "a +IC4-b\n", false}, {"ISO-8859-1", "a +IC4-b\n", false},
		{"UTF-7", "a +IC4-b\n", true}, {"utf-16", "a +IC4-b\n", true}, {"ISO-8859-8", "a +IC4-b\n", true},
		{"ISO-8859-1", "a\x9b2Jb\n", true}, {"latin1", "a\x9b2Jb\n", true}, {"ISO-8859-15", "a\xadb\n", true},
		{"windows-1252", "a\xadb\n", true}, {"cp1252", "a\x9d0;b\n", true},
		{"windows-1252", "a\x81\u202eb\n", true}, // cannot be converted, and is shown as it is
		{"ISO-8859-15", "gr\xfc\xdfe, 5 \xa4\n", false}, {"windows-1252", "\x93gr\xfc\xdfe\x94 \x96 5 \x80\n", false},
		{"", "gr\xfc\xdfe\n", false}, {strings.Repeat("x", 400<<10), "a\n", true},
	} {
		s := newStore()
		commit := s.commit(testBase, testBase, c.message)
		commit.Encoding = c.encoding
		found, err := New(testSettings(t), testFacts, s).Check(t.Context(), commit)
		check(t, err)
		if got := len(found) > 0 && found[0].Rule == "hidden-text" && len(found[0].Detail) < 200; got != c.flagged {
			t.Errorf("%.99q, %q: %.999v, want flagged %t", c.encoding, c.message, found, c.flagged)
		}
	}
}

// A submodule whose path goes through the workspace of any airlock is refused, on any file system.
func TestSubmoduleInWorkspace(t *testing.T) {
	for path, bad := range map[string]bool{
		".devspace-7f3a": true, ".devspace-7f3a/sub": true, "nested/.cedar-0000": true, ".DevSpace-7F3A": true, ".devspace-7f3a ": true,
		"mod": false, ".devspace": false, "devspace-7f3a": false, ".devspace-7f3g": false,
	} {
		s := newStore()
		_, err := New(Settings{}, testFacts, s).Check(t.Context(), s.commit(testBase, testBase.with(files{path: gitlink + "1"}), ""))
		var invalid *inner.Invalid
		if errors.As(err, &invalid) != bad || !bad && err != nil {
			t.Errorf("%q: %v, want refused %t", path, err, bad)
		}
	}
}

// No rule may be without a case of each kind.
func TestRulesAreTested(t *testing.T) {
	for _, d := range Rules() {
		if d.ID == "git-path" {
			continue // see TestGitPath
		}
		if d.ID == budgetID {
			continue // see TestBudget
		}
		if d.ID == Fetched {
			continue // see TestFetched
		}
		hits, misses := 0, 0
		for _, c := range ruleCases[d.ID] {
			if c.want == "" {
				misses++
			} else {
				hits++
			}
		}
		if hits == 0 || misses == 0 || d.Doc == "" {
			t.Errorf("%s: %d hits, %d misses, %q", d.ID, hits, misses, d.Doc)
		}
	}
}

func TestGitPath(t *testing.T) {
	for path, bad := range map[string]bool{
		".git/x": true, "a/.GIT/x": true, "git~1": true, ".git ": true, ".git.": true, ".git::$INDEX_ALLOCATION/x": true, ".g\u200cit": true,
		`a\.git\x`: true, "..": true, "a/./b": true, "a/../b": true,
		"x.git/config": false, ".gitignore": false, "git": false, ".github/x": false, "...": false,
	} {
		s := newStore()
		_, err := New(Settings{}, testFacts, s).Check(t.Context(), s.commit(testBase, testBase.with(files{path: "x"}), ""))
		var invalid *inner.Invalid
		if errors.As(err, &invalid) != bad || !bad && err != nil {
			t.Errorf("%q: %v, want refused %t", path, err, bad)
		}
	}
}
