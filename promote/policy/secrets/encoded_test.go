package secrets

import (
	"bytes"
	"encoding/base64"
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

// What takes time must not take it twice: a text that is one literal, and one of many lines that seem to go on.
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
