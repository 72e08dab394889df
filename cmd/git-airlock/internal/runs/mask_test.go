package runs

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/git-airlock/git-airlock/prison/passed"
	"github.com/git-airlock/git-airlock/promote/record"
)

// TestKeyBetweenParts moves a private key over the end of a part that is searched at once.
func TestKeyBetweenParts(t *testing.T) {
	const body = "MIIEpAIBAAKCAQEA0zxTheBodyOfTheKey"
	key := "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat(body+"\n", 8) + "-----END RSA " + "PRIVATE KEY-----\n"
	for _, before := range []int{maskPart - len(key) - 10, maskPart - len(key)/2, maskPart - 40, maskPart, 3*maskPart - 100} {
		filler := strings.Repeat("an ordinary line of output\n", before/27)
		out, lines := maskedText([]byte(filler+key+filler), passed.Values{})
		if bytes.Contains(out, []byte(body)) || lines != 10 {
			t.Errorf("%d bytes before the key: %d lines are masked", before, lines)
		}
		if rest := bytes.ReplaceAll(out, []byte(masked+"\n"), nil); string(rest) != filler+filler {
			t.Errorf("%d bytes before the key: other lines have changed", before)
		}
	}
}

// TestLongLine hides the part of a line around a secret, wherever it is.
func TestLongLine(t *testing.T) {
	secret := "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
	for _, before := range []int{0, maskOverlap - 20, maskPart - 20, maskPart + 1} {
		line := strings.Repeat("x ", before/2) + secret + strings.Repeat(" y", maskPart)
		out, lines := maskedText([]byte(line+"\nnext\n"), passed.Values{})
		if bytes.Contains(out, []byte(secret[10:])) || lines == 0 || !bytes.HasSuffix(out, []byte("\nnext\n")) {
			t.Errorf("%d bytes before the secret: %d lines are masked", before, lines)
		}
	}
}

// TestValuesInOutput masks the value of a variable alone, also where a terminal shows it in two pieces and two lines.
func TestValuesInOutput(t *testing.T) {
	var values passed.Values
	values.Learn([]string{"first-half\nsecond-half"})
	out, lines := maskedText([]byte("a first-half\nsecond-half b\n"+strings.Repeat("x", maskOverlap-5)+"first-halfsecond-half\nc\n"), values)
	if want := "a ***\n*** b\n" + strings.Repeat("x", maskOverlap-5) + "******\nc\n"; string(out) != want || lines != 3 {
		t.Errorf("%d lines, %.80q", lines, bytes.ReplaceAll(out, []byte("xx"), nil))
	}
	events, lines := maskedEvents([]record.CastEvent{{Text: "a first-h"}, {At: 1, Text: "alf\r\nsecond"}, {At: 2, Text: "-half b\r\nc"}}, values)
	var shown []string
	for _, e := range events {
		shown = append(shown, e.Text)
	}
	if want := []string{"a ***\r\n", "*** b\r\n", "c"}; !slices.Equal(shown, want) || lines != 2 {
		t.Errorf("%d lines, %q, want %q", lines, shown, want)
	}
}
