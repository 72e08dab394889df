package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// OptionVariables reads what the option --env lists.
func OptionVariables(listed []string, dotenv map[string]string) ([]environment.Variable, error) {
	all, unset, err := environment.ListedVariables("--env", airlock.FromOption, listed, dotenv)
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
	all, unset, err := environment.ListedVariables(c.EnvKey, airlock.FromSetting, c.UsualEnv, c.Dotenv)
	if err != nil {
		return &RequestError{err.Error()}
	}
	for _, name := range unset {
		if !slices.ContainsFunc(before, func(v airlock.Variable) bool { return v.Name == name }) {
			return notSet(c.EnvKey, name)
		}
	}
	var lost []airlock.Variable
	var typed []string
	for _, old := range before {
		if slices.ContainsFunc(all, func(v environment.Variable) bool { return v.Name == old.Name }) {
			continue
		}
		value, from, set := environment.HostVariable(old.Name, c.Dotenv)
		if !set {
			lost = append(lost, old)
			continue
		}
		if old.From == airlock.FromOption || old.From == airlock.FromSetting {
			typed = append(typed, old.Name)
		}
		all = append(all, environment.Variable{Name: old.Name, From: from, Value: value})
	}
	if len(lost) > 0 {
		return lostValues(lost, all)
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

// lostValues returns the refusal to start a prison without some of its variables. others are those that could be read again.
func lostValues(lost []airlock.Variable, others []environment.Variable) error {
	origins := map[string]string{
		airlock.FromOption: "typed with --env", airlock.FromSetting: "from a setting", environment.DotenvName: "from " + environment.DotenvName,
	}
	without, again, named, export := "", "", "", ""
	for _, v := range others {
		without += " --env " + v.Name
		if v.From == airlock.FromSetting { // the option replaces all values of the setting
			without += "=VALUE"
		}
	}
	for _, v := range lost {
		again += " --env " + v.Name + "=VALUE"
		export += " " + v.Name + "=VALUE"
		origin := origins[v.From]
		if origin == "" {
			origin = "from your environment"
		}
		named += fmt.Sprintf(", %s (%s)", v.Name, origin)
	}
	hints := []string{"export" + export + " && git airlock start", "git airlock start" + without + again}
	if without == "" {
		without = " --env " + gitops.ShellQuote("")
	}
	return &environment.Refusal{
		Text: "no airlock keeps the values of variables, and these are set neither here nor in " + environment.DotenvName + ":" + named[1:],
		Next: append(hints, "git airlock start"+without+"  # without"+strings.ReplaceAll(export, "=VALUE", "")),
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

// namesIn returns the names of variables NAME=VALUE.
func namesIn(env []string) (names []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}
