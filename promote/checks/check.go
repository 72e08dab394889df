// Package checks has the settings of airlock.check and the results of such checks. A check is a command of the user. Its exit
// status is 0 if a tree is good. The results are notes on trees, so that a tree is checked once, whatever commit has it.
package checks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	GateKey = "airlock.check.gate" // "hold" or "off"
	TimeKey = "airlock.check.time" // in seconds
)

// defaultTime bounds a check, in seconds. The tests of most projects take less.
const defaultTime = 30 * 60

// maxTime bounds the setting, in seconds.
const maxTime = 7 * 24 * 3600

// Check is a check of trees.
type Check struct {
	Command string // for a shell; empty if there is no check
	// Hold reports that every commit waits until a check has passed. Otherwise only sets of commits wait from which some are left out.
	Hold bool
	Time time.Duration // the longest time of a check
}

// Wanted is a commit whose tree is to be checked.
type Wanted struct {
	Check
	Commit gitops.OID
}

// Of returns the check of a configuration and of the rules of the policies. A policy's command goes before the user's, because a
// policy can only be made stricter.
func Of(config gitops.Config, rules policy.Settings) (c Check, err error) {
	command, hold := rules.Check()
	c = Check{Command: command, Hold: hold}
	if c.Command == "" {
		c.Command = strings.TrimSpace(config.String(Key, ""))
	}
	switch gate := config.String(GateKey, "off"); gate {
	case "off":
	case "hold":
		c.Hold = true
	default:
		return c, &gitops.SettingError{Key: GateKey, Value: gate, Want: "hold or off"}
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

// Digest returns the SHA-256 of a command, which identifies it in the notes. The command itself may name what is nobody's business.
func Digest(command string) string {
	sum := sha256.Sum256([]byte(command))
	return hex.EncodeToString(sum[:])
}
