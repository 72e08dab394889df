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
	// maxFileSizeKey is the setting of the size from which a file is large.
	maxFileSizeKey = "airlock.maxFileSize"
	// defaultMaxFileSize is the size from which common hosting services warn.
	defaultMaxFileSize = 50 << 20
)

// Settings are the settings of the rules. The zero Settings are the defaults.
type Settings struct {
	actions     map[string]Action // of the rules that are not at their default
	sources     map[string]Source // the sources of actions
	maxFileSize int64
	sizeFrom    Source // fromTeam if a team's policy bounds the size
	protected   []protection
	denials     []string
	programs    []string
	work        int64     // for one commit; 0 is the default
	seconds     int64     // for one commit; 0 is the default
	check       treeCheck // of policies
}

// Source is the source of a rule's setting. The zero Source is the default.
type Source string

// The sources other than the default.
const (
	fromConfig Source = "config" // the user's git configuration
	fromTeam   Source = "team"   // a policy that is stricter
)

// DeniedPrograms returns the rules of policies for programs that must not start. This package does not check them.
func (s Settings) DeniedPrograms() []string { return s.programs }

// Check returns the command with which a policy wants trees to be checked, empty if there is none, and whether every commit must wait for it.
// This package does not run it.
func (s Settings) Check() (command string, hold bool) { return s.check.command, s.check.hold }

// Denials returns the rules with which policies deny connections of the prison. This package does not check them.
func (s Settings) Denials() []string { return s.denials }

// Source returns the source of a rule's setting.
func (s Settings) Source(id string) Source { return s.sources[id] }

// ReadSettings reads airlock.policy.<rule> and airlock.maxFileSize. An unknown rule is an error, because a misspelled
// "hold" must not be ignored.
func ReadSettings(c gitops.Config) (Settings, error) {
	s := Settings{actions: map[string]Action{}, sources: map[string]Source{}}
	for _, key := range c.Keys() {
		id, ours := strings.CutPrefix(key, keyPrefix)
		if !ours {
			continue
		}
		action, err := parseAction(c[key])
		switch d, known := described()[id]; {
		case !known:
			return Settings{}, &gitops.SettingError{Key: key, Value: c[key], Want: "a setting of a rule: the rules are " + strings.Join(ruleIDs(), ", ")}
		case d.Key == "":
			return Settings{}, &gitops.SettingError{Key: key, Value: c[key], Want: "possible: that rule always holds"}
		case err != nil:
			return Settings{}, &gitops.SettingError{Key: key, Value: c[key], Want: "hold, flag or off"}
		}
		s.actions[id], s.sources[id] = action, fromConfig
	}
	var err error
	if s.maxFileSize, err = ReadSize(c, maxFileSizeKey, 0); err != nil {
		return s, err
	}
	if s.work, err = ReadSize(c, workKey, 0); err != nil {
		return s, err
	}
	if text := c.String(timeKey, ""); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxSeconds {
			return s, &gitops.SettingError{Key: timeKey, Value: text, Want: fmt.Sprintf("a number of seconds from 1 to %d", maxSeconds)}
		}
		s.seconds = int64(n)
	}
	return s, nil
}

// Action returns the action of a rule.
func (s Settings) Action(id string) Action {
	if a, set := s.actions[id]; set {
		return a
	}
	return described()[id].Default
}

// MaxFileSize returns the size in bytes above which a file is large.
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
		return 0, &gitops.SettingError{Key: key, Value: text, Want: "a size such as 4g, 512m or 100000"}
	}
	return size, nil
}

// ReadSizes reads the numbers of all keys that begin with a prefix, by the rest of the key. An unknown key is an error, because a misspelled
// limit must not be ignored.
func ReadSizes(c gitops.Config, prefix string, sizes map[string]*int64) (err error) {
	for _, key := range c.Keys() { // of two errors, always the same one is reported
		name, ours := strings.CutPrefix(key, prefix)
		size := sizes[name]
		switch {
		case !ours:
			continue
		case size == nil:
			return &gitops.SettingError{Key: key, Value: c[key], Want: "a setting of a limit: the limits are " + strings.Join(slices.Sorted(maps.Keys(sizes)), ", ")}
		}
		if *size, err = ReadSize(c, key, *size); err != nil {
			return err
		}
	}
	return nil
}

// SizeText formats a number of bytes as settings write it.
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

// Action is the consequence of a finding for its commit. The zero Action is the strictest.
type Action int

// The actions, strictest first.
const (
	Hold Action = iota // the commit waits, and so do the commits that build on it
	Flag               // the commit lands, and its note names the rule
	Off                // the rule is switched off
)

var actionNames = map[Action]string{Hold: "hold", Flag: "flag", Off: "off"}

func (a Action) String() string { return actionNames[a] }

// parseAction reads "hold", "flag" or "off".
func parseAction(text string) (Action, error) {
	for a, name := range actionNames {
		if text == name {
			return a, nil
		}
	}
	return Hold, fmt.Errorf("%q is not hold, flag or off", gitops.Text(text))
}

// MarshalText writes the action as [parseAction] reads it.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the action as [parseAction] does.
func (a *Action) UnmarshalText(text []byte) (err error) {
	*a, err = parseAction(string(text))
	return err
}
