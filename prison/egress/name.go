package egress

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/git-airlock/git-airlock/words"
)

const (
	maxName  = 253 // RFC 1035, without the last dot
	maxLabel = 63
)

// profile converts a name to the form that look-ups use (UTS #46). It allows underscores, which many host names have.
var profile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// errAddress reports an address in a place that needs a name.
var errAddress = errors.New("an address is not a name")

// Canonical returns the one form of a host name that rules and look-ups use: lower case, ASCII (Punycode), no dot at the end. It refuses a
// text that is not a host name, or that programs take for an address ("127.1", "0x7f000001", "::1").
func Canonical(name string) (string, error) {
	if !utf8.ValidString(name) {
		return "", fmt.Errorf("name %q: not UTF-8", clip(name))
	}
	ascii, err := profile.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil {
		return "", fmt.Errorf("name %q: %w", clip(name), err)
	}
	if err := checkName(ascii); err != nil {
		return "", fmt.Errorf("name %q: %w", clip(name), err)
	}
	return ascii, nil
}

// checkName refuses a name that is not canonical. It does not decode Punycode.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("longer than %d bytes", maxName)
	}
	last := ""
	for last = range strings.SplitSeq(name, ".") {
		if !isLabel(last) {
			return errors.New("not a host name")
		}
	}
	if isNumber(last) {
		return errAddress
	}
	return nil
}

// isLoopback reports whether a name means the machine that looks it up (RFC 6761).
func isLoopback(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func isLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// isNumber reports whether inet_aton(3) would take the last part of a name for a part of an address.
func isNumber(label string) bool {
	digits, base := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, base = hex, "0123456789abcdef"
	}
	return strings.Trim(digits, base) == ""
}

// clip shortens a text from inside for messages.
func clip(text string) string { return words.Clip(text, 80) }
