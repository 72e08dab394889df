package environment

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseDotenv(t *testing.T) {
	for content, want := range map[string]map[string]string{
		"A=1\nexport B = two words # said\r\nC=a#b\n": {"A": "1", "B": "two words", "C": "a#b"},
		"A='a\nb' # said\nB=2":                        {"A": "a\nb", "B": "2"},
		"K=\"-----BEGIN\r\nx=\\\"\n-----END\"\nB=2\n": {"K": "-----BEGIN\nx=\"\n-----END", "B": "2"},
		"A='open\nB=2\n":                              {"A": "'open", "B": "2"},
		"A=\"open \\\nB=2\n":                          {"A": "\"open \\", "B": "2"},
		"A=\nB=\n\nnothing\n=x\n1=2\nC= ''\nD=":       {"A": "", "B": "", "C": "", "D": ""},
		`A="\n\t\$\q"`:                                {"A": "\n\t$\\q"},
	} {
		if got := parseDotenv(content); !maps.Equal(got, want) {
			t.Errorf("%q: %q, not %q", content, got, want)
		}
	}
}

// TestLongDotenv checks that a file is not read in part, which could leave half of a value.
func TestLongDotenv(t *testing.T) {
	top := t.TempDir()
	content := "A=1\nB=" + strings.Repeat("x", maxDotenv)
	for size, fits := range map[int]bool{maxDotenv: true, maxDotenv + 1: false} {
		if err := os.WriteFile(filepath.Join(top, DotenvName), []byte(content[:size]), 0o600); err != nil {
			t.Fatal(err)
		}
		vars, err := Dotenv(top)
		if fits && (err != nil || len(vars["B"]) != maxDotenv-6) || !fits && (err == nil || vars != nil) {
			t.Errorf("%d bytes: %d variables, %v", size, len(vars), err)
		}
	}
}
