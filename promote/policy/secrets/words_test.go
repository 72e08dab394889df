package secrets

import (
	"bytes"
	"testing"
)

func wordsOf(list ...string) *words {
	b := newWordsBuilder()
	for n, w := range list {
		b.add(w, n)
	}
	return b.build()
}

// in returns the words that are in a text.
func (w *words) in(text string) map[int]bool {
	found := map[int]bool{}
	w.each([]byte(text), func(n, end int) { found[n] = end <= len(text) })
	return found
}

func TestWords(t *testing.T) {
	list := []string{"he", "she", "his", "hers", "key", "ey", "-----BEGIN"}
	w := wordsOf(list...)
	for text, want := range map[string]string{
		"":                      "",
		"ushers":                "he she hers",
		"HIS":                   "his",
		"monkeys":               "key ey",
		"h e":                   "",
		"------begin RSA":       "-----BEGIN",
		"shis":                  "his",
		"\xff\x00he\xff":        "he",
		"ke-y-----BEGI-----NEY": "ey",
	} {
		var got []byte
		found := w.in(text)
		for n, word := range list {
			if found[n] {
				got = append(append(got, word...), ' ')
			}
		}
		if string(bytes.TrimSpace(got)) != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
		if w.any([]byte(text)) != (want != "") {
			t.Errorf("%q: any says %t", text, want == "")
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("he", "she", "ushers")
	f.Add("aab", "ab", "aaab")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		if a == "" || b == "" {
			t.Skip("an empty word is none")
		}
		lowered := func(s string) []byte {
			out := []byte(s)
			for i := range out {
				out[i] = lower(out[i])
			}
			return out
		}
		found := wordsOf(a, b).in(text)
		for n, word := range []string{a, b} {
			if want := bytes.Contains(lowered(text), lowered(word)); found[n] != want {
				t.Errorf("%q in %q: %t, want %t", word, text, found[n], want)
			}
		}
	})
}
