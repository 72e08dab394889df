package promote

import (
	"errors"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/inner"
	"github.com/git-airlock/git-airlock/gitops/land"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/review"
)

// Settings are the promotion settings in the user's current configuration.
type Settings struct {
	Review review.Mode
	Sign   bool   // sign landed commits with the user's key
	Engine string // TreeEngine or PatchEngine
	User   identity.User
	Limits inner.Limits
	Policy policy.Settings
}

// The engines that make an outer commit's tree.
const (
	TreeEngine  = "tree"  // the agent's tree, or the three-way merge with the user's tree
	PatchEngine = "patch" // the same, if git format-patch and git am come to the same tree
)

// IsEngine reports whether there is an engine of that name.
func IsEngine(name string) bool { return name == TreeEngine || name == PatchEngine }

// readEngine reads airlock.engine.
func readEngine(c gitops.Config) (string, error) {
	engine := c.String("airlock.engine", TreeEngine)
	if !IsEngine(engine) {
		return "", &gitops.SettingError{Key: "airlock.engine", Value: engine, Want: TreeEngine + " or " + PatchEngine}
	}
	return engine, nil
}

// ReadSettings reads the settings from a configuration.
func ReadSettings(c gitops.Config) (Settings, error) {
	s := Settings{Limits: inner.DefaultLimits}
	var err error
	if s.Review, err = ReadReview(c); err != nil {
		return s, err
	}
	if s.Sign, err = c.Bool("airlock.sign", false); err != nil {
		return s, err
	}
	if s.Engine, err = readEngine(c); err != nil {
		return s, err
	}
	if s.Policy, err = policy.ReadSettings(c); err != nil {
		return s, err
	}
	if err := readLimits(c, &s.Limits); err != nil {
		return s, err
	}
	if _, err = readMaxWorkspace(c); err == nil {
		err = land.CheckSettings(c)
	}
	if err != nil {
		return s, err
	}
	s.User, err = identity.ResolveUser(c)
	return s, err
}

// ReadReview reads airlock.review. airlock.autoLand=false means the same as its value "land", and is the stricter one if
// both are set.
func ReadReview(c gitops.Config) (review.Mode, error) {
	auto, err := c.Bool("airlock.autoLand", true)
	if err != nil {
		return "", err
	}
	mode, err := review.ParseMode(c.String("airlock.review", string(review.Off)))
	if err != nil {
		return "", &gitops.SettingError{Key: "airlock.review", Value: c.String("airlock.review", ""), Want: "off, land or push"}
	}
	if !auto {
		mode = review.Land
	}
	return mode, nil
}

// readMaxWorkspace reads the maximum size of a workspace in bytes.
func readMaxWorkspace(c gitops.Config) (int64, error) {
	return policy.ReadSize(c, "airlock.maxWorkspace", 20<<30)
}

// readLimits reads airlock.limit.*: numbers of bytes, seconds or things.
func readLimits(c gitops.Config, l *inner.Limits) error {
	seconds := int64(l.Time / time.Second)
	limits := map[string]*int64{
		"pack": &l.Pack, "commit": &l.Commit, "blob": &l.Blob, "path": &l.Path, "component": &l.Component, "paths": &l.Paths, "depth": &l.Depth,
		"entries": &l.Entries, "memory": &l.Memory, "time": &seconds, "work": new(int64), "check": new(int64), // the gate reads the last two
	}
	err := policy.ReadSizes(c, "airlock.limit.", limits)
	if setting, ok := errors.AsType[*gitops.SettingError](err); ok && setting.Key == "airlock.limit.time" {
		setting.Want = "a number of seconds"
	}
	l.Time = time.Duration(seconds) * time.Second
	return err
}
