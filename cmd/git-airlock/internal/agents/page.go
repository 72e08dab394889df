package agents

import (
	"fmt"
	"slices"
	"strings"
)

// Page returns the page of the manual on a known agent, in Markdown.
func (p Profile) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# the coding agent %s\n\n## Start\n\n", p.Name)
	fmt.Fprintf(&b, "    %s\n", p.Get)
	fmt.Fprintf(&b, "    export %s=...\n    git airlock start %s\n    git airlock visit --attach\n    git airlock run %[2]s -p 'Fix the failing test, and commit'\n\n", p.Keys[0], p.Name)
	b.WriteString("`start` and `visit --attach` are for its interface, and `run` is for one task. git-airlock-agents(1) explains both, and what all agents get.\n\n")
	b.WriteString("## What it gets\n\n| part | |\n|---|---|\n")
	row := func(part string, words ...string) {
		if len(words) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", part, strings.Join(words, " "))
		}
	}
	row("its interface", code(strings.Join(append([]string{p.Program}, p.Interactive...), " ")))
	row("a task", code(strings.Join(append([]string{p.Program}, p.AskFor("TASK")...), " ")))
	row("a key from", code(p.Keys...)+"; a key stays outside, see git-airlock-net(1)")
	if p.Login != "" {
		row("a login", "that of its program on this machine, if no key is set: see Logins in git-airlock-agents(1)")
	}
	row("the network", code(p.Allow...))
	if len(p.Unneeded) > 0 {
		row("not needed", code(p.Unneeded...)+": the agent asks for this by itself, no setting prevents that, and the agent works without it. The report of a run lists such a refusal outside of its verdict. `status` has the rule for a project that needs the host")
	}
	if len(p.Env) > 0 {
		row("variables", code(p.Env...))
	}
	if len(p.Files) > 0 {
		row("files in its home", code(p.paths()...)+"; a file that the agent has changed is left as it is, except for what depends on the key or the login")
	}
	if p.Memory > 0 {
		row("memory", fmt.Sprintf("at least %d MiB for an ordinary user without control groups (`--memory`)", p.Memory/mebi))
	}
	b.WriteString("\nWords after `--` are its own arguments. `airlock.agent." + p.Name + ".*` changes or adds to this.\n")
	if p.Untried {
		p.Notes = append(p.Notes, "This page was written from the documentation of "+p.Name+". Nobody has tried the agent in a prison.")
	}
	if len(p.Notes) > 0 {
		b.WriteString("\n## Notes\n\n- " + strings.Join(p.Notes, "\n- ") + "\n")
	}
	return b.String()
}

func (p Profile) paths() (all []string) {
	for _, f := range p.Files {
		if path := "~/" + f.Path; !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

func code(words ...string) string { return "`" + strings.Join(words, "`, `") + "`" }
