package environment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/hostenv"
	"github.com/git-airlock/git-airlock/prison"
	"github.com/git-airlock/git-airlock/words"
)

// Variable is an environment variable for a prison. Nothing writes its value to a file, because the value can be a secret.
type Variable struct {
	Name  string
	From  string // the source of the value: [FromOption] or [FromSetting], or what [HostVariable] returns
	Value string
}

const (
	// FromOption is a value that was typed as --env NAME=VALUE.
	FromOption = "option"
	// FromSetting is a value in the user's configuration.
	FromSetting = "setting"
)

// ListedVariables parses the entries of an option or setting. An entry NAME=VALUE gives a value, and an entry NAME takes the
// value of the user's variable. The last entry of a name counts, and an empty entry drops all entries before it. unset are the
// names that have no value in the user's environment or .env file. listedBy names the option or setting in errors, and from
// becomes [Variable.From] of the entries NAME=VALUE. Values appear in no error.
func ListedVariables(listedBy, from string, listed []string, dotenv map[string]string) (all []Variable, unset []string, err error) {
	for i, entry := range listed {
		if entry == "" {
			all, unset = nil, nil
			continue
		}
		name, value, valued := strings.Cut(entry, "=")
		if !prison.IsVariableName(name) {
			return nil, nil, fmt.Errorf("%s: number %d does not begin with the name of a variable: letters, digits and _", listedBy, i+1)
		}
		all = slices.DeleteFunc(all, func(v Variable) bool { return v.Name == name })
		unset = slices.DeleteFunc(unset, func(other string) bool { return other == name })
		v := Variable{name, from, value}
		if !valued {
			var set bool
			if v.Value, v.From, set = HostVariable(name, dotenv); !set {
				unset = append(unset, name)
				continue
			}
		}
		all = append(all, v)
	}
	return all, unset, nil
}

// HostVariable returns the value of a user's variable and its origin, which is "environment" or the name of the .env file.
func HostVariable(name string, file map[string]string) (value, from string, set bool) {
	if value, set := hostenv.Original(name); set {
		return value, "environment", true
	}
	value, set = file[name]
	return value, DotenvName, set
}

// Variables returns the environment of a setup, as NAME=VALUE: the variables that it sets, and those that it passes from the user's
// environment or .env file.
func (b Builder) Variables(s Setup, dotenv map[string]string) (env []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Env.Set)) {
		env = append(env, name+"="+s.Env.Set[name])
	}
	for _, name := range s.Env.Pass {
		if value, _, set := HostVariable(name, dotenv); set {
			env = append(env, name+"="+value)
		} else {
			b.Report.Say("%s: %s is not set here and not passed", s.File, name)
		}
	}
	return env
}

// WarnUnused lists the parts of a setup that a backend without images does not use.
func (b Builder) WarnUnused(s Setup) {
	for _, from := range []string{s.OS.Base, s.OS.Dockerfile} {
		if from != "" {
			b.Report.Say("%s: %s is not used: a native prison has this machine's system", s.File, gitops.Text(from))
		}
	}
}

// LostValues returns the refusal to start a prison without some of its variables. others are those that could be read again.
func LostValues(lost []Variable, others []Variable) error {
	origins := map[string]string{
		FromOption: "typed with --env", FromSetting: "from a setting", DotenvName: "from " + DotenvName,
	}
	without, again, named, export := "", "", "", ""
	for _, v := range others {
		without += " --env " + v.Name
		if v.From == FromSetting { // the option replaces all values of the setting
			without += "=VALUE"
		}
	}
	for _, v := range lost {
		again += " --env " + v.Name + "=VALUE"
		export += " " + v.Name + "=VALUE"
		named += fmt.Sprintf(", %s (%s)", v.Name, cmp.Or(origins[v.From], "from your environment"))
	}
	return &Refusal{
		Text: "no airlock keeps the values of variables, and these are set neither here nor in " + DotenvName + ":" + named[1:],
		Next: []string{"export" + export + " && git airlock start", "git airlock start" + without + again,
			"git airlock start" + cmp.Or(without, " --env "+words.ShellQuote("")) + "  # without" + strings.ReplaceAll(export, "=VALUE", "")},
	}
}

// NamesIn returns the names of variables NAME=VALUE.
func NamesIn(env []string) (names []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}
