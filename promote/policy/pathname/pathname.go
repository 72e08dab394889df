// Package pathname compares the names of files as git and different file systems do. It finds names that some file system treats as equal, names
// that stand for .git, and paths of well-known files.
package pathname

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/git-airlock/git-airlock/gitops"
)

// Same maps names to the same text if some file system treats them as the same name. The file systems of macOS and
// Windows, and Linux's own with casefold, ignore case. macOS also ignores how letters with accents are composed.
func Same(name string) string {
	if isASCII(name) {
		return strings.ToLower(name)
	}
	// Folding can leave a text whose composition differs.
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

// fold removes the differences in case from a text. Letters that fold to an ASCII letter become that letter.
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

// Plain maps a name to the name that some file system may use instead. HFS+ and Linux's casefold ignore invisible
// code points. Windows ignores dots and spaces at the end, and everything after a colon.
func Plain(name string) string {
	if !isASCII(name) {
		name = strings.Map(func(r rune) rune {
			if ignorable(r) {
				return -1
			}
			return r
		}, name)
	}
	name, _, _ = strings.Cut(name, ":")
	return Same(strings.TrimRight(name, ". "))
}

// ignorable reports whether a file system may ignore a code point.
func ignorable(r rune) bool {
	return r >= utf8.RuneSelf && (gitops.Hidden(r) || r == '\uFE0E' || r == '\uFE0F')
}

// Means reports whether a name may stand for a file that git reads, such as ".gitmodules": by its plain form, or by
// the short name that Windows gives it ("GITMOD~1", or "GI7EBA~1" if the first ones are taken).
func Means(name, file string) bool {
	p := Plain(name)
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
	return len(stem) == 6 && stem[:2] == letters[:2] && strings.Trim(stem[2:], "0123456789abcdef") == ""
}

// IsGit reports whether a name may stand for ".git". A backslash separates folders on Windows.
func IsGit(name string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		p := Plain(part)
		if p == ".git" || p == "git~1" {
			return true
		}
	}
	return false
}

// Components calls each with every component of a path and its folder, until each returns false.
func Components(path string, each func(dir, name string) bool) {
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

// Base returns the last component of a path.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Folder returns a path without its last component, which is empty at the top.
func Folder(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// Join returns the path of a name in a folder.
func Join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// Below reports whether a path is a folder or is in it.
func Below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
