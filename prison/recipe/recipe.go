package recipe

import (
	"maps"
	"slices"
)

// FileName is where a recipe lies, from the top of a work tree.
const FileName = "coding-environment.toml"

// Version is the newest version of the format that this package reads, and the one it writes.
const Version = 1

// MaxSize bounds a recipe and every other file that an environment is described in.
const MaxSize = 1 << 20 // as bounded.Usual has it

// System is the version of a language that stands for the distribution's own package.
const System = "system"

// DefaultBase is the container image that an environment starts from when its recipe names none.
const DefaultBase = "debian:12"

// Recipe is what an environment is made of. The zero Recipe asks for nothing beside the baseline: git, a shell,
// certificates.
type Recipe struct {
	OS        OS
	Languages []Language // by their names
	Startup   []string   // commands that are run one after the other
	Prestart  []string   // commands that are run in the background, before those of Startup
	Env       Env
}

// OS is the system below the languages.
type OS struct {
	Base       string   // a container image; empty for [DefaultBase]
	Packages   []string // the distribution's, as NAME or NAME=VERSION
	Dockerfile string   // path in the repository of what to build in place of Base; empty for none
	Context    string   // folder of the repository that the Dockerfile copies from; empty for its top
}

// Language is a language with its tools.
type Language struct {
	Name    string
	Version string // exact, or [System]
	// Manager is the package manager, NAME or NAME@VERSION; empty for the one that comes with the language.
	Manager string
	// Distribution is who built it, for Java; empty for the usual one.
	Distribution string
}

// Env is what is in the environment of every process.
type Env struct {
	Pass []string          // names of variables of the host's
	Set  map[string]string // variables with their values
}

// Names returns the names of the variables in Set, sorted.
func (e Env) Names() []string { return slices.Sorted(maps.Keys(e.Set)) }

// WantsTools reports whether a recipe asks for something of the system, beyond the baseline.
func (r Recipe) WantsTools() bool {
	return r.OS.Base != "" || r.OS.Dockerfile != "" || len(r.OS.Packages) > 0 || len(r.Languages) > 0
}
