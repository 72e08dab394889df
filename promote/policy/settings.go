package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// keyPrefix begins the setting of each rule.
	keyPrefix = "airlock.policy."
	// maxFileSizeKey is the setting of what counts as a large file.
	maxFileSizeKey = "airlock.maxFileSize"
	// defaultMaxFileSize is the size from which common hosts of repositories warn.
	defaultMaxFileSize = 50 << 20
)

// Settings say what each rule does. The zero Settings are the defaults.
type Settings struct {
	actions     map[string]Action // of the rules that are not at their default
	maxFileSize int64
	protected   []protection
}

// SettingError says that a setting cannot be read.
type SettingError struct{ Key, Value, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s: %q is not %s", gitops.Escape(e.Key), gitops.Escape(e.Value), e.Want)
}

// ReadSettings reads airlock.policy.<rule> and airlock.maxFileSize. A rule that does not exist is an error: the
// wish for a "hold" that is misspelled must not be lost.
func ReadSettings(c gitops.Config) (Settings, error) {
	s := Settings{actions: map[string]Action{}}
	for _, key := range slices.Sorted(maps.Keys(c)) {
		id, ours := strings.CutPrefix(key, keyPrefix)
		if !ours {
			continue
		}
		action, err := ParseAction(c[key])
		switch d, known := describe(id); {
		case !known:
			return Settings{}, &SettingError{key, c[key], "a setting of a rule: the rules are " + strings.Join(ruleIDs(), ", ")}
		case d.Key == "":
			return Settings{}, &SettingError{key, c[key], "possible: that rule always holds"}
		case err != nil:
			return Settings{}, &SettingError{key, c[key], "hold, flag or off"}
		}
		s.actions[id] = action
	}
	var err error
	s.maxFileSize, err = readSize(c, maxFileSizeKey)
	return s, err
}

// Action is what a rule does.
func (s Settings) Action(id string) Action {
	if a, set := s.actions[id]; set {
		return a
	}
	d, _ := describe(id)
	return d.Default
}

// MaxFileSize is the largest file that is not a large one.
func (s Settings) MaxFileSize() int64 {
	if s.maxFileSize == 0 {
		return defaultMaxFileSize
	}
	return s.maxFileSize
}

// readSize reads a number of bytes with git's suffixes; 0 if there is none.
func readSize(c gitops.Config, key string) (int64, error) {
	text := c.String(key, "")
	if text == "" {
		return 0, nil
	}
	size, ok := parseSize(text)
	if !ok {
		return 0, &SettingError{key, text, "a size such as 50m or 100000"}
	}
	return size, nil
}

// parseSize reads a positive number of bytes with an optional suffix k, m or g (powers of 1024, git-config(1)).
func parseSize(text string) (int64, bool) {
	number, shift := strings.ToLower(text), 0
	for suffix, bits := range map[string]int{"k": 10, "m": 20, "g": 30} {
		if n, ok := strings.CutSuffix(number, suffix); ok {
			number, shift = n, bits
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, false
	}
	return n << shift, true
}
