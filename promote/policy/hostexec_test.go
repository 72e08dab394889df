package policy

import "testing"

// TestRunByItself has a file of each program that runs or starts something when a folder is opened, or when it starts there. The
// others run only when the user builds.
func TestRunByItself(t *testing.T) {
	for path, want := range map[string]bool{
		".bsp/sbt.json": true, "a/.bsp/mill.json": true, "buildServer.json": true, "ios/buildServer.json": true, ".pylintrc": true, "pylintrc": true,
		".solargraph.yml": true, "hie.yaml": true, ".luarc.json": true, ".luarc.jsonc": true, ".idx/dev.nix": true, ".gitpod.yml": true,
		"tailwind.config.js": true, "web/tailwind.config.ts": true, "bunfig.toml": true,
		".Rprofile": true, ".Renviron": true, ".ghci": true, "a/.iex.exs": true, ".irbrc": true, ".pryrc": true, ".ocamlinit": true,
		".babelrc.js": false, "babel.config.js": false, "postcss.config.js": false, "webpack.config.js": false, "Makefile": false,
		"bsp/sbt.json": false, "Rprofile": false, "dev.nix": false,
	} {
		if why := runByItself().Find(path, false); (why != "") != want {
			t.Errorf("%s: %q, want a reason: %v", path, why, want)
		}
	}
}
