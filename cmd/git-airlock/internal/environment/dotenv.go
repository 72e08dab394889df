package environment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
)

// DotenvName is a file at the top of the work tree with the user's variables. Only the variables that are named are passed on.
const DotenvName = ".env"

// maxDotenv bounds the bytes of the file.
const maxDotenv = 1 << 20

// Dotenv reads the file. A missing file has no variables.
func Dotenv(top string) (map[string]string, error) {
	name := filepath.Join(top, DotenvName)
	if info, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDotenv+1))
	if err == nil && len(content) > maxDotenv {
		err = fmt.Errorf("%s has more than %d bytes", gitops.Text(name), maxDotenv)
	}
	if err != nil {
		return nil, err
	}
	return parseDotenv(string(content)), nil
}

// parseDotenv reads lines NAME=VALUE, with an optional "export" and quotes. Single quotes keep all characters, and in double quotes
// a backslash escapes the next one. As in the dotenv libraries of Node and Python, a quoted value may have several lines, as keys do,
// and a quote that is never closed is a character of the value. Other lines are skipped, because the file is written for other programs.
func parseDotenv(content string) map[string]string {
	vars := map[string]string{}
	for rest := strings.ReplaceAll(content, "\r\n", "\n"); rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if name = strings.TrimSpace(name); !ok || !prison.IsVariableName(name) {
			rest = after
			continue
		}
		_, value, _ := strings.Cut(rest, "=")
		vars[name], rest = dotenvValue(strings.TrimLeft(value, " \t"))
	}
	return vars
}

// dotenvValue reads the value at the beginning of a text, and returns the lines that follow it.
func dotenvValue(text string) (value, rest string) {
	closed := false
	switch {
	case strings.HasPrefix(text, "'"):
		value, rest, closed = strings.Cut(text[1:], "'")
	case strings.HasPrefix(text, `"`):
		value, rest, closed = doubleQuoted(text[1:])
	}
	if closed {
		_, rest, _ = strings.Cut(rest, "\n")
		return value, rest
	}
	value, rest, _ = strings.Cut(text, "\n")
	if i := strings.Index(value, " #"); i >= 0 {
		value = value[:i]
	}
	return strings.TrimSpace(value), rest
}

// doubleQuoted reads up to the closing quote.
func doubleQuoted(text string) (value, rest string, closed bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:], true
		case text[i] != '\\' || i+1 == len(text):
			b.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '"', '\\', '$', '`':
			b.WriteByte(text[i])
		default:
			b.WriteByte('\\')
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}
