package recipe

import (
	"maps"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/words"
)

// Agent is a coding agent that an image contains.
type Agent struct {
	Name    string
	Version string // exact
}

// agentPackages are the npm packages of agents. The name of an agent is also the name of its program.
var agentPackages = map[string]string{
	"amp": "@sourcegraph/amp", "claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "copilot": "@github/copilot",
	"crush": "@charmland/crush", "gemini": "@google/gemini-cli", "opencode": "opencode-ai", "qwen": "@qwen-code/qwen-code",
}

// AgentPackage returns the npm package of an agent, or an empty string for an agent that is not known.
func AgentPackage(name string) string { return agentPackages[name] }

// Agents returns the names of the agents that a recipe can have.
func Agents() []string { return slices.Sorted(maps.Keys(agentPackages)) }

// agents reads [agents].
func (t table) agents() (all []Agent) {
	known := Agents()
	t.only(known...)
	for _, name := range known {
		version, ok := t.text(name)
		switch {
		case !ok:
		case !versionText().MatchString(version):
			t.errorf(name, `%s is not an exact version: give one such as "1.2.3"`, quote(version))
		default:
			all = append(all, Agent{name, version})
		}
	}
	return all
}

// hasNode reports whether a language of the recipe provides Node, and npm with it.
func (r Recipe) hasNode() bool {
	return slices.ContainsFunc(r.Languages, func(l Language) bool { return l.Name == "node" })
}

// agents writes the steps that install the agents. npm only warns if an agent wants another Node, so a check of the agent's version
// decides. The check has its own home, because some agents unpack themselves there.
func (r Recipe) agents(w *writer) {
	if len(r.Agents) == 0 {
		return
	}
	var packages, checks []string
	for _, a := range r.Agents {
		version := strings.TrimPrefix(a.Version, "v")
		packages = append(packages, agentPackages[a.Name]+"@"+version)
		checks = append(checks, "HOME=/tmp/home "+a.Name+" --version 2>&1 | grep -F "+words.ShellQuote(version))
	}
	w.line("RUN npm install --global --prefix /usr/local --no-audit --no-fund %s; rm -rf /root/.npm; \\", strings.Join(packages, " "))
	w.line("    mkdir /tmp/home; %s; rm -rf /tmp/home", strings.Join(checks, "; "))
}
