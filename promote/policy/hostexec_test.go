package policy

import (
	"slices"
	"testing"
)

// TestRunByItself has a file of each program that runs or starts something when a folder is opened, or when it starts there. The
// others run only when the user builds.
func TestRunByItself(t *testing.T) {
	for path, want := range map[string]bool{
		".bsp/sbt.json": true, "a/.bsp/mill.json": true, "buildServer.json": true, "ios/buildServer.json": true, ".pylintrc": true, "pylintrc": true,
		".solargraph.yml": true, "hie.yaml": true, ".luarc.json": true, ".luarc.jsonc": true, ".idx/dev.nix": true, ".gitpod.yml": true,
		"tailwind.config.js": true, "web/tailwind.config.ts": true, "bunfig.toml": true,
		".Rprofile": true, ".Renviron": true, ".ghci": true, "a/.iex.exs": true, ".irbrc": true, ".pryrc": true, ".ocamlinit": true,
		".env": true, ".nvmrc": true, "a/.envrc.local": true, ".eslintrc": true, ".eslintrc.json": true, "eslint.config.mts": true, ".stylelintrc.js": true,
		".pnpmfile.mjs": true, ".bundle/config": true, "gradlew": true, "lefthook-local.yml": true, "prek.toml": true, "Directory.Build.rsp": true,
		".vs/tasks.vs.json": true, ".local.vimrc": true, ".vim/vimrc": true, ".nvim/init.lua": true, ".miserc.toml": true, ".rtx.toml": true,
		"Directory.Packages.props": true, "src/App.csproj.user": true, "omnisharp.json": true, ".externalToolBuilders/x.launch": true, ".factorypath": true,
		".flake8": true, "mypy.ini": true, ".mypy.ini": true, ".rvmrc": true, ".zshenv": true, ".zprofile": true, ".bash_profile": true, ".octaverc": true,
		".latexmkrc": true, "doc/latexmkrc": true, ".lazy.lua": true, "svelte.config.js": true, "vitest.config.ts": true, "jest.config.js": true,
		"playwright.config.ts": true, ".graphqlrc.js": true, ".markdownlint-cli2.cjs": true, "devbox.json": true, "pixi.toml": true,
		".env.example": false, "env": false, ".vs/x.suo": false, "vim/vimrc": false, "x.csproj": false, // which is reported when it is new
		".babelrc.js": false, "babel.config.js": false, "postcss.config.js": false, "webpack.config.js": false, "Makefile": false,
		"user": false, "graphql.config.json": false, ".markdownlint.json": false, "vite.config.js": false, "bsp/sbt.json": false, "Rprofile": false, "dev.nix": false,
	} {
		if why := runByItself().Find(path, false); (why != "") != want {
			t.Errorf("%s: %q, want a reason: %v", path, why, want)
		}
	}
}

// TestAgentsRun has files by which coding agents run commands, in folders whose other files are instructions.
func TestAgentsRun(t *testing.T) {
	for path, want := range map[string]bool{".clinerules/hooks/PreToolUse": true, ".cursor/worktrees.json": true, ".clinerules/style.md": false, ".cursor/rules/a.mdc": false} {
		if executedByAgents().Find(path, false) != "" != want || readByAgents().Find(path, false) == "" {
			t.Errorf("%s: want to be executed: %v", path, want)
		}
	}
}

// TestOtherRepositories has files of repositories of other version control systems.
func TestOtherRepositories(t *testing.T) {
	for path, want := range map[string]bool{
		".hg/hgrc": true, "a/.HG/requires": true, ".jj/repo/config.toml": true, ".svn/wc.db": true, ".bzr/branch/branch.conf": true, ".sl/config": true,
		"_FOSSIL_": true, "a/.fslckout": true, "CVS/Root": true, "_darcs/prefs/defaults": true, "_MTN/monotonerc": true, ".repo/repo/main.py": true,
		".hgignore": false, ".hgtags": false, "hg/hgrc": false, "cvs/main.c": false, ".svnignore": false, ".fossil-settings/ignore-glob": false,
	} {
		s := newStore()
		found, err := New(Settings{}, Facts{}, s).Check(t.Context(), s.commit(testBase, testBase.with(files{path: "x"}), "m"))
		check(t, err)
		held := slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "embedded-repo" && f.Action == Hold && f.Paths[0] == path })
		if held != want {
			t.Errorf("%s: held %t, want %t: %+v", path, held, want, found)
		}
	}
}
