// Package registries serves one package in the way of each public registry, for the programs that fetch from them.
//
// The servers have the registries' own names, paths and forms. Every program must reach the same hosts as it would with the real
// registry, in the same order, and check the same digests.
package registries

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
)

// files are the answers to requests, by their paths.
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

// Handlers returns a handler for each host. Repositories of git are served from a folder: the name of their owner has no meaning.
func Handlers(repositories string) map[string]http.Handler {
	all := map[string]http.Handler{"github.com": github{repositories}}
	for _, registry := range []map[string]files{npm(), pypi(), golang(), crates(), debian(), maven(), githubFiles()} {
		for host, answers := range registry {
			all[host] = answers
		}
	}
	return all
}

// Hosts returns the names of all hosts.
func Hosts() []string {
	var names []string
	for name := range Handlers("") {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
