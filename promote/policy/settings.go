package policy

import (
	"fmt"
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
	sources     map[string]Source // of those
	maxFileSize int64
	sizeFrom    Source // FromTeam where a team's policy bounds the size
	protected   []protection
	work        int64 // for one commit; 0 is the default
	seconds     int64 // for one commit; 0 is the default
}

// Source is where a rule's setting is from. The zero Source is the default.
type Source string

// The sources beside the default.
const (
	FromConfig Source = "config" // the user's git configuration
	FromTeam   Source = "team"   // a policy that is stricter
)

// Source tells where the setting of a rule is from.
func (s Settings) Source(id string) Source { return s.sources[id] }

// SettingError says that a setting cannot be read.
type SettingError struct{ Key, Value, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s: %q is not %s", gitops.Escape(e.Key), gitops.Escape(e.Value), e.Want)
}

// ReadSettings reads airlock.policy.<rule> and airlock.maxFileSize. A rule that does not exist is an error: the
// wish for a "hold" that is misspelled must not be lost.
func ReadSettings(c gitops.Config) (Settings, error) {
	s := Settings{actions: map[string]Action{}, sources: map[string]Source{}}
	for _, key := range c.Keys() {
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
		s.actions[id], s.sources[id] = action, FromConfig
	}
	for key, into := range map[string]*int64{maxFileSizeKey: &s.maxFileSize, workKey: &s.work, timeKey: &s.seconds} {
		var err error
		if *into, err = ReadSize(c, key, 0); err != nil {
			return s, err
		}
	}
	return s, nil
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

// ReadSize reads a number of bytes with git's suffixes k, m and g (powers of 1024, git-config(1)).
func ReadSize(c gitops.Config, key string, otherwise int64) (int64, error) {
	text := c.String(key, "")
	if text == "" {
		return otherwise, nil
	}
	size, ok := parseSize(text)
	if !ok {
		return 0, &SettingError{key, text, "a size such as 4g, 512m or 100000"}
	}
	return size, nil
}

// SizeText prints a number of bytes the way it is given.
func SizeText(n int64) string {
	for bits, suffix := 30, "gmk"; suffix != ""; bits, suffix = bits-10, suffix[1:] {
		if n>>bits<<bits == n {
			return fmt.Sprintf("%d%c", n>>bits, suffix[0])
		}
	}
	return strconv.FormatInt(n, 10)
}

// parseSize reads a positive number of bytes with an optional suffix.
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
