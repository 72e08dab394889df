package environment

import (
	"maps"
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
