package gitops

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Config is a repository's configuration as git resolved it at one moment.
type Config map[string]string

// Config reads the configuration. For a key with several values the last one counts, as for git. The result does
// not include the configuration that this package sets for its own commands.
func (r *Repository) Config(ctx context.Context) (Config, error) {
	records, err := r.listConfig(ctx, "--includes")
	if err != nil {
		return nil, err
	}
	return recorded(records), nil
}

// recorded returns the configuration in records of "git config -z".
func recorded(records []string) Config {
	c := make(Config, len(records))
	for _, rec := range records {
		c.add(keyAndValue(rec))
	}
	return c
}

// listConfig returns the configuration as "git config -z" lists it, without the configuration that this package sets for its own commands.
func (g *Git) listConfig(ctx context.Context, options ...string) ([]string, error) {
	own := *g
	own.config = nil
	return own.Records(ctx, Call{Args: append([]string{"config", "--list", "-z"}, options...)})
}

// CurrentGit runs git in a folder in this environment, whether or not the folder is in a repository.
func CurrentGit(dir string) *Git {
	g := newUserGit(dir)
	if gitDir := os.Getenv(gitDirVariable); gitDir != "" {
		g = g.With(gitDirVariable + "=" + gitDir)
	}
	return g
}

// Values returns all values of a setting that may have several. As in git, an empty value removes the values before it.
func (r *Repository) Values(ctx context.Context, key string) (values []string, err error) {
	records, err := r.listConfig(ctx, "--includes")
	for _, rec := range records {
		name, value, _ := strings.Cut(rec, "\n")
		switch {
		case canonical(name) != canonical(key):
		case value == "":
			values = nil
		default:
			values = append(values, value)
		}
	}
	return values, err
}

// CommandValues returns all values of a setting that were given for this one command with "git -c", also empty ones and those before them.
func (r *Repository) CommandValues(ctx context.Context, key string) (values []string, err error) {
	records, err := r.commandRecords(ctx)
	for _, rec := range records {
		if name, value, _ := strings.Cut(rec, "\n"); canonical(name) == canonical(key) {
			values = append(values, value)
		}
	}
	return values, err
}

// CommandConfig reads the configuration that was given for this one command with "git -c".
func (r *Repository) CommandConfig(ctx context.Context) (Config, error) {
	records, err := r.commandRecords(ctx)
	c := recorded(records)
	maps.DeleteFunc(c, func(key, _ string) bool { return strings.Contains(key, earlier) })
	return c, err
}

// commandRecords returns the configuration that was given with "git -c", in its order.
func (r *Repository) commandRecords(ctx context.Context) (given []string, err error) {
	if os.Getenv(configParameters) == "" {
		return nil, nil
	}
	records, err := r.With("GIT_CONFIG_COUNT=0").listConfig(ctx, "--show-scope") // configuration from the environment has the same scope as "git -c"
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(records); i += 2 {
		if records[i] == "command" {
			given = append(given, records[i+1])
		}
	}
	return given, nil
}

// keyAndValue splits a record of "git config -z".
func keyAndValue(record string) (key, value string) {
	key, value, valued := strings.Cut(record, "\n")
	if !valued {
		value = "true" // a key without "=" is a true boolean, git-config(1)
	}
	return key, value
}

// add adds a value of a key to those that were listed before it.
func (c Config) add(key, value string) {
	if before, again := c[key]; again && before != value {
		c[key+earlier+before] = before
	}
	c[key] = value
}

// earlier separates a key from an earlier value of the key. It does not occur in git's keys.
const earlier = "\x00"

// All returns all keys with each of their values, since git uses all values of some keys.
func (c Config) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for key, value := range c {
			key, _, _ := strings.Cut(key, earlier)
			if !yield(key, value) {
				return
			}
		}
	}
}

// Keys returns the keys in alphabetical order.
func (c Config) Keys() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(key string) bool { return strings.Contains(key, earlier) })
}

// With returns the configuration with other values for some keys. The keys must have the form in which git lists them.
func (c Config) With(others map[string]string) Config {
	all := maps.Clone(c)
	maps.Copy(all, others)
	return all
}

// canonical returns a key in the form in which git lists it: section and name in lower case, and the subsection between them unchanged.
func canonical(key string) string {
	first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
	if first < 0 {
		return strings.ToLower(key)
	}
	return strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
}

// Bool returns the value of a boolean setting, parsed as git does, or otherwise if the key is not set. The error is a *[SettingError].
func (c Config) Bool(key string, otherwise bool) (bool, error) {
	value, ok := c[canonical(key)]
	if !ok {
		return otherwise, nil
	}
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off", "":
		return false, nil
	}
	if n, err := strconv.Atoi(value); err == nil {
		return n != 0, nil
	}
	return false, &SettingError{Key: key, Value: value, Want: "a boolean"}
}

// Sharing describes the permissions with which a repository shares its files with other users (core.sharedRepository in git-config(1)).
type Sharing struct {
	mode fs.FileMode // permissions that each file gets
	only bool        // files get no other permissions
}

// Sharing returns the permissions with which a repository with this configuration shares its files. Git takes the setting from any file of the
// configuration, and from "git -c".
func (c Config) Sharing() Sharing {
	const key = "core.sharedRepository"
	value := c.String(key, "umask")
	n, notOctal := strconv.ParseUint(value, 8, 16)
	on, _ := c.Bool(key, false)
	switch {
	case notOctal == nil && n > 2:
		return Sharing{fs.FileMode(n) & 0o666, true}
	case value == "all", value == "world", value == "everybody", n == 2:
		return Sharing{mode: 0o664}
	case value == "group", n == 1, notOctal != nil && on:
		return Sharing{mode: 0o660}
	}
	return Sharing{}
}

// Mode returns the permissions of a file that would have the permissions alone in a repository that is not shared.
func (s Sharing) Mode(alone fs.FileMode) fs.FileMode {
	more := s.mode
	if alone&0o200 == 0 {
		more &^= 0o222
	}
	if s.only {
		return more
	}
	return alone | more
}

// Has reports whether a key is set.
func (c Config) Has(key string) bool { _, ok := c[canonical(key)]; return ok }

// String returns the value of a setting, or otherwise if the key is not set.
func (c Config) String(key, otherwise string) string {
	if value, ok := c[canonical(key)]; ok {
		return value
	}
	return otherwise
}

// Setting is one value of the configuration and its origin.
type Setting struct {
	Scope string // system, global, local, worktree or command
	File  string // empty if it does not come from a file; relative to the top of the work tree
	Key   string
	Value string
}

// Settings reads the configuration with the file of each value, in git's order, as listConfig does.
func (g *Git) Settings(ctx context.Context) ([]Setting, error) {
	records, err := g.listConfig(ctx, "--includes", "--show-scope", "--show-origin")
	if err != nil {
		return nil, err
	}
	var settings []Setting
	for i := 0; i+2 < len(records); i += 3 {
		s := Setting{Scope: records[i]}
		if file, ok := strings.CutPrefix(records[i+1], "file:"); ok {
			s.File = file
		}
		s.Key, s.Value = keyAndValue(records[i+2])
		settings = append(settings, s)
	}
	return settings, nil
}

// ConfigOf returns settings as a Config.
func ConfigOf(settings []Setting) Config {
	c := make(Config, len(settings))
	for _, s := range settings {
		c.add(s.Key, s.Value)
	}
	return c
}

// SettingError reports that a setting cannot be read.
type SettingError struct{ Key, Value, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s: %q is not %s", Text(e.Key), Text(e.Value), e.Want)
}
