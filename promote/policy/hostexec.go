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
)

// hostExec looks for files that something runs without being told to. What runs on this machine by itself is reported each time
// that it changes: an editor opens the folder, a shell enters it, a package manager installs, a git hook or an extension of
// git's takes it up. What runs elsewhere, or only when the user builds or tests, changes in one of ten ordinary commits: it is
// reported when it is new, and not when it is edited. What runs only when the user asks for it by name (a Makefile, a script)
// is left to the user's eyes.
type hostExec struct{ changesOnly }

func (hostExec) describe() Description {
	return documented("host-exec", Flag, "a file that editors, shells, package managers or git hooks run by themselves; a new one that CI, builds or tests run")
}

// runWhenNew tells of files that run elsewhere, or in what the user begins: a new one is something new that runs.
var runWhenNew = newPathTable(
	group{"CI runs it, and it is new", fields(`
		.github/workflows/ .github/actions/ action.yml action.yaml .gitlab-ci.yml .gitlab/ci/ jenkinsfile .circleci/ .travis.yml
		azure-pipelines.yml .azure-pipelines/ appveyor.yml .appveyor.yml .drone.yml .woodpecker.yml .woodpecker/
		bitbucket-pipelines.yml .buildkite/ .cirrus.yml .forgejo/workflows/ .gitea/workflows/ .teamcity/ buildspec.yml
		cloudbuild.yaml .semaphore/ wercker.yml codefresh.yml .builds/ .build.yml`)},
	group{"builds and tests run it, and it is new", fields(`setup.py conftest.py`)},
)

var runByItself = newPathTable(
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
		build.rs .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain gradle/wrapper/ .mvn/ init.gradle
		pip.conf .condarc .bazelrc tools/bazel nuget.config`)},
	group{"git hooks call it", fields(`
		.husky/ .githooks/ .git-hooks/ git-hooks/ .hooks/ lefthook.yml lefthook.yaml .lefthook.yml .lefthook/
		.pre-commit-config.yaml .pre-commit-hooks.yaml .overcommit.yml .lintstagedrc .lintstagedrc.js lint-staged.config.js`)},
	group{"git lfs sends files to the server that it names", fields(`.lfsconfig`)},
	group{"test runners and interpreters run it", fields(`
		sitecustomize.py usercustomize.py *.pth .pdbrc .rspec .noserc .mocharc.js .mocharc.cjs`)},
)

// packagePart is a part of a file of which only some parts are run.
type packagePart struct {
	name string
	// entries are those that run by themselves, nil for all of them. Of others, a new one is reported, and no edit.
	entries []string
}

// packageFiles are files of which only a part is run. npm runs the scripts of a life cycle when it installs, others by name.
var packageFiles = map[string][]packagePart{
	"package.json": {
		{"scripts", fields(`preinstall install postinstall preprepare prepare postprepare prepublish dependencies pnpm:devpreinstall`)},
		{name: "husky"}, {name: "gitHooks"}, {name: "simple-git-hooks"}, {name: "lint-staged"}, {name: "packageManager"}, {name: "pnpm"}, {name: "gypfile"},
	},
	"composer.json": {{name: "scripts"}, {name: "config"}},
	"deno.json":     {{"tasks", []string{}}},
}

func (hostExec) change(ctx context.Context, in *inspection, c gitops.Change, r *report) error {
	if c.New.Mode == 0 {
		return nil
	}
	link := c.New.Mode == gitops.ModeLink
	if why := runByItself.find(c.Path, link); why != "" {
		r.at(c.Path, "%s", why)
		return nil
	}
	if why := runWhenNew.find(c.Path, link); why != "" {
		if c.Old.Mode != c.New.Mode { // a link or a program where a file was is new, too
			r.at(c.Path, "%s", why)
		}
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

// packageLimits bound a file that package managers read.
var packageLimits = bounded.Limits{Bytes: textLimit, Depth: 64, Keys: 100_000}

// members reads a JSON object; ok is false for what is none, or too much to be read.
func members(text []byte) (all map[string]json.RawMessage, ok bool) {
	text = withoutMark(text)
	if packageLimits.JSON(text) != nil {
		return nil, false
	}
	err := json.Unmarshal(text, &all)
	return all, err == nil
}

// changedPart names the first part of a JSON file that runs and is not as it was; empty if all are. What is no JSON to us may be
// some to others: that is not known.
func changedPart(old, new []byte, parts []packagePart) (part string, known bool) {
	before, _ := members(old)
	after, ok := members(new)
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

// changed reports whether a part has something else that runs than before.
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

// sameValue compares two values of JSON, nil for none.
func sameValue(a, b json.RawMessage) bool {
	var left, right any
	return (a == nil) == (b == nil) && json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// withoutMark leaves out a byte order mark, as package managers do.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
