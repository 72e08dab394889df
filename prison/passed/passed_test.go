package passed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestForms checks that a value is hidden in each form, anywhere in a text, and that nothing else is hidden.
func TestForms(t *testing.T) {
	const value = `zebra's "4477" <a&b> 100%/$x\y+z`
	var v Values
	if !v.Learn([]string{value, "true", "/usr/bin:/bin"}) || v.Learn([]string{value}) {
		t.Error("a value is learned once")
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": value, "JSON": string(quoted), "query": url.QueryEscape(value), "path": url.PathEscape(value),
		"single quotes": `'` + strings.ReplaceAll(value, "'", `'\''`) + `'`,
		"double quotes": `"zebra's \"4477\" <a&b> 100%/\$x\\y+z"`,
		"base64":        base64.StdEncoding.EncodeToString([]byte(value)),
		"base64, later": base64.StdEncoding.EncodeToString([]byte("a b" + value)),
		"base64 of URL": base64.URLEncoding.EncodeToString([]byte("ab" + value + "c")),
		"in two lines":  value[:9] + "\r\n" + value[9:],
	} {
		got := v.Text("true " + text + " /usr/bin:/bin\n")
		if !strings.Contains(got, Mask) || strings.Contains(got, "4477") || !strings.HasPrefix(got, "true ") || !strings.HasSuffix(got, " /usr/bin:/bin\n") ||
			len(got) > len("true  /usr/bin:/bin\n")+12 {
			t.Errorf("%s: %q", name, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n")+1 {
			t.Errorf("%s: a line end is lost: %q", name, got)
		}
	}
}

// TestFind compares Find with a search for the values themselves.
func TestFind(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		letters := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = "aab\n"[random.IntN(4)]
			}
			return string(b)
		}
		values := []string{"a" + letters(7+random.IntN(6)), "b" + letters(7+random.IntN(3))}
		var v Values
		v.Learn(values)
		text := letters(random.IntN(400))
		var want []Span
		joined := string(withoutLineEnds([]byte(text)))
		for _, value := range values {
			value = string(withoutLineEnds([]byte(value)))
			for at := range joined {
				if len(value) >= shortest && strings.HasPrefix(joined[at:], value) {
					want = append(want, Span{at, at + len(value)})
				}
			}
		}
		want = within([]byte(text), merged(want))
		got := v.Find([]byte(text))
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v", values, text, got, want)
		}
		// Covering in parts must give the same text as covering at once, except that each part begins its own mask.
		whole, parts := Cover(nil, []byte(text), 0, got), []byte(nil)
		for at := 0; at < len(text); at += 7 {
			parts = Cover(parts, []byte(text[at:min(at+7, len(text))]), at, got)
		}
		for bytes.Contains(parts, []byte("****")) {
			parts = bytes.ReplaceAll(parts, []byte("****"), []byte("***"))
		}
		for bytes.Contains(whole, []byte("****")) {
			whole = bytes.ReplaceAll(whole, []byte("****"), []byte("***"))
		}
		if !bytes.Equal(whole, parts) || bytes.Count(whole, []byte("\n")) != strings.Count(text, "\n") {
			t.Fatalf("%q in %q: %q, in parts %q", values, text, whole, parts)
		}
	}
}

// TestValuesAreNotKept checks that the stored form contains no value.
func TestValuesAreNotKept(t *testing.T) {
	var v, again Values
	v.Learn([]string{"plainvaluezebra4477"})
	content, err := json.Marshal(v)
	if err != nil || json.Unmarshal(content, &again) != nil || bytes.Contains(content, []byte("zebra")) {
		t.Fatalf("%s, %v", content, err)
	}
	if got := again.Words([]string{"--key=plainvaluezebra4477", "b"}); !slices.Equal(got, []string{"--key=***", "b"}) {
		t.Errorf("%q", got)
	}
	for i := range 500 {
		v.Learn([]string{fmt.Sprintf("another value %d", i)})
	}
	if len(v.Forms) > maxForms || v.Text("another value 499") != Mask {
		t.Errorf("%d forms", len(v.Forms))
	}
}

func BenchmarkFind(b *testing.B) {
	var v Values
	v.Learn([]string{"plainvaluezebra4477", "inlinezebra8899"})
	text := bytes.Repeat([]byte("an ordinary line of output\n"), 40_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		v.Find(text)
	}
}
