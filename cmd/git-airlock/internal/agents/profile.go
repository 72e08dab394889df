package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison/recipe"
)

// Profile describes an agent.
type Profile struct {
	Name    string   // as in "git airlock start NAME"
	Program string   // the command, on the host's PATH and in images
	Allow   []string // rules of its network, as in airlock.allow
	// Unneeded are hosts that the agent asks for by itself. No setting prevents that, and the agent works without them.
	Unneeded []string
	Keys     []string // the variables from which it takes a key or a token; one is enough
	Login    string   // the credential of the login that its program keeps in a file, which package network knows; empty for none
	Env      []string // the variables it gets, as NAME=VALUE
	Files    []File   // in its home
	// Unpacked is what the program unpacks by itself.
	Unpacked Unpacked
	// Interactive are the arguments of its full-screen interface, and Headless those of a task. The user's own arguments follow, then
	// Ask and the task. The prison is the sandbox, so both turn off the agent's own questions and sandbox. Ask ends with "--", or with an
	// option and "=", so that a task which begins with a hyphen is not an option: see [Profile.AskFor].
	Interactive, Headless, Ask []string
	// Memory is what the agent needs in bytes where the limit counts address space instead of pages: an ordinary user without control
	// groups. 0 means that the default is enough.
	Memory int64
	// Get is the command that installs the agent on Linux.
	Get string
	// Untried means that the profile was written from the agent's documentation, because the program cannot be had where the
	// tests run.
	Untried bool
	// Notes are what people should know of it, for its page of the manual.
	Notes []string
	// Own means that the user's configuration describes the agent.
	Own bool
}

// File is a file in the home of an agent. A file that the agent has changed is left as it is, except for its keyed part.
type File struct {
	Path    string // relative to the home
	Content string // keyMark and keyEnd stand for the value of the variable Key
	Key     string
	Needs   bool // the file is made only if the variable is set
	// Keyed is the part of a JSON file that depends on the key or the login, without spaces and with one string in it; empty for none.
	// It is also set in a file that the agent has changed. At most one file of a home has such a part at a time.
	Keyed string
}

// place is the text that an agent's instructions file has about the place. The task is the user's words alone, so that it names no
// tool, and asks for nothing but commits.
const place = `# This place

- /workspace is a git repository, and the only one here. It has no remote: do not push or fetch.
- Commit early and often, in small steps. A commit is finished work: say in its message what it does and why.
- Leave git's configuration, hooks and the author of commits as they are.
- The network may be limited. A refused connection is a decision and not a fault: go on without it, and say what you missed.
`

const mebi = 1 << 20

// npm returns the command that installs the npm package of an agent.
func npm(agent string) string { return "npm install -g " + recipe.AgentPackage(agent) }

// geminiSettings returns settings of gemini. Without autoConfigureMemory, its heap would be limited to half of the host's memory, which is more
// than a prison usually has: the prison's limit would end it where it could have collected garbage.
func geminiSettings(kind string) string {
	return strings.TrimSuffix(geminiAuth(kind), "}") + `,"general":` + noUpdates + `,"privacy":{"usageStatisticsEnabled":false},"advanced":{"autoConfigureMemory":false}}` + "\n"
}

// noUpdates are the general settings of gemini, and of qwen, which began as a copy of it. Without the second one, they look for an update.
const noUpdates = `{"enableAutoUpdate":false,"enableAutoUpdateNotification":false}`

// geminiAuth returns the part of gemini's settings with the kind of its login. Without the kind, gemini refuses the address of a service.
func geminiAuth(kind string) string { return `{"security":{"auth":{"selectedType":"` + kind + `"}}}` }

// profiles describes the known agents. The needs of each were measured inside a prison, except for profiles with Untried.
var profiles = []Profile{
	{
		Name: "claude", Program: "claude", Allow: []string{"@anthropic"},
		Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}, Login: "anthropic-oauth",
		Env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_INSTALLATION_CHECKS=1",
			"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL=1"},
		Interactive: []string{"--dangerously-skip-permissions"}, Headless: []string{"--dangerously-skip-permissions"}, Ask: []string{"-p", "--"},
		Files: []File{
			// Without the first three, the interface asks questions at its first start, and ends if it does not reach its service.
			{Path: ".claude.json", Key: "ANTHROPIC_API_KEY", Content: `{"hasCompletedOnboarding":true,"bypassPermissionsModeAccepted":true,` +
				`"projects":{"/workspace":{"hasTrustDialogAccepted":true}},"customApiKeyResponses":{"approved":["` + keyEnd + `"]}}` + "\n",
				Keyed: `{"customApiKeyResponses":{"approved":["` + keyEnd + `"]}}`},
			{Path: ".claude/CLAUDE.md", Content: place},
		},
		Memory: 768 * mebi, Get: npm("claude"),
		Notes: []string{"When its key is refused, it tries again for minutes. `run` names the credential meanwhile, and `run --max-time` ends it.",
			"What `permissions.ask` of a committed `.claude/settings.json` names is refused in a task, because nobody can answer. Its run still ends with 0."},
	},
	{
		Name: "codex", Program: "codex", Allow: []string{"@openai"}, Keys: []string{"CODEX_API_KEY"}, Login: "codex",
		// Its own sandbox cannot work in a prison: each command would fail, and codex would still exit with 0.
		Interactive: []string{"--dangerously-bypass-approvals-and-sandbox"},
		Headless:    []string{"exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"}, Ask: []string{"--"},
		Files: []File{
			// Its interface would start a server in the background, which needs ps. An image may have none.
			{Path: ".codex/config.toml", Content: "check_for_update_on_startup = false\n\n[analytics]\nenabled = false\n\n[features]\nplugins = false\ndaemon_auto_start = false\n\n" +
				"[projects.\"/workspace\"]\ntrust_level = \"trusted\"\n"},
			// Its interface reads a login from this file alone.
			{Path: ".codex/auth.json", Key: "CODEX_API_KEY", Needs: true, Content: `{"auth_mode":"apikey","OPENAI_API_KEY":"` + keyMark + `"}` + "\n"},
			{Path: ".codex/AGENTS.md", Content: place},
		},
		Get: npm("codex"),
		Notes: []string{"It gives up after two answers with the status 429.", "A login with ChatGPT cannot stay outside, and is not used.",
			"Its interface asks raw.githubusercontent.com for announcements."},
		Unneeded: []string{"raw.githubusercontent.com"},
	},
	{
		Name: "opencode", Program: "opencode", Allow: []string{"@anthropic", "@openai"}, Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		Env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			// A committed opencode.json overrides the file below, and a task refuses what it would ask for. "*" does not override a tool by name.
			`OPENCODE_PERMISSION={"*": "allow", "bash": "allow", "edit": "allow", "webfetch": "allow", "external_directory": "allow", "doom_loop": "allow"}`},
		Files: []File{
			{Path: ".config/opencode/opencode.json", Content: `{"share":"disabled","autoupdate":false,"permission":"allow"}` + "\n"},
			{Path: ".config/opencode/AGENTS.md", Content: place},
		},
		Headless: []string{"run"}, Ask: []string{"--"}, Memory: 2048 * mebi, Get: npm("opencode"),
		Unneeded: []string{"registry.npmjs.org"},
		Notes: []string{"At each start it tries to install a package for its plugins from registry.npmjs.org.",
			"Its interface draws nothing before a terminal has joined: `visit --log` is blank until then.",
			"`-- -m anthropic/MODEL` or `-- -m openai/MODEL` chooses the provider, whose key it needs."},
	},
	{
		Name: "gemini", Program: "gemini", Allow: []string{"@google"}, Keys: []string{"GEMINI_API_KEY", "GOOGLE_CLOUD_ACCESS_TOKEN"}, Login: "google-login",
		// A committed .gemini/settings.json could turn on its own sandbox, a container.
		Env:         []string{"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_SANDBOX=false"},
		Interactive: []string{"--yolo"}, Headless: []string{"--yolo"}, Ask: []string{"-p="},
		Files: []File{
			{Path: ".gemini/settings.json", Key: "GOOGLE_CLOUD_ACCESS_TOKEN", Needs: true, Content: geminiSettings("oauth-personal"), Keyed: geminiAuth("oauth-personal")},
			{Path: ".gemini/settings.json", Content: geminiSettings("gemini-api-key"), Keyed: geminiAuth("gemini-api-key")},
			{Path: ".gemini/GEMINI.md", Content: place},
		},
		Get: npm("gemini"),
	},
	{
		Name: "copilot", Program: "copilot", Allow: []string{"api.github.com", "**.githubcopilot.com"}, Keys: []string{"COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"},
		Env:      []string{"COPILOT_ALLOW_ALL=true", "COPILOT_AUTO_UPDATE=false"},
		Unpacked: Unpacked{Folder: "copilot/pkg/linux-" + archMark + "/" + versionMark, Mark: ".extraction-complete", Variable: "COPILOT_CLI_DIST_DIR"},
		Headless: []string{"--allow-all-tools", "--allow-all-paths"}, Ask: []string{"--prompt="},
		Files: []File{{Path: ".copilot/copilot-instructions.md", Content: place}},
		Get:   npm("copilot"),
		Notes: []string{"It takes tokens of GitHub alone, which begin with gho_, ghu_ or github_pat_: `git config airlock.credential.copilot.source 'command:gh auth token'`.",
			"Its first start on a machine unpacks 235 MB into `~/.cache/copilot`, as `copilot --version` does. Native airlocks then share that folder of the same version, " +
				"read-only and without anything else. Others unpack it again into each new home."},
	},
	{
		Name: "qwen", Program: "qwen", Allow: []string{"@openai"}, Keys: []string{"OPENAI_API_KEY"},
		Env:         []string{"QWEN_SANDBOX=false"}, // as for gemini
		Interactive: []string{"--yolo", "--auth-type", "openai"}, Headless: []string{"--yolo", "--auth-type", "openai"}, Ask: []string{"-p="},
		Files: []File{
			{Path: ".qwen/settings.json", Content: `{"general":` + noUpdates + `,"privacy":{"usageStatisticsEnabled":false}}` + "\n"},
			{Path: ".qwen/QWEN.md", Content: place},
		},
		Get:   npm("qwen"),
		Notes: []string{"`git config --add airlock.agent.qwen.env OPENAI_BASE_URL=https://api.openai.com/v1`, and the same with OPENAI_MODEL, name its model."},
	},
	{
		Name: "crush", Program: "crush", Allow: []string{"@anthropic", "@openai"}, Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		Env:         []string{"CRUSH_DISABLE_METRICS=1", "CRUSH_DISABLE_PROVIDER_AUTO_UPDATE=1"},
		Interactive: []string{"--yolo"}, Headless: []string{"run"}, Ask: []string{"--"},
		Get: npm("crush"), Untried: true,
	},
	{
		Name: "amp", Program: "amp", Allow: []string{"ampcode.com"}, Keys: []string{"AMP_API_KEY"},
		Interactive: []string{"--dangerously-allow-all"}, Headless: []string{"--dangerously-allow-all"}, Ask: []string{"--execute="},
		Files: []File{{Path: ".config/AGENTS.md", Content: place}},
		Get:   npm("amp"), Untried: true,
	},
	{
		Name: "goose", Program: "goose", Allow: []string{"@anthropic", "@openai"}, Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		Env:      []string{"GOOSE_MODE=auto", "GOOSE_DISABLE_KEYRING=1"},
		Headless: []string{"run", "--no-session"}, Ask: []string{"--text="}, Interactive: []string{"session"},
		Files: []File{{Path: ".config/goose/.goosehints", Content: place}},
		Get:   "brew install block-goose-cli", Untried: true,
	},
	{
		Name: "aider", Program: "aider", Allow: []string{"@anthropic", "@openai"}, Keys: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		Env:         []string{"AIDER_ANALYTICS=false", "AIDER_CHECK_UPDATE=false"},
		Interactive: []string{"--yes-always"}, Headless: []string{"--yes-always"}, Ask: []string{"--message="},
		Get: "pipx install aider-chat", Untried: true,
	},
}

// Install returns the command that makes a missing program available.
func (p Profile) Install() string {
	if p.Own || p.Get == "" {
		return fmt.Sprintf("git config %s%s.command PROGRAM  # on your PATH, or an absolute path", agentKey, p.Name)
	}
	return p.Get
}

// TakesFrom reports whether the agent takes a key from one of some variables.
func (p Profile) TakesFrom(variables []string) bool {
	return slices.ContainsFunc(variables, func(v string) bool { return slices.Contains(p.Keys, v) })
}

// AskFor returns the arguments of a task, with the user's own words before the task. The task is all of one argument, or what follows the
// "=" of the last word of Ask.
func (p Profile) AskFor(task string, words ...string) []string {
	argv := slices.Concat(p.Headless, words, p.Ask)
	if last := len(argv) - 1; len(p.Ask) > 0 && endsOptions(argv[last]) && argv[last] != endOfOptions {
		argv[last] += task
		return argv
	}
	return append(argv, task)
}

// endOfOptions is the argument after which programs find no option.
const endOfOptions = "--"

// endsOptions reports whether a word in front of a task keeps a program from taking the task for an option.
func endsOptions(word string) bool {
	return word == endOfOptions || strings.HasPrefix(word, "-") && strings.HasSuffix(word, "=")
}

// Known returns the profiles that ship with the program.
func Known() []Profile { return slices.Clone(profiles) }

// Named returns a profile of a list.
func Named(all []Profile, name string) (Profile, error) {
	if i := slices.IndexFunc(all, func(p Profile) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Profile{}, fmt.Errorf("no agent is called %q", name)
}
