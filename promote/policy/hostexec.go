package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/bounded"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
)

// runWhenNew lists files that run elsewhere, or when the user builds or tests. Only new ones are reported.
var runWhenNew = pathname.NewTable(
	pathname.Named("CI runs it, and it is new", `
		.github/workflows/ .github/actions/ action.yml action.yaml .gitlab-ci.yml .gitlab/ci/ jenkinsfile .circleci/ .travis.yml
		azure-pipelines.yml .azure-pipelines/ appveyor.yml .appveyor.yml .drone.yml .woodpecker.yml .woodpecker/
		bitbucket-pipelines.yml .buildkite/ .cirrus.yml .forgejo/workflows/ .gitea/workflows/ .teamcity/ buildspec.yml
		cloudbuild.yaml .semaphore/ wercker.yml codefresh.yml .builds/ .build.yml`),
	pathname.Named("builds and tests run it, and it is new", `setup.py conftest.py`),
	pathname.Named("editors and builds run commands in it, and it is new", `*.sln *.slnx *.csproj *.fsproj *.vbproj *.vcxproj`),
)

var runByItself = pathname.NewTable(
	pathname.Named("editors run it", `
		.vscode/tasks.json .vscode/settings.json .vscode/launch.json .vscode/extensions.json *.code-workspace .idea/ .fleet/
		.devcontainer/ devcontainer.json .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .lvimrc .local.vimrc .local-vimrc .dir-locals.el
		.vim/vimrc .nvim/init.lua .dir-locals-2.el .gdbinit .lldbinit .sublime-project *.sublime-project .vs/tasks.vs.json .vs/launch.vs.json
		eslint.config.js eslint.config.mjs eslint.config.cjs eslint.config.ts eslint.config.mts eslint.config.cts
		.eslintrc .eslintrc.js .eslintrc.cjs .eslintrc.json .eslintrc.yml .eslintrc.yaml
		stylelint.config.js stylelint.config.mjs stylelint.config.cjs .stylelintrc .stylelintrc.js .stylelintrc.mjs .stylelintrc.cjs .stylelintrc.json
		prettier.config.js prettier.config.mjs prettier.config.cjs .prettierrc.js .prettierrc.mjs .prettierrc.cjs
		.helix/languages.toml .helix/config.toml .vim/coc-settings.json directory.build.props directory.build.targets directory.build.rsp
		directory.solution.props directory.solution.targets .yarn/sdks/ .rubocop.yml
		.bsp/ buildserver.json .pylintrc pylintrc .solargraph.yml hie.yaml .luarc.json .luarc.jsonc .idx/dev.nix .gitpod.yml
		tailwind.config.js tailwind.config.cjs tailwind.config.mjs tailwind.config.ts
		svelte.config.js svelte.config.cjs svelte.config.mjs vitest.workspace.ts vitest.workspace.js
		vitest.config.js vitest.config.mjs vitest.config.cjs vitest.config.ts vitest.config.mts vitest.config.cts
		jest.config.js jest.config.mjs jest.config.cjs jest.config.ts jest.config.mts jest.config.cts
		playwright.config.js playwright.config.mjs playwright.config.cjs playwright.config.ts playwright.config.mts playwright.config.cts
		.graphqlrc.js .graphqlrc.cjs .graphqlrc.ts graphql.config.js graphql.config.cjs graphql.config.ts
		.markdownlint.cjs .markdownlint.mjs .markdownlint-cli2.cjs .markdownlint-cli2.mjs .markdownlint-cli2.jsonc .markdownlint-cli2.yaml
		directory.packages.props *.user .flake8 mypy.ini .mypy.ini .latexmkrc latexmkrc .lazy.lua .externaltoolbuilders/ .factorypath omnisharp.json`),
	pathname.Named("shells run it on entering the folder", `
		.envrc .envrc.local .env .env.leave .mise.toml mise.toml .mise.local.toml mise.local.toml .config/mise/ .mise/ mise/config.toml .miserc.toml .rtx.toml
		.tool-versions .python-version .ruby-version .node-version .nvmrc .autoenv .autoenv.zsh .in .out shell.nix flake.nix devenv.nix .devenv/
		devbox.json pixi.toml .rvmrc .bashrc .bash_profile .zshrc .zshenv .zprofile .profile .localrc`),
	pathname.Named("package managers run it", `
		.npmrc package.yaml .yarnrc .yarnrc.yml .yarn/releases/ .yarn/plugins/ .pnpmfile.cjs .pnpmfile.mjs pnpmfile.js .pnp.cjs .pnp.loader.mjs binding.gyp
		build.rs .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain gradle/wrapper/ gradlew gradlew.bat .mvn/ mvnw mvnw.cmd
		init.gradle .bundle/ pip.conf .condarc .bazelrc tools/bazel nuget.config bunfig.toml .bunfig.toml`),
	pathname.Named("git hooks call it", `
		.husky/ .githooks/ .git-hooks/ git-hooks/ .hooks/ .huskyrc .huskyrc.js .huskyrc.json simple-git-hooks.js .simple-git-hooks.json
		lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml lefthook-local.yml lefthook-local.yaml .lefthook-local.yml .lefthook/ hk.pkl
		.pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml prek.toml .overcommit.yml
		.lintstagedrc .lintstagedrc.js .lintstagedrc.mjs .lintstagedrc.cjs .lintstagedrc.json lint-staged.config.js lint-staged.config.mjs lint-staged.config.cjs`),
	pathname.Named("git lfs sends files to the server that it names", `.lfsconfig`),
	pathname.Named("test runners and interpreters run it", `
		sitecustomize.py usercustomize.py *.pth .pdbrc .rspec .noserc .mocharc.js .mocharc.cjs
		.rprofile .renviron .octaverc .ghci .iex.exs .irbrc .pryrc .ocamlinit`),
)

// packagePart is a part of a file of which only some parts run.
type packagePart struct {
	name string
	// entries are the entries that run by themselves, or nil for all entries. Of the other entries, only new ones are
	// reported.
	entries []string
}

// packageFiles are files of which only a part runs. npm runs life cycle scripts when it installs, and other scripts
// by name.
var packageFiles = map[string][]packagePart{
	"package.json": {
		{"scripts", strings.Fields(`preinstall install postinstall preprepare prepare postprepare prepublish dependencies pnpm:devpreinstall`)},
		{name: "husky"}, {name: "gitHooks"}, {name: "simple-git-hooks"}, {name: "lint-staged"}, {name: "packageManager"}, {name: "pnpm"}, {name: "gypfile"},
	},
	"composer.json": {{name: "scripts"}, {name: "config"}},
	"deno.json":     {{"tasks", []string{}}},
}

// hostExec finds files that run without a command of the user. A file that runs on this machine by itself is reported
// at each change: an editor opens the folder, a shell enters it, a package manager installs, or a git hook or an
// extension of git uses the file. A file that runs elsewhere, or only when the user builds or tests, changes in one
// of ten ordinary commits. It is reported when it is new, and not when it changes. A file that runs only when the
// user names it (a Makefile, a script) is not reported.
func hostExec(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	link := c.New.Mode == gitops.ModeLink
	if why := runByItself().Find(c.Path, link); why != "" {
		r.at(c.Path, "%s", why)
		return nil
	}
	if why := runWhenNew().Find(c.Path, link); why != "" {
		if c.Old.Mode != c.New.Mode { // a link or a program that replaces a file is also new
			r.at(c.Path, "%s", why)
		}
		return nil
	}
	parts := packageFiles[pathname.Plain(pathname.Base(c.Path))]
	if parts == nil {
		return nil
	}
	from, err := in.content(ctx, c.Old)
	if err != nil {
		return err
	}
	content, err := in.content(ctx, c.New)
	if err != nil {
		return err
	}
	if part, known := changedPart(from, content, parts); !known || !c.New.Regular() {
		r.at(c.Path, "package managers may run any part of it")
	} else if part != "" {
		r.at(c.Path, "package managers run the commands under %q", part)
	}
	return nil
}

// runsOnHost reports whether a file, or a part of it, runs on this machine without a command of the user.
func runsOnHost(path string) bool {
	return runByItself().Find(path, false) != "" || packageFiles[pathname.Plain(pathname.Base(path))] != nil
}

// packageLimits bound the files of package managers.
var packageLimits = bounded.Limits{Bytes: textLimit, Depth: 64, Keys: 100_000}

// members reads a JSON object. ok is false if the text is not one, or exceeds the limits.
func members(text []byte) (all map[string]json.RawMessage, ok bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark, which package managers ignore
	if packageLimits.JSON(text) != nil {
		return nil, false
	}
	err := json.Unmarshal(text, &all)
	return all, err == nil
}

// changedPart returns the first part of a JSON file that runs and has changed, or empty. If the text is not JSON for
// this program, another program may still accept it, so known is false.
func changedPart(from, to []byte, parts []packagePart) (part string, known bool) {
	before, _ := members(from)
	after, ok := members(to)
	if !ok {
		return "", false
	}
	for _, p := range parts {
		if value, there := after[p.name]; there && p.changed(before[p.name], value) {
			return p.name, true
		}
	}
	return "", true
}

// changed reports whether entries that run have changed.
func (p packagePart) changed(before, after json.RawMessage) bool {
	if sameValue(before, after) {
		return false
	}
	var had, has map[string]json.RawMessage
	if p.entries == nil || json.Unmarshal(after, &has) != nil {
		return true
	}
	if before != nil && json.Unmarshal(before, &had) != nil {
		return true
	}
	for name, value := range has {
		was, there := had[name]
		if !there || slices.Contains(p.entries, strings.ToLower(name)) && !sameValue(was, value) {
			return true
		}
	}
	return false
}

// sameValue compares two JSON values. nil means that there is none.
func sameValue(a, b json.RawMessage) bool {
	var left, right any
	return (a == nil) == (b == nil) && json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

var executedByAgents = pathname.NewTable(
	pathname.Named("coding agents start the servers that it names", `.mcp.json mcp.json mcp_config.json .vscode/mcp.json`),
	pathname.Named("a coding agent obeys it", `
		.claude/settings.json .claude/settings.local.json .claude/hooks/ .claude/plugins/ .claude-plugin/
		.codex/config.toml .codex/hooks.json .codex/hooks/ .codex/rules/
		.gemini/settings.json .gemini/hooks/ .gemini/extensions/ .qwen/settings.json
		.cursor/hooks.json .cursor/hooks/ .cursor/environment.json .cursor/cli.json .cursor/permissions.json .cursor/worktrees.json .clinerules/hooks/
		.windsurf/hooks.json .kiro/hooks/ .kiro/settings/ .amazonq/cli-agents/ .github/hooks/
		.opencode/plugin/ .opencode/plugins/ .opencode/tool/ .opencode/tools/ opencode.json opencode.jsonc
		.aider.conf.yml .crush.json crush.json .factory/settings.json .factory/hooks/ .continue/mcpservers/
		.zed/settings.json .zed/tasks.json .goosehints.d/ .augment/settings.json .vibe/config.toml .amp/settings.json`),
)

func startsAgents(path string) bool { return executedByAgents().Find(path, false) != "" }

var readByAgents = pathname.NewTable(
	pathname.Named("coding agents take it for instructions", `
		agents.md agent.md claude.md claude.local.md gemini.md qwen.md .cursorrules .windsurfrules .clinerules .goosehints
		.clinerules/ .cursor/ .windsurf/ .claude/ .codex/ .gemini/ .opencode/ .roo/ .roomodes .kiro/ .amazonq/ .junie/
		.continue/ .factory/ .agents/ .github/copilot-instructions.md .github/instructions/ .github/prompts/
		.github/agents/ .github/chatmodes/`),
)

// agentConfig finds files that another agent, run by the user outside, would execute or obey. Files that configure
// servers, hooks and plugins hold. Texts with instructions are flagged.
func agentConfig(_ context.Context, _ *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	if why := executedByAgents().Find(c.Path, c.New.Mode == gitops.ModeLink); why != "" {
		r.at(c.Path, "%s", why)
	} else if why := readByAgents().Find(c.Path, c.New.Mode == gitops.ModeLink); why != "" {
		r.mention(c.Path, "%s", why)
	}
	return nil
}
