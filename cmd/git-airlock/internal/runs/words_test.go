package runs

import (
	"strings"
	"testing"
)

// TestMaskedWords checks that no secret of a command line is left, and that the command line itself stays as it is.
func TestMaskedWords(t *testing.T) {
	secret := "q8Zt2" + "LmN9pR4sT6vW8yX1aB3c"
	for _, words := range [][]string{
		{"tool", "--api-key", secret}, {"tool", "--api-key=" + secret}, {"tool", "--password", secret}, {"env", "SECRET_KEY=" + secret, "make"},
		{"sh", "-c", "export GITHUB_TOKEN=" + secret + "; make"}, {"tool", "-token", secret, "\xff"},
	} {
		before := strings.Join(words, " ")
		if got := strings.Join(maskedWords(words), " "); strings.Contains(got, "q8Zt2") || !strings.HasPrefix(got, words[0]+" ") {
			t.Errorf("%q: %q", words, got)
		}
		if after := strings.Join(words, " "); after != before {
			t.Errorf("%q became %q", before, after)
		}
	}
	if got := maskedWords([]string{"a\xffb", "c"}); got[0] != "a\uFFFDb" || got[1] != "c" {
		t.Errorf("%q", got)
	}
}

// TestGrowth checks that what is not known stays unknown.
func TestGrowth(t *testing.T) {
	for _, c := range [][3]int64{{7, 5, 2}, {5, 5, 0}, {-1, 5, -1}, {5, -1, -1}, {-1, -1, -1}} {
		if got := growth(c[0], c[1]); got != c[2] {
			t.Errorf("from %d to %d: %d, want %d", c[1], c[0], got, c[2])
		}
	}
}
