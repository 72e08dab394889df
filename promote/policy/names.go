package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/git-airlock/git-airlock/gitops"
)

// same is what two names have in common that some file system takes for one: those of macOS and Windows, and
// Linux's own with casefold, ignore case; macOS ignores how letters with accents are composed.
func same(name string) string {
	if isASCII(name) {
		return strings.ToLower(name)
	}
	// Folding can leave what composes differently.
	return norm.NFC.String(fold(norm.NFC.String(name)))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold takes the case away from a text. Letters that fold with an ASCII one become that one.
func fold(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == 'ß' || r == 'ẞ' {
			b.WriteString("ss")
			continue
		}
		b.WriteRune(foldRune(r))
	}
	return b.String()
}

func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}

// plain is the name that some file system may take a name for: HFS+ and Linux's casefold pass over code points that
// do not show, Windows over dots and spaces at the end and over what follows a colon.
func plain(name string) string {
	if !isASCII(name) {
		name = strings.Map(func(r rune) rune {
			if ignorable(r) {
				return -1
			}
			return r
		}, name)
	}
	name, _, _ = strings.Cut(name, ":")
	return same(strings.TrimRight(name, ". "))
}

// ignorable reports whether a file system may pass over a code point.
func ignorable(r rune) bool {
	return r >= utf8.RuneSelf && (gitops.Hidden(r) || r == '\uFE0E' || r == '\uFE0F')
}

// means reports whether a name may stand for a file that git reads, such as ".gitmodules": by its plain form, or
// by the short name that Windows gives it ("GITMOD~1", or "GI7EBA~1" if the first ones are taken).
func means(name, file string) bool {
	p := plain(name)
	if p == file {
		return true
	}
	stem, number, short := strings.Cut(p, "~")
	if !short || len(number) == 0 || number[0] < '1' || number[0] > '9' {
		return false
	}
	letters := strings.TrimPrefix(file, ".")
	if stem == letters[:min(6, len(letters))] {
		return true
	}
	return len(stem) == 6 && stem[:2] == letters[:2] && isHex(stem[2:])
}

func isHex(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}

// isGit reports whether a name may stand for ".git". A backslash separates folders on Windows.
func isGit(name string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		p := plain(part)
		if p == ".git" || p == "git~1" {
			return true
		}
	}
	return false
}

// components calls each with every component of a path and the folder it is in, until one says stop.
func components(path string, each func(dir, name string) bool) {
	for from := 0; ; {
		end := strings.IndexByte(path[from:], '/')
		if end < 0 {
			each(strings.TrimSuffix(path[:from], "/"), path[from:])
			return
		}
		if !each(strings.TrimSuffix(path[:from], "/"), path[from:from+end]) {
			return
		}
		from += end + 1
	}
}

// base is the last component of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// folderOf is a path without its last component; empty at the top.
func folderOf(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// join is the path of a name in a folder.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// below reports whether a path is a folder's or lies in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
