package execs

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// digestPrefix begins a rule about the content of a file.
const digestPrefix = "sha256:"

// Rules refuse programs.
type Rules struct {
	globs   []string          // rules that are patterns
	digests map[string]string // rules by their digests
}

// ParseRules reads rules. "sha256:" and 64 hex digits stand for the content of the program's file. Every other rule is a pattern in which
// "*" stands for any characters and "?" for one. It must match the whole path, the path of the program's file without links, the name at
// the end of the path, or the command line: that name and the arguments with a space before each.
func ParseRules(texts []string) (*Rules, error) {
	r := &Rules{digests: map[string]string{}}
	for _, text := range texts {
		digest, ok := strings.CutPrefix(text, digestPrefix)
		switch bytes, err := hex.DecodeString(digest); {
		case ok && (err != nil || len(bytes) != 32):
			return nil, fmt.Errorf("%q is not sha256: and 64 hex digits", text)
		case ok:
			r.digests[strings.ToLower(digest)] = text
		case strings.Trim(text, "*?") == "":
			return nil, fmt.Errorf("%q matches every program", text)
		default:
			r.globs = append(r.globs, text)
		}
	}
	return r, nil
}

// NeedsContent reports whether a rule is about the content of files.
func (r *Rules) NeedsContent() bool { return len(r.digests) > 0 }

// refuses returns the rule that refuses a call, or an empty string. folder is the working folder of the process. file returns the path of
// the program's file without links, or an empty string if it is not known, and digest the digest of that file.
func (r *Rules) refuses(folder string, c call, file, digest func() string) string {
	if len(r.globs) > 0 {
		whole, name := c.path, path.Base(c.path)
		if !path.IsAbs(whole) {
			whole = path.Join(folder, whole)
		}
		line := name
		if len(c.argv) > 1 {
			line += " " + strings.Join(c.argv[1:], " ")
		}
		i := slices.IndexFunc(r.globs, func(g string) bool {
			return words.Matches(g, path.Clean(whole)) || words.Matches(g, name) || words.Matches(g, line)
		})
		if i >= 0 {
			return r.globs[i]
		}
		if rule := r.refusesFile(file()); rule != "" {
			return rule
		}
	}
	if r.NeedsContent() {
		return r.digests[digest()]
	}
	return ""
}

// refusesFile returns the rule that refuses a file by its path without links, or an empty string.
func (r *Rules) refusesFile(file string) string {
	if i := slices.IndexFunc(r.globs, func(g string) bool { return file != "" && words.Matches(g, file) }); i >= 0 {
		return r.globs[i]
	}
	return ""
}
