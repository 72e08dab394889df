package session

import (
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Request is what somebody wants an airlock to be. It says nothing of the situation: what the two come to is resolved by
// [Session.Start].
type Request struct {
	Backend      string // the name of one, or "auto"
	BackendGiven bool   // for this call, not by a setting

	Image, Runtime string
	ImageGiven     bool // one of the two, for this call

	Isolation airlock.Isolation // network and limits
	Tools     []airlock.Tool
	Rootfs    string

	Env      []string          // for this call, as NAME=VALUE
	EnvKey   string            // the setting that UsualEnv is from
	UsualEnv []string          // by a setting, as NAME or NAME=VALUE; a prison that runs already is not asked for them
	Dotenv   map[string]string // the user's .env file

	Inside       bool              // the workspace is a folder of the work tree
	Recipe       bool              // obey the repository's own description of its environment
	AllowSecrets bool              // take them in
	Selftest     bool              // refuse a prison that does not keep its promises
	Overrides    map[string]string // settings of promotion for as long as the airlock lives
	Command      []string          // to launch; nil for none

	Given []string // the options of this call, to be named
	Typed []string // the same with their values, to be typed again
}

// environment returns the variables of a prison beside those of its recipe, which had others before. Env replaces all previous
// values; UsualEnv replaces only the names it lists, and keeps the previous value of a name that is unset now.
func (q Request) environment(before []string) ([]string, error) {
	if len(q.Env) > 0 {
		return q.Env, nil
	}
	known := map[string]string{}
	for _, v := range before {
		name, value, _ := strings.Cut(v, "=")
		known[name] = value
	}
	maps.Copy(known, q.Dotenv)
	env, err := CompleteEnv(q.EnvKey, q.UsualEnv, known)
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		delete(known, name)
	}
	kept := slices.DeleteFunc(slices.Clone(before), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, kept := known[name]
		return !kept
	})
	return append(kept, env...), err
}

// CompleteEnv completes NAME to NAME=VALUE from the caller's environment or their .env file. source says where the names are
// listed.
func CompleteEnv(source string, listed []string, dotenv map[string]string) ([]string, error) {
	var env []string
	for _, v := range listed {
		name, _, valued := strings.Cut(v, "=")
		if !environment.VariableName.MatchString(name) {
			return nil, requestErrorf("%s: %q is not the name of a variable", source, escape(name))
		}
		if !valued {
			value, set := environment.HostVariable(name, dotenv)
			if !set {
				return nil, requestErrorf("%s: %s is set neither here nor in %s", source, name, environment.DotenvName)
			}
			v = name + "=" + value
		}
		env = append(env, v)
	}
	return env, nil
}
