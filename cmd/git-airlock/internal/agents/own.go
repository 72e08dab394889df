package agents

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/prison"
)

// agentKey begins the settings of an agent: airlock.agent.NAME.command and so on.
const agentKey = "airlock.agent."

// DefaultKey is the setting with the agent of "git airlock run -p TASK".
const DefaultKey = agentKey + "default"

// ownName is the name of an agent that the configuration describes.
var ownName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) })

// CanBeOwn reports whether a name is the name of a program in the folders of a PATH that settings can describe as an agent.
func CanBeOwn(name, path string) bool {
	if !ownName().MatchString(name) {
		return false
	}
	_, err := program(name, path)
	return err == nil
}

// WithOwn returns the profiles with those that the user's configuration adds or changes.
//
// airlock.agent.NAME.command is the program with its arguments, and airlock.agent.NAME.task the same for a task, which follows as
// the last argument. If the last word is "--", the user's arguments are before it. If it ends with "=", the task is a part of it. Both are
// words: spaces separate them, no shell sees them. airlock.agent.NAME.allow (a rule of the network) and
// airlock.agent.NAME.env (NAME=VALUE) can have several values.
func WithOwn(all []Profile, settings []gitops.Setting) ([]Profile, error) {
	all = slices.Clone(all)
	// The command comes first, in whatever order the configuration has them, since it names the program.
	settings = slices.Clone(settings)
	slices.SortStableFunc(settings, func(a, b gitops.Setting) int { return cmp.Compare(isTask(a), isTask(b)) })
	for _, s := range settings {
		rest, ok := strings.CutPrefix(s.Key, agentKey)
		name, field, dotted := strings.Cut(rest, ".")
		if !ok || !dotted {
			continue
		}
		if !ownName().MatchString(name) {
			return nil, fmt.Errorf("%s: the name of an agent has small letters, digits and hyphens", s.Key)
		}
		i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
		if i < 0 {
			i, all = len(all), append(all, Profile{Name: name, Own: true})
		}
		if err := all[i].set(field, s.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Key, err)
		}
	}
	for _, p := range all {
		if p.Program == "" {
			return nil, fmt.Errorf("%s%s.command is missing: it is the agent's program with its arguments", agentKey, p.Name)
		}
	}
	return all, nil
}

// isTask returns 1 for the setting with the program for a task, and 0 for others.
func isTask(s gitops.Setting) int {
	if strings.HasPrefix(s.Key, agentKey) && strings.HasSuffix(s.Key, ".task") {
		return 1
	}
	return 0
}

func (p *Profile) set(field, value string) error {
	words := strings.Fields(value)
	switch field {
	case "command", "task":
		if len(words) == 0 {
			return errors.New("want the agent's program and its arguments")
		}
		if p.Program == "" || field == "command" {
			p.Program = words[0]
		}
		if words[0] != p.Program {
			return fmt.Errorf("%q and %q are two programs; an agent has one", p.Program, words[0])
		}
		if field == "command" {
			p.Interactive = words[1:]
			break
		}
		p.Headless = words[1:]
		if last := len(words) - 1; last > 0 && endsOptions(words[last]) { // the user's own arguments must be before it
			p.Headless, p.Ask = words[1:last], words[last:]
		}
	case "allow":
		p.Allow = append(slices.Clone(p.Allow), value)
	case "env":
		if name, _, ok := strings.Cut(value, "="); !ok || !prison.IsVariableName(name) {
			return errors.New("want NAME=VALUE")
		}
		p.Env = append(slices.Clone(p.Env), value)
	default:
		return errors.New("unknown; the settings of an agent are command, task, allow and env")
	}
	return nil
}
