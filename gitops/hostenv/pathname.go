package hostenv

import (
	"os"
	"path/filepath"
	"strings"
)

// optional begins the value of a setting whose file may be missing, since git 2.52 (pathname in git-config(1)).
const optional = ":(optional)"

// Pathname returns the path that the value of a setting names, with the home in the place of a tilde. It may be relative to the folder in which
// git runs.
func Pathname(value string) string { return FromHome(strings.TrimPrefix(value, optional)) }

// AtTop returns the value of a setting with an absolute path in the place of a relative one, which starts at the top of a work tree: git runs
// there, and we run it elsewhere.
func AtTop(value, top string) string {
	name := strings.TrimPrefix(value, optional)
	if name == "" || strings.ContainsRune("/~%:", rune(name[0])) {
		return value
	}
	return strings.TrimSuffix(value, name) + top + "/" + name
}

// FromHome replaces a tilde by the home, as git and shells do.
func FromHome(name string) string {
	rest, tilde := strings.CutPrefix(name, "~/")
	if home, err := os.UserHomeDir(); tilde && err == nil {
		return filepath.Join(home, rest)
	}
	return name
}
