package recipe

import (
	"maps"
	"slices"
)

// known describes a language that this package knows. mise alone knows all others.
type known struct {
	managers []string // the first comes with the language, and is empty if none does
	aliases  []string // other common names
	packages []string // Debian's packages for [System]; empty if Debian has none
	requires []string // Debian's packages that the language needs when mise installs or builds it
	check    []string // the command that prints the version
	mise     string   // mise's name of the language, if it differs
}

// languages are the languages with built-in knowledge.
var languages = map[string]known{
	"python": {
		managers: []string{"pip", "uv", "poetry", "pipenv"}, aliases: []string{"python3", "py", "cpython"},
		packages: []string{"python3", "python3-pip", "python3-venv", "python-is-python3"},
		check:    []string{"python3", "--version"},
	},
	"node": {
		managers: []string{"npm", "pnpm", "yarn"}, aliases: []string{"nodejs", "javascript", "js", "typescript", "npm"},
		packages: []string{"nodejs", "npm"}, check: []string{"node", "--version"},
	},
	"rust": {
		managers: []string{"cargo"}, aliases: []string{"cargo", "rustc", "rs"},
		packages: []string{"rustc", "cargo"}, requires: []string{"gcc", "libc6-dev"}, check: []string{"rustc", "--version"},
	},
	"go": {
		aliases: []string{"golang"}, packages: []string{"golang-go"}, check: []string{"go", "version"},
	},
	"dotnet": {
		aliases:  []string{"csharp", "c#", ".net", "dotnet-core", "fsharp"},
		requires: []string{icu}, check: []string{"dotnet", "--version"},
	},
	"java": {
		managers: []string{"", "maven", "gradle"}, aliases: []string{"jdk", "openjdk", "jvm"},
		packages: []string{"default-jdk-headless"}, check: []string{"java", "-version"},
	},
	"ruby": {
		packages: []string{"ruby"}, aliases: []string{"rb"}, check: []string{"ruby", "--version"},
		requires: []string{"build-essential", "libffi-dev", "libreadline-dev", "libssl-dev", "libyaml-dev", "zlib1g-dev"},
	},
	"php": {
		packages: []string{"php-cli", "composer"}, check: []string{"php", "--version"},
		requires: []string{"autoconf", "bison", "build-essential", "libcurl4-openssl-dev", "libonig-dev", "libreadline-dev",
			"libsqlite3-dev", "libssl-dev", "libxml2-dev", "libzip-dev", "pkg-config", "re2c", "zlib1g-dev"},
	},
	"perl": {packages: []string{"perl"}, check: []string{"perl", "--version"}},
	"lua":  {packages: []string{"lua5.4"}, check: []string{"lua", "-v"}},
	"erlang": {
		packages: []string{"erlang"}, check: []string{"erl", "-version"},
		requires: []string{"autoconf", "build-essential", "libncurses-dev", "libssl-dev"},
	},
	"elixir": {packages: []string{"elixir"}, check: []string{"elixir", "--version"}},
	"deno":   {}, "bun": {}, "zig": {}, "swift": {}, "kotlin": {}, "scala": {}, "crystal": {}, "nim": {}, "julia": {},
	"haskell": {mise: "ghc", check: []string{"ghc", "--version"}, packages: []string{"ghc", "cabal-install"}},
}

// icu stands for the package of ICU, whose name contains its version and differs in each release.
const icu = "libicu*"

// distributions are the distributions of Java, the default first.
var distributions = []string{
	"openjdk", "temurin", "corretto", "zulu", "liberica", "graalvm-community", "oracle", "microsoft", "sapmachine", "semeru-openj9",
}

// managerPackages are Debian's packages of managers that do not come with a language.
var managerPackages = map[string][]string{
	"poetry": {"python3-poetry"}, "pipenv": {"pipenv"}, "yarn": {"yarnpkg"}, "maven": {"maven"}, "gradle": {"gradle"},
}

// KnownLanguages returns the languages with built-in knowledge, sorted. A recipe may name others that mise knows.
func KnownLanguages() []string { return slices.Sorted(maps.Keys(languages)) }

// Managers returns the package managers for a language. The first one comes with the language.
func Managers(language string) []string {
	return slices.DeleteFunc(slices.Clone(languages[language].managers), func(m string) bool { return m == "" })
}

// hasSystem reports whether the distribution has a package of a language, so that its version can be [System].
func hasSystem(language string) bool { return len(languages[language].packages) > 0 }
