package runs

import (
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/passed"

	"github.com/git-airlock/git-airlock/promote/record"
)

// TestMaskedWords checks that no secret of a command line is left, and that the command line itself stays as it is.
func TestMaskedWords(t *testing.T) {
	secret := "q8Zt2" + "LmN9pR4sT6vW8yX1aB3c"
	for _, words := range [][]string{
		{"tool", "--api-key", secret}, {"tool", "--api-key=" + secret}, {"tool", "--password", secret}, {"env", "SECRET_KEY=" + secret, "make"},
		{"sh", "-c", "export GITHUB_TOKEN=" + secret + "; make"}, {"tool", "-token", secret, "\xff"},
	} {
		before := strings.Join(words, " ")
		if got := strings.Join(maskedWords(words, passed.Values{}), " "); strings.Contains(got, "q8Zt2") || !strings.HasPrefix(got, words[0]+" ") {
			t.Errorf("%q: %q", words, got)
		}
		if after := strings.Join(words, " "); after != before {
			t.Errorf("%q became %q", before, after)
		}
	}
	if got := maskedWords([]string{"a\xffb", "c"}, passed.Values{}); got[0] != "a\uFFFDb" || got[1] != "c" {
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

// TestGrown reads measurements that were written late, and one that lacks the times of processes that were ending.
func TestGrown(t *testing.T) {
	got, killed := grown("1000 50 7 -1 3 2 1\n3000 350 8 -1 5 3 3\n1500 60 9 -1 3 4 1\nhalf a li\n4000 340 6 -1 5 1 3\n")
	want := []record.Sample{
		{Millis: 1000, Memory: 7, Read: -1, Processes: 2},
		{Millis: 1500, CPU: 10, Memory: 9, Read: -1, Processes: 4},
		{Millis: 3000, CPU: 300, Memory: 8, Read: -1, Written: 2, Processes: 3},
		{Millis: 4000, CPU: 300, Memory: 6, Read: -1, Written: 2, Processes: 1},
	}
	if !slices.Equal(got, want) || killed != 2 {
		t.Errorf("%+v, killed %d; want %+v", got, killed, want)
	}
	if got, _ := grown("1000 -1 7 -1 3 2 1\n1001 -1 7 -1 3 2 1\n"); got[1].CPU != -1 {
		t.Errorf("%+v", got)
	}
}
