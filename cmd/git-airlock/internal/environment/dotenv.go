package environment

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
)

// DotenvName is a file at the top of the work tree with the user's variables. Only those that are named go in.
const DotenvName = ".env"

// maxDotenv bounds what is read of it.
const maxDotenv = 1 << 20

// Dotenv reads the file; without one there are no variables.
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
	content, err := io.ReadAll(io.LimitReader(file, maxDotenv))
	return parseDotenv(string(content)), err
}

// parseDotenv reads lines NAME=VALUE, with an optional "export" and quotes: in single ones all is as it is, in double
// ones backslashes escape. Lines that are none are skipped: the file is written for other programs.
func parseDotenv(content string) map[string]string {
	vars := map[string]string{}
	for line := range strings.Lines(content) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || !VariableName.MatchString(name) {
			continue
		}
		vars[name] = dotenvValue(strings.TrimSpace(value))
	}
	return vars
}

func dotenvValue(text string) string {
	if rest, ok := strings.CutPrefix(text, "'"); ok {
		value, _, _ := strings.Cut(rest, "'")
		return value
	}
	if rest, ok := strings.CutPrefix(text, `"`); ok {
		return doubleQuoted(rest)
	}
	if i := strings.Index(text, " #"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

// doubleQuoted reads up to the closing quote.
func doubleQuoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text) && text[i] != '"'; i++ {
		if text[i] != '\\' || i+1 == len(text) {
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
	return b.String()
}

// HostVariable returns one of the user's variables: from the environment, else from their .env file.
func HostVariable(name string, file map[string]string) (string, bool) {
	if value, set := hostenv.Original(name); set {
		return value, true
	}
	value, set := file[name]
	return value, set
}

// VariableName matches the names of variables.
var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Variables returns the environment that a setup asks for, as NAME=VALUE: what it sets, and what it passes in of the user's
// own variables or of their .env file.
func (b Builder) Variables(s Setup, dotenv map[string]string) (env []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Env.Set)) {
		env = append(env, name+"="+s.Env.Set[name])
	}
	for _, name := range s.Env.Pass {
		if value, set := HostVariable(name, dotenv); set {
			env = append(env, name+"="+value)
		} else {
			b.Report.Say("%s: %s is not set here and not passed", s.File, name)
		}
	}
	return env
}

// WarnUnused says what of a setup a backend without images does not give.
func (b Builder) WarnUnused(s Setup) {
	for _, from := range []string{s.OS.Base, s.OS.Dockerfile} {
		if from != "" {
			b.Report.Say("%s: %s is not used: a native prison has this machine's system", s.File, gitops.Escape(from))
		}
	}
}
