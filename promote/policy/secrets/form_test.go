package secrets

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestForms(t *testing.T) {
	known := 0
	for _, r := range Default().rules {
		if a := r.value(); a != nil && a.form != nil {
			known++
		}
	}
	if known < 95 {
		t.Errorf("the form of values is known for %d rules only", known)
	}
	generic := ruleOf(t, "generic-api-key").value()
	for text, want := range map[string]bool{
		`8b1f3c5d7e9a2b4c"`:   true,
		`8b1f3c5d7e9a2b4c\n"`: true,
		`8b1f3c5d7e9a2b4c`:    true,
		`strings.Cut9(line)`:  false, // a bracket follows
		`aaaaaaaaaaaaaaa1"`:   false, // too many equal characters
		`x1y2z3"`:             false, // too short
	} {
		v := valueAt([]byte(text), 0)
		if got := generic.fits([]byte(text), v, nil); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

var cases = flag.Int("cases", 1000, "how many random texts are searched")

// formless returns the detector without the forms of values.
func formless() *Detector {
	d := *Default()
	d.rules = nil
	for _, r := range Default().rules {
		same := *r
		if a := r.value(); a != nil {
			other := *a
			other.form, other.entropy = nil, 0
			same.value = func() *assigned { return &other }
		}
		d.rules = append(d.rules, &same)
	}
	return &d
}

// TestFormsChangeNothing searches random texts, made of parts that rules match. The results with forms must be the
// same as with the expressions alone.
func TestFormsChangeNothing(t *testing.T) {
	slow, random := formless(), rand.New(rand.NewPCG(17, 16))
	for range *cases {
		var text strings.Builder
		for range 1 + random.IntN(12) {
			text.WriteString(piece(random))
		}
		content := []byte(text.String())
		from := random.IntN(len(content) + 1)
		near := []Part{{from, from + random.IntN(len(content)-from+1)}}
		for name, find := range map[string]func(*Detector) []Match{
			"all":  func(d *Detector) []Match { return d.Find("a.yaml", content) },
			"near": func(d *Detector) []Match { return d.FindNear("a.yaml", content, near, nil) },
		} {
			if fast, all := find(Default()), find(slow); !slices.Equal(fast, all) && (name == "all" || len(fast) > len(all)) {
				t.Fatalf("%s, of %q: found %+v, want %+v", name, content, fast, all)
			}
		}
	}
}

// piece returns a part of a line: a name, an assignment, a value, or text between these.
func piece(random *rand.Rand) string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	value := func(letters string) string {
		out := make([]byte, random.IntN(45))
		for i := range out {
			out[i] = letters[random.IntN(len(letters))]
		}
		return string(out)
	}
	name := pick("key", "token", "api_key", "password", "secret", "access", "auth", "adafruit", "beamer", "dropbox", "lob", "sonar", "facebook", "heroku")
	assign := pick("=", ": ", ":=", " := ", "=>", ",", ">", " ? = ", "||", "==", ":::=")
	quote := pick("", "\"", "'", "`", " ", "\n", "   ", "'\"`\"'", "(")
	secret := pick(value("0123456789abcdef"), value("abcdefghijklmnopqrstuvwxyz0123456789"), value("aA1_.=-+/"), value("ab"), "live_"+value("abcdef0123456789"), value("abc\u017f\xff=="))
	end := pick("\"", "'", " ", "\n", ";", "\\n", "\\r", "\\x", "(", ",", ")", "", "\"", "\n", "',")
	switch random.IntN(8) {
	case 0:
		return name
	case 1:
		return assign
	case 2:
		return secret
	case 3:
		return end
	}
	return fmt.Sprint(name, assign, quote, secret, end)
}
