package pathname

import (
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Shown returns a path as it is shown: escaped, like every [gitops.Text]. If that were also the form of another path, as of a name that
// contains the characters of an escape, each backslash of the path is doubled, so that [Meant] returns the path again.
func Shown(path string) string {
	if shown := gitops.Text(path).String(); Meant(shown) == path {
		return shown
	}
	return doubled(path)
}

// doubled returns a path with its own backslashes doubled, and escaped.
func doubled(path string) string {
	return gitops.Text(strings.ReplaceAll(path, `\`, `\\`)).String()
}

// Meant returns the path that a user means who types its shown form, or the path itself. A text that no path is shown as stands for
// itself.
func Meant(text string) string {
	path, ok := unescape(text)
	if ok && (gitops.Text(path).String() == text || doubled(path) == text) {
		return path
	}
	return text
}

// unescape decodes the escapes of [gitops.Text], and doubled backslashes.
func unescape(text string) (string, bool) {
	var b strings.Builder
	for text != "" {
		literal, rest, escaped := strings.Cut(text, `\`)
		b.WriteString(literal)
		if !escaped {
			break
		}
		if rest == "" || !strings.Contains(`\ntxuU`, rest[:1]) {
			return "", false
		}
		char, wide, after, err := strconv.UnquoteChar(`\`+rest, 0)
		switch {
		case err != nil:
			return "", false
		case wide:
			b.WriteRune(char)
		default:
			b.WriteByte(byte(char))
		}
		text = after
	}
	return b.String(), true
}
