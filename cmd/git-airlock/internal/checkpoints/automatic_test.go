package checkpoints

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTextHasNoSecret checks the text of checkpoints, which the daemon's log gets too if there is none.
func TestTextHasNoSecret(t *testing.T) {
	secret := "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
	if got := text("after", []string{"agent", "--api-key", secret}); strings.Contains(got, secret) || !strings.HasPrefix(got, "after agent --api-key ") {
		t.Error(got)
	}
	if got := text("after", []string{"x" + strings.Repeat("\u00e4", longestCommand)}); !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
	if got := text("after", nil); got != "after" {
		t.Error(got)
	}
}
