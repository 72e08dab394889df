// Package settings checks the settings of an airlock before the airlock starts. The packages that obey a setting read it again.
package settings

import (
	"regexp"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/checkpoints"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/runs"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote"
	"github.com/git-airlock/git-airlock/promote/checks"
	"github.com/git-airlock/git-airlock/promote/policy"
)

const recipeKey = "airlock.recipe"

// Check reports the first setting that cannot be read. An airlock keeps its settings, so it would otherwise fail at each landing, checkpoint
// or record until somebody stops it and starts it with other ones.
func Check(c gitops.Config) error {
	for _, read := range []func() error{
		func() error { _, err := promote.ReadSettings(c); return err },
		func() error { _, err := checks.Of(c, policy.Settings{}); return err },
		func() error { _, err := checkpoints.Mode(c); return err },
		func() error { _, err := checkpoints.Most(c); return err },
		func() error { _, err := runs.Most(c); return err },
		func() error { _, err := c.Bool(recipeKey, true); return err },
		func() error { return checkNames(c, "airlock.keepEnv") },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// variable is the name of an environment variable. A star at its end matches anything.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\*?|\*)$`) })

// checkNames checks a setting with names of environment variables.
func checkNames(c gitops.Config, key string) error {
	for _, name := range strings.Fields(c.String(key, "")) {
		if !variable().MatchString(name) {
			return &gitops.SettingError{Key: key, Value: c.String(key, ""), Want: "a list of names of variables, such as LFS_TOKEN AWS_*"}
		}
	}
	return nil
}

// ObeysRecipe reports whether an airlock obeys a recipe. Settings that a command gives win over those that the airlock keeps.
func ObeysRecipe(kept, given map[string]string) bool {
	obeys, err := gitops.Config{}.With(kept).With(given).Bool(recipeKey, true)
	return err != nil || obeys // [Check] reports the error
}
