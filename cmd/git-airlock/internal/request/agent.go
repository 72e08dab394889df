package request

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/agents"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/environment"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/session"
	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/ui"
	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/airlock"
)

// Profiles returns the known agents, with those that settings describe.
func Profiles(settings []gitops.Setting) ([]agents.Profile, error) {
	all, err := agents.WithOwn(agents.Known(), settings)
	if err != nil {
		return nil, environment.Advise(ui.Usagef("%s", err), "git airlock help agents")
	}
	return all, nil
}

// IsAgent reports whether a name is that of a known agent, or of one that settings describe.
func IsAgent(ctx context.Context, s *session.Session, name string) bool {
	settings, err := s.Repo.Settings(ctx)
	if err != nil {
		return false
	}
	all, err := Profiles(settings)
	if err != nil {
		return false
	}
	_, err = agents.Named(all, name)
	return err == nil
}

// Agent returns the agent of a name, with its program on this machine if there is one.
func Agent(c *cli.Context, s *session.Session, name string) (*session.Agent, error) {
	settings, err := s.Repo.Settings(c.Context)
	if err != nil {
		return nil, err
	}
	given, err := s.Repo.CommandConfig(c.Context)
	if err != nil {
		return nil, err
	}
	kept := s.Earlier().Settings
	maps.DeleteFunc(kept, func(key, _ string) bool { return given.Has(key) })
	all, err := Profiles(airlock.WithKept(settings, kept))
	if err != nil {
		return nil, err
	}
	p, err := agents.Named(all, name)
	if err != nil {
		hints := []string{"git airlock agents"}
		if agents.CanBeOwn(name, ui.Variable("PATH")) {
			hints = append(hints, "git config airlock.agent."+name+".command "+name+"  # makes it an agent: git airlock help agents")
		}
		return nil, environment.Advise(ui.Usagef("%s: %s; a command for the prison goes after \"--\"", c.Command.Name, err), hints...)
	}
	a := &session.Agent{Profile: p}
	a.Found, a.Missing = agents.Find(p, ui.Variable("PATH"))
	cache, _ := os.UserCacheDir() // without it nothing is unpacked there
	a.Found = a.Found.WithUnpacked(p, cache)
	return a, nil
}

// keysOf returns the variables of the user from which an agent would take a key. Those that the user passes inside are not among
// them.
func keysOf(a *session.Agent, r session.Request) []string {
	return slices.DeleteFunc(slices.Clone(a.Keys), func(key string) bool {
		value, _, _ := environment.HostVariable(key, nil)
		return value == "" || passes(r, key)
	})
}

// passes reports whether the user passes a variable inside.
func passes(r session.Request, name string) bool {
	return slices.ContainsFunc(r.Env, func(v environment.Variable) bool { return v.Name == name }) ||
		slices.ContainsFunc(r.UsualEnv, func(text string) bool { return text == name || strings.HasPrefix(text, name+"=") })
}

// DefaultAgent returns the name of the agent of the setting airlock.agent.default, or an empty string.
func DefaultAgent(s *session.Session) string { return s.Config.String(agents.DefaultKey, "") }
