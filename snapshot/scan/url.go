package scan

import (
	"bytes"
	"regexp"
	"slices"
	"sync"
)

// urlPassword matches the password of a URL in the text after the scheme.
var urlPassword = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[^\s:/@"'<>{}$%|()\\]{0,100}:([^\s:/@"'<>{}|()\\]{6,100})@[A-Za-z0-9\[]`)
})

// urlReach is how many bytes after the scheme a password is searched.
const urlReach = 256

// passwordsInURLs finds passwords in URLs, such as those of databases, which the detector's rules do not cover. URLs
// in documentation have passwords as well, so that a match is only a guess.
func passwordsInURLs(path string, as role, text []byte) (found []Finding) {
	scheme := []byte("://")
	for from, line := 0, 1; len(found) < ownLimit; {
		i := bytes.Index(text[from:], scheme)
		if i < 0 {
			return found
		}
		line += bytes.Count(text[from:from+i], []byte("\n"))
		from += i + len(scheme)
		rest := text[from:min(len(text), from+urlReach)]
		if m := urlPassword().FindSubmatch(rest); m != nil && random(m[1]) && !placeholder(string(m[1])) {
			found = append(found, Finding{Path: path, Line: line, Rule: "url-password", Severity: as.severity(true), Reason: "a password in an address" + as.where(), guess: true})
		}
	}
	return found
}

// random reports whether a value looks random: letters and digits, most of them different.
func random(value []byte) bool {
	letters := bytes.ContainsAny(bytes.ToLower(value), "abcdefghijklmnopqrstuvwxyz")
	different := slices.Clone(value)
	slices.Sort(different)
	return letters && bytes.ContainsAny(value, "0123456789") && len(slices.Compact(different)) >= 7
}
