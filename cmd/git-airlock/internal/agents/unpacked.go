package agents

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// Unpacked describes a folder in the user's cache into which a program unpacks the rest of itself at its first start, and which has
// nothing else. The zero value is that of a program that unpacks nothing.
type Unpacked struct {
	Folder   string // relative to the cache; it can contain versionMark and archMark
	Mark     string // a file that is in the folder once it is complete
	Variable string // the variable from which the program takes the path of the folder
}

// versionMark and archMark stand for the version of a program's package, and for Node's name of the processor.
const versionMark, archMark = "@VERSION@", "@ARCH@"

// WithUnpacked adds what a program has unpacked in the user's cache to what a prison shares. It adds nothing if the program has not
// unpacked exactly this version, or if not everybody can read it: the agent is another user.
func (f Found) WithUnpacked(p Profile, cache string) Found {
	if p.Unpacked.Folder == "" || strings.Trim(f.Version, ".") == "" || strings.ContainsAny(f.Version, "/:\n") {
		return f
	}
	cache, err := filepath.EvalSymlinks(cache)
	if err != nil {
		return f
	}
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	at := filepath.Join(cache, strings.NewReplacer(versionMark, f.Version, archMark, arch).Replace(p.Unpacked.Folder))
	info, err := os.Lstat(at)
	if err != nil || !info.IsDir() || info.Mode()&0o005 != 0o005 {
		return f
	}
	if _, err := os.Lstat(filepath.Join(at, p.Unpacked.Mark)); err != nil {
		return f
	}
	f.Tools = append(slices.Clone(f.Tools), prison.Tool{Name: p.Name + "-" + f.Version, Path: at, Optional: true})
	return f
}

// Env returns the variables of an agent in a prison. has reports whether the prison shares a tool.
func (f Found) Env(p Profile, has func(prison.Tool) bool) []string {
	for _, t := range f.Tools {
		if t.Optional && has(t) {
			return append(slices.Clone(p.Env), p.Unpacked.Variable+"="+prison.Tools+"/"+t.Name)
		}
	}
	return p.Env
}
