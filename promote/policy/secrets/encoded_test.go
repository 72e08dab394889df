package secrets

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for literal, want := range map[string]string{
		"c29tZSB3b3Jkcw":         "some words",
		"Pz8/Pj4+fn5+":           "???>>>~~~",
		"Pz8_Pj4-fn5-":           "???>>>~~~",
		"c29tZSB3b3\r\n  Jkcw":   "some words",
		"c2lt\nw7xsYXRpb24":      "simülation",
		"getElementsByClassName": "",
		"AAAAAAAAAAAAAAAAAAAAAA": "",
		"w7w/w7w/w7w/w7w/w7w/ww": "",
	} {
		if got := string(decode([]byte(literal))); got != want {
			t.Errorf("%q: %q, want %q", literal, got, want)
		}
	}
}

// BenchmarkEncoded searches a text that is one literal, and one whose lines all seem to continue. Their time must not
// be quadratic.
func BenchmarkEncoded(b *testing.B) {
	line := base64.StdEncoding.EncodeToString([]byte("words that are no secret to anybody who reads them here"))
	for name, text := range map[string][]byte{
		"one":    bytes.Repeat([]byte(strings.TrimRight(line, "=")), 1<<14),
		"lines":  bytes.Repeat([]byte(line+"\n"), 1<<14),
		"source": bytes.Repeat([]byte("func (t *Thing) getElementsByClassName(access string) error { return t.token(access) }\n"), 1<<13),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Default().encoded(search{path: "a.txt", text: text})
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, url bool) {
		encoding := base64.RawStdEncoding
		if url {
			encoding = base64.RawURLEncoding
		}
		if plain := decode([]byte(encoding.EncodeToString(text))); plain != nil && !bytes.Equal(plain, text) {
			t.Errorf("%q became %q", text, plain)
		}
		for _, m := range Default().encoded(search{path: "a", text: text}) {
			if m.Line < 1 || m.Line > 1+bytes.Count(text, []byte("\n")) {
				t.Errorf("%+v", m)
			}
		}
	})
}

// TestLiteralsNearPart checks that near a part of a text, the same literals are found as in the whole text.
func TestLiteralsNearPart(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 16))
	for range 20 * *cases {
		var text []byte
		var starts []int
		for range 2 + random.IntN(8) {
			starts = append(starts, len(text))
			text = append(text, strings.Repeat(" ", random.IntN(2))...)
			text = append(text, strings.Repeat("QUJD", random.IntN(20))...)
			text = append(text, []string{"", ".", " x", "=="}[random.IntN(4)]...)
			text = append(text, []string{"\n", "\n", "\r\n", "\n\n"}[random.IntN(4)]...)
		}
		from := starts[random.IntN(len(starts))]
		near := Part{from, from + random.IntN(len(text)-from+1)}
		begun := func(parts []Part) (all []string) {
			for at, literal := range literals(text, parts) {
				if near.From <= at && at < near.To {
					all = append(all, fmt.Sprint(at, len(literal)))
				}
			}
			return all
		}
		if got, want := begun([]Part{near}), begun(nil); !slices.Equal(got, want) {
			t.Fatalf("%q near %v: %q, want %q", text, near, got, want)
		}
	}
}
