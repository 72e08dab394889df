package recipe

import (
	"maps"
	"slices"
)

// FileName is the path of a recipe from the top of a work tree.
const FileName = "coding-environment.toml"

// Version is the newest version of the format that this package reads. It also is the version that it writes.
const Version = 1

// MaxSize bounds the bytes of a recipe and of every other file that describes an environment.
const MaxSize = 1 << 20 // the same limit as in bounded.Usual

// System is the version of a language that selects the distribution's package.
const System = "system"

// defaultBase is the container image that an environment starts from when its recipe names none.
const defaultBase = "debian:12"

// Recipe describes an environment. The zero Recipe requests only the baseline: git, a shell, certificates.
type Recipe struct {
	OS        OS
	Languages []Language // sorted by name
	Agents    []Agent    // sorted by name
	Startup   []string   // commands that run one after the other
	Prestart  []string   // commands that run in the background and start before those of Startup
	Env       Env
}

// OS describes the system below the languages.
type OS struct {
	Base       string   // a container image; empty for [defaultBase]
	Packages   []string // the distribution's packages, as NAME or NAME=VERSION
	Dockerfile string   // path in the repository of a Dockerfile to build instead of using Base; empty for none
	Context    string   // folder of the repository that the Dockerfile copies from; empty for its top
}

// Language is a language with its tools.
type Language struct {
	Name    string
	Version string // exact, or [System]
	// Manager is the package manager, as NAME or NAME@VERSION. Empty means the one that comes with the language.
	Manager string
	// Distribution is the distribution of Java. Empty means the default.
	Distribution string
}

// Env describes the environment variables of every process.
type Env struct {
	Pass []string          // names of the host's variables
	Set  map[string]string // variables with their values
}

// Names returns the names of the variables in Set, sorted.
func (e Env) Names() []string { return slices.Sorted(maps.Keys(e.Set)) }

// WantsTools reports whether a recipe requests more of the system than the baseline.
func (r Recipe) WantsTools() bool {
	return r.OS.Base != "" || r.OS.Dockerfile != "" || len(r.OS.Packages) > 0 || len(r.Languages) > 0 || len(r.Agents) > 0
}
