package promote

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
)

// Settings are what the user's configuration says about promotion, as it is now.
type Settings struct {
	AutoLand bool // land without being asked; else commits wait as pending
	Sign     bool // sign landed commits with the user's key
	// MaxWorkspace is how many bytes a workspace may have.
	MaxWorkspace int64
	Engine       string // TreeEngine or PatchEngine
	User         identity.User
	Limits       gitops.Limits
}

// SettingError says that a setting cannot be read.
type SettingError struct{ Key, Value, Want string }

func (e *SettingError) Error() string {
	return fmt.Sprintf("setting %s: %q is not %s", e.Key, gitops.Escape(e.Value), e.Want)
}

// The engines by which a change comes into an outer commit's tree.
const (
	TreeEngine  = "tree"  // the agent's tree, or the three-way merge with the user's
	PatchEngine = "patch" // the same, if git format-patch and git am come to it, too
)

// IsEngine tells whether there is an engine of that name.
func IsEngine(name string) bool { return name == TreeEngine || name == PatchEngine }

// readEngine reads airlock.engine.
func readEngine(c gitops.Config) (string, error) {
	engine := c.String("airlock.engine", TreeEngine)
	if !IsEngine(engine) {
		return "", &SettingError{"airlock.engine", engine, TreeEngine + " or " + PatchEngine}
	}
	return engine, nil
}

// ReadSettings reads the settings of a repository; overrides go before the configuration.
func ReadSettings(config gitops.Config, overrides map[string]string) (Settings, error) {
	c := maps.Clone(config)
	maps.Copy(c, overrides)
	s := Settings{Limits: gitops.DefaultLimits}
	var err error
	for key, value := range map[string]struct {
		into      *bool
		otherwise bool
	}{"airlock.autoLand": {&s.AutoLand, true}, "airlock.sign": {&s.Sign, false}} {
		if *value.into, err = c.Bool(key, value.otherwise); err != nil {
			return s, &SettingError{key, c.String(key, ""), "a boolean"}
		}
	}
	if s.Engine, err = readEngine(c); err != nil {
		return s, err
	}
	if s.Limits.Blob, err = ReadSize(c, "airlock.maxFileSize", s.Limits.Blob); err != nil {
		return s, err
	}
	if s.MaxWorkspace, err = ReadSize(c, "airlock.maxWorkspace", 20<<30); err != nil {
		return s, err
	}
	s.User, err = identity.ResolveUser(c)
	return s, err
}

// ReadSize reads a number of bytes with git's suffixes k, m and g (powers of 1024, git-config(1)).
func ReadSize(c gitops.Config, key string, otherwise int64) (int64, error) {
	text := c.String(key, "")
	if text == "" {
		return otherwise, nil
	}
	size, err := ParseSize(text)
	if err != nil {
		return 0, &SettingError{key, text, "a size such as 4g, 512m or 100000"}
	}
	return size, nil
}

// ParseSize reads a positive number of bytes with an optional suffix k, m or g (powers of 1024).
func ParseSize(text string) (int64, error) {
	number, shift := strings.ToLower(text), 0
	for suffix, bits := range map[string]int{"k": 10, "m": 20, "g": 30} {
		if n, ok := strings.CutSuffix(number, suffix); ok {
			number, shift = n, bits
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("%q is not a size", gitops.Escape(text))
	}
	return n << shift, nil
}
