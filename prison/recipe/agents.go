package recipe

import (
	"maps"
	"slices"
	"strconv"
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

// leastNode are the major versions of Node that agents need at least, from one of their versions on. Other agents run with the Node of the
// default base.
var leastNode = []struct {
	agent, from string
	major       int
}{{"gemini", "0", 20}, {"qwen", "0", 20}, {"qwen", "0.16", 22}}

// baseNode is the major version of Node in the default base.
const baseNode = 18

// LeastNode returns the agent that needs the newest Node, and its least major version. The name is empty if each Node will do.
func (r Recipe) LeastNode() (name string, major int) {
	for _, a := range r.Agents {
		for _, l := range leastNode {
			if l.agent == a.Name && l.major > major && slices.Compare(numbers(a.Version), numbers(l.from)) >= 0 {
				name, major = a.Name, l.major
			}
		}
	}
	return name, major
}

// numbers returns the numbers with which a version begins.
func numbers(version string) (all []int) {
	for field := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n, err := strconv.Atoi(field)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

// SufficientNode is a version of Node with which all agents run.
const SufficientNode = "22.12.0"

// LacksNode reports whether an agent of the recipe needs a newer Node than the recipe provides: the named version, or that of the default
// base. What another base or a Dockerfile provides is not known.
func (r Recipe) LacksNode() bool {
	_, major := r.LeastNode()
	if node := r.node(); node != System {
		has := numbers(node)
		return len(has) > 0 && has[0] < major
	}
	return baseNode < major && r.OS.Dockerfile == "" && (r.OS.Base == "" || r.OS.Base == defaultBase)
}

// node returns the version of Node that the recipe names, or [System].
func (r Recipe) node() string {
	for _, l := range r.Languages {
		if l.Name == "node" {
			return l.Version
		}
	}
	return System
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
	if name, major := r.LeastNode(); major > 0 { // npm installs the agent for an older Node, and the agent then ends without a message
		w.line(`RUN node -e 'process.exit(+(parseInt(process.versions.node) < %d))' || { \`, major)
		w.line(`    echo '%s needs Node %d or later: set version = "%s" in [languages.node] of %s' >&2; exit 1; }`, name, major, SufficientNode, FileName)
	}
	w.line("RUN npm install --global --prefix /usr/local --no-audit --no-fund %s; rm -rf /root/.npm; \\", strings.Join(packages, " "))
	w.line("    mkdir /tmp/home; %s; rm -rf /tmp/home", strings.Join(checks, "; "))
}
