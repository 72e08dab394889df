package airlock

import (
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// manyValued are the settings that have several values in force at once and that an airlock keeps. It keeps their values in one text, with a
// value on each line: an empty line removes those before it, as an empty value does for git.
var manyValued = []string{"airlock.allow", "airlock.deny", "airlock.exclude", "airlock.exec.deny"}

// IsMany reports whether all values of a setting are in force, and not the last one only. The key must have the form in which git lists it.
func IsMany(key string) bool {
	field := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case strings.HasPrefix(key, "airlock.credential."):
		return slices.Contains([]string{"host", "env", "paths"}, field)
	case strings.HasPrefix(key, "airlock.agent."):
		return slices.Contains([]string{"allow", "env"}, field)
	}
	return slices.Contains(manyValued, key)
}

// JoinValues returns the values of such a setting as an airlock keeps them.
func JoinValues(values []string) string { return strings.Join(values, "\n") }

// WithKept returns git's settings with those that an airlock keeps after them, where git reads those of "git -c". Readers of settings with
// their files, or of settings with several values, must use it: for them the configuration of a later process is not that of the airlock.
func WithKept(settings []gitops.Setting, kept map[string]string) []gitops.Setting {
	all := slices.Clone(settings)
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		values := []string{kept[key]}
		if IsMany(key) {
			values = strings.Split(kept[key], "\n")
		}
		for _, value := range values {
			all = append(all, gitops.Setting{Scope: "command", Key: key, Value: value})
		}
	}
	return all
}

// InForce returns the values of a setting, without those before an empty one.
func InForce(settings []gitops.Setting, key string) (values []gitops.Setting) {
	for _, s := range settings {
		switch {
		case !strings.EqualFold(s.Key, key):
		case s.Value == "":
			values = nil
		default:
			values = append(values, s)
		}
	}
	return values
}
