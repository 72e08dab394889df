package recipe

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Bounds of a .dockerignore, which every file of a context is held against.
const (
	maxIgnored        = 1000
	maxIgnoredPattern = 4096 // bytes, as a path has
)

// Ignored is what a .dockerignore keeps out of a build's context. The zero value keeps nothing out.
type Ignored struct {
	patterns *patternmatcher.PatternMatcher
	length   int
}

// Length is the number of bytes of all patterns.
func (i Ignored) Length() int { return i.length }

// IgnoredFiles are the paths at which what a Dockerfile is built without can be written down, as Docker has it: a file for
// this Dockerfile alone goes before the one of its context.
func IgnoredFiles(dockerfile, context string) []string {
	return []string{dockerfile + ".dockerignore", path.Join(context, ".dockerignore")}
}

// ParseIgnored reads such a file.
func ParseIgnored(file string, content []byte) (Ignored, error) {
	wrong := func(format string, args ...any) (Ignored, error) {
		return Ignored{}, Errors{{File: printable(file), Message: fmt.Sprintf(format, args...)}}
	}
	if len(content) > MaxSize {
		return wrong("%d bytes are more than %d", len(content), MaxSize)
	}
	lines, err := ignorefile.ReadAll(bytes.NewReader(content))
	if err != nil {
		return wrong("%s", err)
	}
	if len(lines) > maxIgnored {
		return wrong("%d patterns are more than %d", len(lines), maxIgnored)
	}
	length := 0
	for _, line := range lines {
		length += len(line)
		if len(line) > maxIgnoredPattern {
			return wrong("a pattern has more than %d bytes", maxIgnoredPattern)
		}
		if !isPattern(line) {
			return wrong("%s is no pattern", quote(line))
		}
	}
	all, err := patternmatcher.New(lines)
	return Ignored{all, length}, err
}

// isPattern tries a line. What is behind an exclamation mark is only looked at where something was kept out before.
func isPattern(line string) bool {
	if _, err := patternmatcher.New([]string{line}); err != nil {
		return false
	}
	plain, err := patternmatcher.New([]string{strings.TrimPrefix(line, "!")})
	if err == nil {
		_, err = plain.MatchesOrParentMatches("a")
	}
	return err == nil
}

// Has reports whether a file of the context is kept out.
func (i Ignored) Has(file string) (bool, error) {
	if i.patterns == nil {
		return false, nil
	}
	return i.patterns.MatchesOrParentMatches(file)
}
