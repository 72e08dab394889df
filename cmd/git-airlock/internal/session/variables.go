package session

import (
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// EnvKey is the setting of the option --env. It can have several values.
const EnvKey = "airlock.env"

// OptionVariables reads what the option --env lists.
func OptionVariables(listed []string, dotenv map[string]string) ([]environment.Variable, error) {
	all, unset, err := environment.ListedVariables("--env", environment.FromOption, listed, dotenv)
	if err != nil {
		return nil, &RequestError{err.Error()}
	}
	if len(unset) > 0 {
		return nil, notSet("--env", unset[0])
	}
	return all, nil
}

func notSet(listedBy, name string) error {
	return requestErrorf("%s: %s is set neither here nor in %s", listedBy, name, environment.DotenvName)
}

// readVariables reads the values of the user's variables. --env replaces all variables of earlier starts. Without it their values
// are read again, and an [environment.Refusal] names those that are not set any more.
func (c *resolved) readVariables() error {
	before := c.airlock.Variables
	if c.EnvGiven {
		c.setVariables(c.Env)
		return nil
	}
	all, unset, err := environment.ListedVariables(EnvKey, environment.FromSetting, c.UsualEnv, c.Dotenv)
	if err != nil {
		return &RequestError{err.Error()}
	}
	for _, name := range unset {
		if !slices.ContainsFunc(before, func(v airlock.Variable) bool { return v.Name == name }) {
			return notSet(EnvKey, name)
		}
	}
	var lost []environment.Variable
	var typed []string
	for _, old := range before {
		if slices.ContainsFunc(all, func(v environment.Variable) bool { return v.Name == old.Name }) {
			continue
		}
		value, from, set := environment.HostVariable(old.Name, c.Dotenv)
		if !set {
			lost = append(lost, environment.Variable{Name: old.Name, From: old.From})
			continue
		}
		if old.From == environment.FromOption || old.From == environment.FromSetting {
			typed = append(typed, old.Name)
		}
		all = append(all, environment.Variable{Name: old.Name, From: from, Value: value})
	}
	if len(lost) > 0 {
		return environment.LostValues(lost, all)
	}
	if len(typed) > 0 {
		c.session.Report.Say("the values that were typed for an earlier start are not kept; taken from your environment: %s", strings.Join(typed, ", "))
	}
	c.setVariables(all)
	return nil
}

func (c *resolved) setVariables(all []environment.Variable) {
	c.variables, c.airlock.Variables = all, nil
	for _, v := range all {
		c.airlock.Variables = append(c.airlock.Variables, airlock.Variable{Name: v.Name, From: v.From})
	}
}

// environ returns the environment of a new prison. Of two values for a name the later one counts.
func (c resolved) environ() []string {
	env := slices.Clone(c.setupEnv)
	for _, v := range c.variables {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}
