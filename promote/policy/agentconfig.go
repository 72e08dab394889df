package policy

import (
	"context"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// agentConfig looks for what another agent, run by the user outside, would execute or obey: its servers, hooks and
// plugins hold, texts of instructions are flagged.
type agentConfig struct{ changesOnly }

func (agentConfig) describe() Description {
	return documented("agent-config", Hold, "settings of coding agents that start programs (MCP servers, hooks, plugins); their instructions are flagged")
}

var executedByAgents = newPathTable(
	group{"coding agents start the servers that it names", fields(`.mcp.json mcp.json mcp_config.json .vscode/mcp.json`)},
	group{"a coding agent obeys it", fields(`
		.claude/settings.json .claude/settings.local.json .claude/hooks/ .claude/plugins/ .claude-plugin/
		.codex/config.toml .codex/hooks.json .codex/hooks/ .codex/rules/
		.gemini/settings.json .gemini/hooks/ .gemini/extensions/ .qwen/settings.json
		.cursor/hooks.json .cursor/hooks/ .cursor/environment.json .cursor/cli.json .cursor/permissions.json
		.windsurf/hooks.json .kiro/hooks/ .kiro/settings/ .amazonq/cli-agents/ .github/hooks/
		.opencode/plugin/ .opencode/plugins/ .opencode/tool/ .opencode/tools/ opencode.json opencode.jsonc
		.aider.conf.yml .crush.json crush.json .factory/settings.json .factory/hooks/ .continue/mcpservers/
		.zed/settings.json .zed/tasks.json .goosehints.d/ .augment/settings.json .vibe/config.toml`)},
)

var readByAgents = newPathTable(
	group{"coding agents take it for instructions", fields(`
		agents.md agent.md claude.md claude.local.md gemini.md qwen.md .cursorrules .windsurfrules .clinerules .goosehints
		.clinerules/ .cursor/ .windsurf/ .claude/ .codex/ .gemini/ .opencode/ .roo/ .roomodes .kiro/ .amazonq/ .junie/
		.continue/ .factory/ .agents/ .github/copilot-instructions.md .github/instructions/ .github/prompts/
		.github/agents/ .github/chatmodes/`)},
)

// fields splits a list written over several lines.
func fields(text string) []string { return strings.Fields(text) }

func (agentConfig) change(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	if why := executedByAgents.find(c.Path, c.New.Mode == gitops.ModeLink); why != "" {
		r.at(c.Path, "%s", why)
	} else if why := readByAgents.find(c.Path, c.New.Mode == gitops.ModeLink); why != "" {
		r.mention(c.Path, "%s", why)
	}
	return nil
}
