// Package checks reads the settings of airlock.check and stores the results of checks. A check is a command of the user that ends with
// exit status 0 if a tree is good. Results are about trees, so that a tree is checked only once, even if several commits have it.
package checks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy"
	"github.com/git-airlock/git-airlock/promote/teams"
)

// The settings.
const (
	Key     = "airlock.check"      // the command, for a shell
	gateKey = "airlock.check.gate" // "hold" or "off"
	TimeKey = "airlock.check.time" // in seconds
)

// defaultTime bounds a check, in seconds. The tests of most projects take less.
const defaultTime = 30 * 60

// maxTime bounds the setting, in seconds.
const maxTime = 7 * 24 * 3600

// Check is a check of trees.
type Check struct {
	Command string // for a shell; empty if there is no check
	// Hold reports that every commit waits until a check has passed. Otherwise a commit waits only if its tree may lack commits that were left
	// out, because the agent never had that tree.
	Hold bool
	Time time.Duration // the longest time of a check
}

// Wanted is a commit whose tree must be checked.
type Wanted struct {
	Check
	Commit gitops.OID
}

// Of returns the check that a configuration and the policies ask for. The command of a policy has priority over the user's command:
// otherwise the user could weaken the policy.
func Of(config gitops.Config, rules policy.Settings) (c Check, err error) {
	command, hold := rules.Check()
	c = Check{Command: cmp.Or(command, strings.TrimSpace(config.String(Key, ""))), Hold: hold}
	switch gate := config.String(gateKey, "off"); gate {
	case "off":
	case "hold":
		c.Hold = true
	default:
		return c, &gitops.SettingError{Key: gateKey, Value: gate, Want: "hold or off"}
	}
	text := config.String(TimeKey, strconv.Itoa(defaultTime))
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > maxTime {
		return c, &gitops.SettingError{Key: TimeKey, Value: text, Want: fmt.Sprintf("a number of seconds up to %d, a week", maxTime)}
	}
	c.Time = time.Duration(seconds) * time.Second
	return c, nil
}

// Read reads the check of a repository.
func Read(ctx context.Context, repo *gitops.Repository, config gitops.Config) (Check, error) {
	rules, err := teams.ReadPolicy(ctx, repo, config)
	if err != nil {
		return Check{}, err
	}
	return Of(config, rules)
}

// Digest returns the SHA-256 of a command, which identifies it in the notes. The command itself may contain private
// names, and notes are shared.
func Digest(command string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(command))) }
