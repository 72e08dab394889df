package recipe

import (
	"bytes"
	"path"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Bounds of a .dockerignore. Every file of a context is compared with its patterns.
const (
	maxIgnored        = 1000
	maxIgnoredPattern = 4096 // in bytes, the maximum length of a path
)

// Ignored holds the patterns of a .dockerignore, which excludes files from a build's context. The zero value excludes
// none.
type Ignored struct {
	patterns *patternmatcher.PatternMatcher
	length   int // bytes of all patterns
}

// Length returns the number of bytes of all patterns.
func (i Ignored) Length() int { return i.length }

// IgnoredFiles returns the paths of a Dockerfile's ignore files, in Docker's order: the file for this Dockerfile
// alone comes before the one of its context.
func IgnoredFiles(dockerfile, context string) []string {
	return []string{dockerfile + ".dockerignore", path.Join(context, ".dockerignore")}
}

// ParseIgnored reads an ignore file.
func ParseIgnored(file string, content []byte) (Ignored, error) {
	if len(content) > MaxSize {
		return Ignored{}, Mistake(file, "%d bytes are more than %d", len(content), MaxSize)
	}
	lines, err := ignorefile.ReadAll(bytes.NewReader(content))
	if err != nil {
		return Ignored{}, Mistake(file, "%s", err)
	}
	if len(lines) > maxIgnored {
		return Ignored{}, Mistake(file, "%d patterns are more than %d", len(lines), maxIgnored)
	}
	length := 0
	for _, line := range lines {
		length += len(line)
		if len(line) > maxIgnoredPattern {
			return Ignored{}, Mistake(file, "a pattern has more than %d bytes", maxIgnoredPattern)
		}
		if !isPattern(line) {
			return Ignored{}, Mistake(file, "%s is not a pattern", quote(line))
		}
	}
	all, err := patternmatcher.New(lines)
	return Ignored{all, length}, err
}

// isPattern checks a line. The matcher only evaluates the part behind an exclamation mark if an earlier pattern has
// excluded the file, so that part is checked separately.
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

// Has reports whether a file of the context is excluded.
func (i Ignored) Has(file string) (bool, error) {
	if i.patterns == nil {
		return false, nil
	}
	return i.patterns.MatchesOrParentMatches(file)
}
