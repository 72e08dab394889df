package recipe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/recipe"
)

func TestIgnored(t *testing.T) {
	for text, want := range map[string]map[string]bool{
		"":                                {"a": false},
		"# a\n\n  \n":                     {"a": false, "# a": false},
		"\ufeff/secret\r\n":               {"secret": true, "a/secret": false, "secret/deep/er": true},
		"*.pem\n**/.env*\n":               {"a.pem": true, "a/b.pem": false, ".env": true, "x/y/.env.local": true, "x/env": false},
		"*\n!src\n!README.md":             {"a": true, "src/a/b": false, "README.md": false, ".dockerignore": true},
		"src/**\n!src/keep\nsrc/keep/key": {"src/a": true, "src/keep/b": false, "src/keep/key": true},
		"../../etc\n/../x":                {"etc": false, "x": true},
		"a[b-d]?\nw\\*":                   {"abx": true, "aex": false, "w*": true, "wx": false},
		"*":                               {"anything/at/all": true},
		"a(b|c)+$":                        {"ab": false, "a(b|c)+$": true},
	} {
		ignored, err := recipe.ParseIgnored(".dockerignore", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for file, want := range want {
			if got, err := ignored.Has(file); got != want || err != nil {
				t.Errorf("%q: %s is kept out: %v, %v", text, file, got, err)
			}
		}
	}
	if out, err := (recipe.Ignored{}).Has("a"); out || err != nil {
		t.Errorf("nothing keeps a file out: %v", err)
	}
}

// TestIgnoredRefuses checks the errors about patterns that are wrong, or too long, or too many.
func TestIgnoredRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"ok\n[":                      `x/.dockerignore: "[" is not a pattern`,
		"!":                          `x/.dockerignore: "!" is not a pattern`,
		"*\n![b-a]":                  `x/.dockerignore: "![b-a]" is not a pattern`,
		"a\x1b[31m[":                 `x/.dockerignore: "a\x1b[31m[" is not a pattern`,
		strings.Repeat("a", 5000):    "x/.dockerignore: a pattern has more than 4096 bytes",
		strings.Repeat("a", 1<<17):   "x/.dockerignore: bufio.Scanner: token too long",
		strings.Repeat("a\n", 1001):  "x/.dockerignore: 1001 patterns are more than 1000",
		strings.Repeat("a\n", 1<<20): "x/.dockerignore: 2097152 bytes are more than 1048576",
	} {
		_, err := recipe.ParseIgnored("x/.dockerignore", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// TestIgnoredEnds checks the longest lists that are allowed, with patterns for which a backtracking matcher takes
// exponential time: it would run until go test ends it.
func TestIgnoredEnds(t *testing.T) {
	var text strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&text, "%s%d\n", strings.Repeat("**/a*", 20), n)
	}
	ignored, err := recipe.ParseIgnored(".dockerignore", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	file := strings.Repeat("a/", 40) + strings.Repeat("a", 200)
	if out, err := ignored.Has(file); out || err != nil {
		t.Errorf("kept out: %v, %v", out, err)
	}
}

func FuzzIgnored(f *testing.F) {
	f.Add("*\n!a/**\n[a-z]\\", "a/b")
	f.Fuzz(func(t *testing.T, text, file string) {
		ignored, err := recipe.ParseIgnored(".dockerignore", []byte(text))
		if err != nil {
			return
		}
		if _, err := ignored.Has(file); err != nil {
			t.Errorf("%q was read, and then %v", text, err)
		}
	})
}
