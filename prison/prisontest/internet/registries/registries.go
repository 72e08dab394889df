// Package registries imitates the public registries of packages, each with one package, for the programs that fetch from them.
//
// The servers have the names, paths and formats of the real registries. With them, every program must reach the same hosts in the same
// order as with the real registry, and check the same digests. Begin reading at [Handlers].
package registries

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
)

// files are answers to requests, by path.
type files map[string]string

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/") {
		w.Header().Set("Content-Type", "text/html")
	}
	http.ServeContent(w, r, filepath.Base(r.URL.Path), made, strings.NewReader(content))
}

// Handlers returns a handler for each host. Git repositories are served from the folder repositories, under any owner.
func Handlers(repositories string) map[string]http.Handler {
	all := map[string]http.Handler{"github.com": github{repositories}}
	for _, registry := range []map[string]files{npm(), pypi(), golang(), crates(), debian(), maven(), githubFiles()} {
		for host, answers := range registry {
			all[host] = answers
		}
	}
	return all
}

// Hosts returns the names of all hosts, sorted.
func Hosts() []string { return slices.Sorted(maps.Keys(Handlers(""))) }
