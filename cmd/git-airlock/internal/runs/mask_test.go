package runs

import (
	"bytes"
	"strings"
	"testing"
)

// TestKeyBetweenParts moves a private key over the end of a part that is searched at once.
func TestKeyBetweenParts(t *testing.T) {
	const body = "MIIEpAIBAAKCAQEA0zxTheBodyOfTheKey"
	key := "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat(body+"\n", 8) + "-----END RSA " + "PRIVATE KEY-----\n"
	for _, before := range []int{maskPart - len(key) - 10, maskPart - len(key)/2, maskPart - 40, maskPart, 3*maskPart - 100} {
		filler := strings.Repeat("an ordinary line of output\n", before/27)
		out, lines := maskedText([]byte(filler + key + filler))
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
		out, lines := maskedText([]byte(line + "\nnext\n"))
		if bytes.Contains(out, []byte(secret[10:])) || lines == 0 || !bytes.HasSuffix(out, []byte("\nnext\n")) {
			t.Errorf("%d bytes before the secret: %d lines are masked", before, lines)
		}
	}
}
