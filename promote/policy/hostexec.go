package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/git-airlock/git-airlock/gitops"
)

// hostExec looks for files that something on the user's side runs without being told to: an editor that opens the
// folder, a shell that enters it, a package manager that installs, a server that sees a push, an extension of git's that takes its settings from it. What runs only when
// the user asks for it by name (a Makefile, a script) is left to the user's eyes.
type hostExec struct{ changesOnly }

func (hostExec) describe() Description {
	return documented("host-exec", Flag, "a file that editors, shells, package managers, test runners or CI run by themselves")
}

var runByItself = newPathTable(
	group{"CI runs it", fields(`
		.github/workflows/ .github/actions/ action.yml action.yaml .gitlab-ci.yml .gitlab/ci/ jenkinsfile .circleci/ .travis.yml
		azure-pipelines.yml .azure-pipelines/ appveyor.yml .appveyor.yml .drone.yml .woodpecker.yml .woodpecker/
		bitbucket-pipelines.yml .buildkite/ .cirrus.yml .forgejo/workflows/ .gitea/workflows/ .teamcity/ buildspec.yml
		cloudbuild.yaml .semaphore/ wercker.yml codefresh.yml .builds/ .build.yml`)},
	group{"editors run it", fields(`
		.vscode/tasks.json .vscode/settings.json .vscode/launch.json .vscode/extensions.json *.code-workspace .idea/ .fleet/
		.devcontainer/ devcontainer.json .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el
		.dir-locals-2.el .gdbinit .lldbinit .sublime-project *.sublime-project
		eslint.config.js eslint.config.mjs eslint.config.cjs eslint.config.ts .eslintrc.js .eslintrc.cjs
		prettier.config.js prettier.config.mjs prettier.config.cjs .prettierrc.js .prettierrc.mjs .prettierrc.cjs
		.helix/languages.toml .helix/config.toml .vim/coc-settings.json directory.build.props directory.build.targets .rubocop.yml`)},
	group{"shells run it on entering the folder", fields(`
		.envrc .mise.toml mise.toml .mise.local.toml mise.local.toml .config/mise/ .mise/ .tool-versions .python-version .autoenv .autoenv.zsh .in .out shell.nix flake.nix
		devenv.nix .devenv/ .bashrc .zshrc .profile`)},
	group{"package managers run it", fields(`
		.npmrc package.yaml .yarnrc .yarnrc.yml .yarn/releases/ .yarn/plugins/ .pnpmfile.cjs pnpmfile.js .pnp.cjs .pnp.loader.mjs binding.gyp
		setup.py build.rs .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain gradle/wrapper/ .mvn/ init.gradle
		pip.conf .condarc .bazelrc tools/bazel nuget.config`)},
	group{"git hooks call it", fields(`
		.husky/ .githooks/ .git-hooks/ git-hooks/ .hooks/ lefthook.yml lefthook.yaml .lefthook.yml .lefthook/
		.pre-commit-config.yaml .pre-commit-hooks.yaml .overcommit.yml .lintstagedrc .lintstagedrc.js lint-staged.config.js`)},
	group{"git lfs sends files to the server that it names", fields(`.lfsconfig`)},
	group{"test runners and interpreters run it", fields(`
		conftest.py sitecustomize.py usercustomize.py *.pth .pdbrc .rspec .noserc .mocharc.js .mocharc.cjs`)},
)

// packageFiles are files of which only a part is run, by the names of that part.
var packageFiles = map[string][]string{
	"package.json":  {"scripts", "husky", "gitHooks", "simple-git-hooks", "lint-staged", "packageManager", "pnpm", "gypfile"},
	"composer.json": {"scripts", "config"},
	"deno.json":     {"tasks"},
}

func (hostExec) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	if why := runByItself.find(c.Path, c.New.Mode == gitops.ModeLink); why != "" {
		r.at(c.Path, "%s", why)
		return nil
	}
	parts := packageFiles[plain(base(c.Path))]
	if parts == nil {
		return nil
	}
	old, err := in.content(ctx, c.Old)
	if err != nil {
		return err
	}
	content, err := in.content(ctx, c.New)
	if err != nil {
		return err
	}
	if part, known := changedPart(old, content, parts); !known || !c.New.Regular() {
		r.at(c.Path, "what package managers run of it cannot be told")
	} else if part != "" {
		r.at(c.Path, "package managers run what is under %q", part)
	}
	return nil
}

// changedPart names the first part of a JSON file that is not as it was; empty if all are. What is no JSON to us may be
// some to others: that is not known.
func changedPart(old, new []byte, parts []string) (part string, known bool) {
	var before, after map[string]any
	_ = json.Unmarshal(withoutMark(old), &before)
	if err := json.Unmarshal(withoutMark(new), &after); err != nil {
		return "", false
	}
	for _, p := range parts {
		if value, there := after[p]; there && !reflect.DeepEqual(before[p], value) {
			return p, true
		}
	}
	return "", true
}

// withoutMark leaves out a byte order mark, as package managers do.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
