package evidence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-airlock/git-airlock/words"

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
	namespaces    string // patterns
	after, before time.Time
}

// ParseSigners reads a file of allowed signers. A line with a rule that this program does not support is an error, because the user would
// otherwise believe that the rule is applied.
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
		list = append(list, s)
	}
	return list, nil
}

// parseSigner reads one line.
func parseSigner(line []byte) (s signer, err error) {
	end := bytes.IndexAny(line, " \t\"")
	rest := line[max(end, 0):]
	if quoted, ok := bytes.CutPrefix(line, []byte(`"`)); ok {
		end = bytes.IndexByte(quoted, '"')
		line, rest = quoted, quoted[end+1:]
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace(rest))
	if end < 0 || err != nil {
		return s, errors.New("want principals and a public key")
	}
	s = signer{principals: string(line[:end]), key: string(key.Marshal()), namespaces: "*"}
	seen := map[string]bool{}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		name = strings.ToLower(name)
		value, ok := unquote(value)
		switch {
		case !slices.Contains([]string{"namespaces", "valid-after", "valid-before"}, name):
			err = fmt.Errorf("option %q is not supported", name)
		case !ok || seen[name]:
			err = fmt.Errorf("want %s once, and its value in quotes", name)
		case name == "namespaces":
			s.namespaces = value
		case name == "valid-after":
			s.after, err = parseTime(value)
		default:
			s.before, err = parseTime(value)
		}
		if err != nil {
			return s, err
		}
		seen[name] = true
	}
	if !s.after.IsZero() && !s.before.IsZero() && !s.after.Before(s.before) {
		err = errors.New("valid-before is not later than valid-after")
	}
	return s, err
}

// unquote returns a value without its quotes. ok reports that it has them.
func unquote(value string) (text string, ok bool) {
	text, begun := strings.CutPrefix(value, `"`)
	text, ended := strings.CutSuffix(text, `"`)
	return strings.ReplaceAll(text, `\"`, `"`), begun && ended && !strings.Contains(strings.ReplaceAll(text, `\"`, ""), `"`)
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

// patternLimit bounds the length of a pattern. ssh-keygen(1) takes a list with a longer one for a list that does not match.
const patternLimit = 1022

// matchesList reports whether a list of patterns, which are separated by commas, matches a text as in ssh_config(5), PATTERNS: one of them
// matches, and none that is negated with a "!".
func matchesList(patterns, text string) (matched bool) {
	for p := range strings.SplitSeq(patterns, ",") {
		p, negated := strings.CutPrefix(p, "!")
		switch {
		case len(p) > patternLimit:
			return false
		case !words.Matches(p, text):
		case negated:
			return false
		default:
			matched = true
		}
	}
	return matched
}

// Who returns the principals of a key that may sign at a time. If the key may not sign, the error is the reason.
func (list Signers) Who(key ssh.PublicKey, at time.Time) (principals string, err error) {
	wire := string(key.Marshal())
	for _, s := range list {
		if s.key != wire {
			continue
		}
		refused := s.refuses(at)
		if refused == nil {
			return s.principals, nil
		}
		err = cmp.Or(err, refused)
	}
	return "", cmp.Or(err, errUnlisted)
}

var errUnlisted error = &MissingError{"is not in the list of signers"}

// refuses returns the reason why a line does not let its key sign at a time. It is nil if it does.
func (s signer) refuses(at time.Time) error {
	const listed = "is in the list of signers, but "
	one := func(principal string) bool { return principal != "" && matchesList(s.principals, principal) }
	switch {
	case !slices.ContainsFunc(strings.Split(s.principals, ","), one):
		return missing(listed + "its principals match nobody")
	case !matchesList(s.namespaces, Namespace):
		return missing(listed+"not for the namespace %s", Namespace)
	case at.Before(s.after):
		return missing(listed+"only from %s on, and the statement is of %s", s.after.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	case !s.before.IsZero() && !at.Before(s.before):
		return missing(listed+"only until %s, and the statement is of %s", s.before.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	return nil
}
