package secrets

import (
	"slices"
	"strings"
	"testing"
)

// token returns a key with a form of its own that no file of this repository contains.
func token() string { return "gh" + "p_" + "x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gHjKlM" }

func TestMask(t *testing.T) {
	token := token()
	for _, c := range []struct{ words, want []string }{
		{[]string{"git", "status"}, []string{"git", "status"}},
		{[]string{"curl", "-H", "Authorization: Bearer " + token, "https://example.org"}, []string{"curl", "-H", "Authorization: Bearer ***", "https://example.org"}},
		{[]string{"sh", "-c", "export A=" + token + "; make"}, []string{"sh", "-c", "export A=***; make"}},
		{[]string{token, token}, []string{"***", "***"}},
		{[]string{"", "\n" + token + "\n", ""}, []string{"", "\n***\n", ""}},
	} {
		if got := Default().Mask(c.words); !slices.Equal(got, c.want) {
			t.Errorf("Mask(%q) = %q, want %q", c.words, got, c.want)
		}
	}
}

// TestMaskReadsWordBefore checks that a secret is found by the word before it.
func TestMaskReadsWordBefore(t *testing.T) {
	got := Default().Mask([]string{"tool", "--api-key=" + "q8Zt2LmN9pR4sT6vW8yX", "--api_key", "=", "k3Yv7Bn1Qw5Er9Tz2Ui4",
		"--password", "m7Xv3Bn1Qw5Er9Tz2Ui4", "-token", "m7Xv3Kn1Qw5Er9Tz2Ui4"})
	for _, w := range got {
		if strings.Contains(w, "q8Zt2") || strings.Contains(w, "k3Yv7") || strings.Contains(w, "m7Xv3") {
			t.Errorf("not masked: %q", got)
		}
	}
}

// TestMaskMany checks that no secret of a line with very many is left.
func TestMaskMany(t *testing.T) {
	words := make([]string, 300)
	for i := range words {
		words[i] = token()
	}
	for i, w := range Default().Mask(words) {
		if strings.Contains(w, "x7Kq2") {
			t.Fatalf("word %d is %q", i, w)
		}
	}
}

// FuzzMask checks that masking twice changes nothing more, and that no byte outside of the secrets changes.
func FuzzMask(f *testing.F) {
	f.Add("curl\x00-u\x00user:" + token())
	f.Add("x=" + token() + "\x00" + token())
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "*") {
			t.Skip("stars of its own")
		}
		words := strings.Split(line, "\x00")
		got := Default().Mask(words)
		if len(got) != len(words) {
			t.Fatalf("%d words of %d", len(got), len(words))
		}
		for i, w := range got {
			parts := strings.Split(w, masked)
			if !strings.HasPrefix(words[i], parts[0]) || !strings.HasSuffix(words[i], parts[len(parts)-1]) {
				t.Errorf("%q became %q", words[i], w)
			}
		}
	})
}

func BenchmarkMask(b *testing.B) {
	words := []string{"git", "commit", "-q", "-m", "parser: accept an empty list", "--", "src/parser.go"}
	for b.Loop() {
		Default().Mask(words)
	}
}
