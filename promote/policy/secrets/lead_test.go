package secrets

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// TestLead compares the matches of all rules that begin with a prefix to those of the whole expressions, in random texts of the parts
// from which such matches are made.
func TestLead(t *testing.T) {
	var f file
	if err := toml.Unmarshal(published, &f); err != nil {
		t.Fatal(err)
	}
	parts := []string{"_", "-", ".", "a", "Z", "9", "k", "\u212a", "\u017f", "é", "\xff", " ", "\t", "\n", "'", "\"", "`", "=", ":", "=>", ":=", "||", ",", ";", "\\n",
		"my_very.long-name", strings.Repeat("w", 30), "0123456789", "8b1f3c5d7e9a2b4c6d8e0f1a3b5c7d9e", "Pa55w0rdPa55w0rd1234"}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts each time
	rules, matches := 0, 0
	for _, rule := range f.Rules {
		fast := compile(rule.Regex)
		if fast == nil || !fast().led {
			continue
		}
		rules++
		whole := regexp.MustCompile(rule.Regex)
		words := append(rule.Keywords, parts...)
		for range 50 {
			var b strings.Builder
			for range 1 + r.IntN(40) {
				switch r.IntN(6) {
				case 0: // what the rule looks for: a name, an assignment and a value
					b.WriteString(words[r.IntN(len(rule.Keywords))] + []string{" = '", ": ", "=", "_id=\""}[r.IntN(4)] + random(r) + []string{"'", "\n", " ", "\""}[r.IntN(4)])
				case 1:
					b.WriteString(strings.ToUpper(words[r.IntN(len(words))]))
				default:
					b.WriteString(words[r.IntN(len(words))])
				}
			}
			text := []byte(b.String())
			got, want := fast().all(text), whole.FindAllSubmatchIndex(text, -1)
			if matches += len(want); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s in %q: %v, and the whole expression finds %v", rule.ID, text, got, want)
			}
		}
	}
	if rules < 50 || matches < 500 {
		t.Errorf("only %d rules and %d matches", rules, matches)
	}
	t.Logf("%d rules, %d matches", rules, matches)
}

// random returns characters of secrets, mostly of a usual kind and length.
func random(r *rand.Rand) string {
	from, n := "0123456789abcdef", []int{16, 20, 24, 32, 40, 48, 60, 64}[r.IntN(8)]
	switch r.IntN(4) {
	case 0:
		from = "abcdefghijklmnopqrstuvwxyz0123456789"
	case 1:
		from, n = "abcdefghijklmnopqrstuvwxyzABCDEF0123456789-_", 8+r.IntN(60)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}
