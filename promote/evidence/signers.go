package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// SignersFile is the name of the team's list of signers, beside the team's policy.
const SignersFile = "allowed_signers"

// SignersLimit bounds the size of such a list.
const SignersLimit = 1 << 20

// Signers are the people whose keys may sign, as a file of allowed signers lists them (ssh-keygen(1), ALLOWED SIGNERS).
type Signers []signer

type signer struct {
	principals    string
	key           string // in wire format
	after, before time.Time
}

// ParseSigners reads a file of allowed signers. A line that it cannot follow is an error, because the user would otherwise
// believe in a rule that nobody follows.
func ParseSigners(content []byte) (Signers, error) {
	list := Signers{}
	n := 0
	for line := range bytes.Lines(content) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		s, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if s != nil {
			list = append(list, *s)
		}
	}
	return list, nil
}

// parseSigner reads one line. It returns nil for a key that may not sign in our namespace.
func parseSigner(line []byte) (*signer, error) {
	principals, rest, ok := bytes.Cut(line, []byte(" "))
	if quoted, ok := bytes.CutPrefix(line, []byte(`"`)); ok {
		principals, rest, _ = bytes.Cut(quoted, []byte(`"`))
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace(rest))
	if !ok || err != nil {
		return nil, errors.New("want principals and a public key")
	}
	s := &signer{principals: string(principals), key: string(key.Marshal())}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			if !matchesAny(value, Namespace) {
				return nil, nil
			}
		case "valid-after":
			s.after, err = parseTime(value)
		case "valid-before":
			s.before, err = parseTime(value)
		default:
			err = fmt.Errorf("option %q is not supported", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// parseTime reads a time as ssh-keygen(1) has it: YYYYMMDD[HHMM[SS]], in local time unless a Z follows.
func parseTime(text string) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	zone := time.Local
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) == len(layout) {
			return time.ParseInLocation(layout, digits, zone)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", text)
}

// matchesAny reports whether a list of patterns, which are separated by commas, has one that matches. A "*" stands for any text.
func matchesAny(patterns, text string) bool {
	for p := range strings.SplitSeq(patterns, ",") {
		if matches(strings.TrimSpace(p), text) {
			return true
		}
	}
	return false
}

func matches(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, head)
	for ok {
		if matches(rest, text) {
			return true
		}
		if text == "" {
			break
		}
		text = text[1:]
	}
	return false
}

// Who returns the principals of a key that may sign at a time, empty if it may not.
func (list Signers) Who(key ssh.PublicKey, at time.Time) string {
	wire := string(key.Marshal())
	for _, s := range list {
		if s.key == wire && (s.after.IsZero() || !at.Before(s.after)) && (s.before.IsZero() || at.Before(s.before)) {
			return s.principals
		}
	}
	return ""
}
