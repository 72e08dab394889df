package secrets

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

//go:embed gitleaks.toml
var published []byte

//go:embed own.toml
var own []byte

// Match is one place that holds what looks like a secret. The secret itself is not in it, so that it can be
// shown.
type Match struct {
	Rule  string // gitleaks' id, as in "github-pat"
	Line  int    // counted from 1
	Last  int    // the line in which it ends
	Guess bool   // the rule goes by the words around, not by the form of the secret
	// Encoded tells that the secret is in Base64, which begins on the line.
	Encoded bool
}

const (
	// matchLimit bounds the matches in one text that count.
	matchLimit = 100
	// excuseLimit bounds those of one rule that are looked at for an excuse, which takes longer than finding them.
	excuseLimit = 1 << 14
	// lineLimit bounds what is looked at of a line on each side of a match, for an excuse.
	lineLimit = 1 << 10
)

// Detector applies a set of rules.
type Detector struct {
	rules    []*rule
	allowed  *allowlist
	keywords *words
	always   []int // rules without keywords
}

// rule is one of the file's rules, compiled when it is first wanted: most never are.
type rule struct {
	id      string
	regex   func() *regexp.Regexp // nil: the path alone decides
	width   func() int            // how far from one of its words a match can reach
	path    func() *regexp.Regexp
	begin   func() *beginning // nil: not known
	value   func() *assigned  // nil: not of that kind
	group   int
	entropy float64
	allowed []*allowlist
	guess   bool
}

// Default returns the detector with the published rules and our own. They are read once.
var Default = sync.OnceValue(func() *Detector {
	d, err := parse(published, own)
	if err != nil {
		panic("secrets: " + err.Error()) // part of the program, and tested
	}
	return d
})

// file is the form of gitleaks.toml.
type file struct {
	Allowlist listFile
	Rules     []struct {
		ID          string
		Regex, Path string
		SecretGroup int
		Entropy     float64
		Keywords    []string
		Allowlists  []listFile
	}
}

// parse reads rules. Those of a further file come after the first one's; what it allows is added to that one's list.
func parse(content []byte, more ...[]byte) (*Detector, error) {
	var f file
	if err := toml.Unmarshal(content, &f); err != nil {
		return nil, err
	}
	for _, content := range more {
		var further file
		if err := toml.Unmarshal(content, &further); err != nil {
			return nil, err
		}
		f.Rules = append(f.Rules, further.Rules...)
		f.Allowlist.Regexes = append(f.Allowlist.Regexes, further.Allowlist.Regexes...)
	}
	d := &Detector{allowed: newAllowlist(f.Allowlist)}
	keywords := newWordsBuilder()
	for n, r := range f.Rules {
		if r.ID == "" || r.Regex == "" && r.Path == "" {
			return nil, fmt.Errorf("rule %d (%q) says nothing", n, r.ID)
		}
		made := &rule{id: r.ID, regex: lazily(r.Regex), path: lazily(r.Path), group: r.SecretGroup, entropy: r.Entropy, guess: guesses(r.ID, r.Regex)}
		made.width = reach(r.Regex, made.guess)
		made.begin = sync.OnceValue(func() *beginning { return beginningOf(r.Regex, r.Keywords) })
		made.value = sync.OnceValue(func() *assigned { return assignedOf(r.Regex, r.Keywords, r.Allowlists) })
		for _, a := range r.Allowlists {
			made.allowed = append(made.allowed, newAllowlist(a))
		}
		d.rules = append(d.rules, made)
		if len(r.Keywords) == 0 {
			d.always = append(d.always, n)
		}
		for _, k := range r.Keywords {
			keywords.add(k, n)
		}
	}
	d.keywords = keywords.build()
	return d, nil
}

// lazily compiles an expression when it is first asked for; an empty one gives nil.
func lazily(expression string) func() *regexp.Regexp {
	if expression == "" {
		return nil
	}
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// reach is lazily [widest].
func reach(expression string, guess bool) func() int {
	return sync.OnceValue(func() int {
		most := longest
		if guess {
			most = longestGuess
		}
		re, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			return most
		}
		return widest(re, most)
	})
}

// guessPrefix is how gitleaks' generator begins each rule that looks for a name, an assignment and a value.
const guessPrefix = `[\w.-]{0,50}?`

// guessing are rules of the same kind in another form.
var guessing = map[string]bool{
	"curl-auth-header":       true,
	"curl-auth-user":         true,
	"kubernetes-secret-yaml": true,
	"nuget-config-password":  true,
	"pkcs12-file":            true,
	"sidekiq-sensitive-url":  true,
}

func guesses(id, expression string) bool {
	return guessing[id] || strings.HasPrefix(strings.TrimPrefix(expression, "(?i)"), guessPrefix)
}

// search is a text that is searched.
type search struct {
	path    string
	text    []byte
	guesses bool             // also by the rules that guess
	counts  func(Match) bool // nil: all do
	near    []Part           // where matches that count can be, in order; nil: anywhere
}

// Part is a part of a text, by the offsets of its first byte and of the one behind its last.
type Part struct{ From, To int }

// wants reports whether a match is one of those that are searched for. Others use up no room.
func (s search) wants(m Match) bool { return s.counts == nil || s.counts(m) }

// Find looks for secrets in text. path is where the text is from, for rules that depend on it; empty for text
// that is no file.
func (d *Detector) Find(path string, text []byte) []Match { return d.FindThose(path, text, nil) }

// FindThose looks for the secrets that count: however many others there are, they hide none.
func (d *Detector) FindThose(path string, text []byte, counts func(Match) bool) []Match {
	return d.everywhere(search{path: path, text: text, guesses: true, counts: counts})
}

// FindNear is FindThose where a match that counts has a byte in one of some parts, which are in order: away from them,
// no expression is tried.
func (d *Detector) FindNear(path string, text []byte, near []Part, counts func(Match) bool) []Match {
	return d.everywhere(search{path: path, text: text, guesses: true, counts: counts, near: near})
}

// Certain leaves out the rules that guess, which take most of the time.
func (d *Detector) Certain(path string, text []byte) []Match {
	return d.everywhere(search{path: path, text: text})
}

func (d *Detector) everywhere(s search) []Match {
	found := append(d.find(s), d.encoded(s)...)
	if len(found) > matchLimit { // of so many, those that are certain
		slices.SortStableFunc(found, func(a, b Match) int { return cmp.Compare(order(a), order(b)) })
		found = found[:matchLimit]
	}
	return found
}

func (d *Detector) find(s search) []Match {
	wanted := d.places(s)
	// Guesses use up no room of what is certain. Each in the file's order, so that equal texts give equal answers.
	var certain, guessed []Match
	for n, r := range d.rules {
		into := &certain
		if r.guess {
			into = &guessed
		}
		if wanted[n] != nil && len(*into) < matchLimit {
			*into = d.apply(r, s, wanted[n], *into)
		}
	}
	found := append(certain, guessed...)
	if len(found) > 0 && s.path != "" && d.allowed.allowsPath(s.path) {
		return nil // asked last: most texts have nothing to be excused
	}
	return found
}

// places are the parts of a text where each rule can match, nil for a rule that cannot.
func (d *Detector) places(s search) []spans {
	text := s.text
	wanted := make([]spans, len(d.rules))
	for _, n := range d.always {
		wanted[n] = spans{{0, len(text)}}
	}
	d.keywords.each(text, func(n, end int) {
		if d.rules[n].guess && !s.guesses {
			return
		}
		if b := d.rules[n].begin(); b != nil {
			if end = b.before(text, end); end < 0 {
				return
			}
		}
		wanted[n] = wanted[n].add(span{end, end}, nearby)
	})
	values := sync.OnceValue(func() []value { return valuesIn(text) })
	for n, hits := range wanted {
		if hits == nil {
			continue
		}
		width := d.rules[n].width() + utf8.UTFMax
		if a := d.rules[n].value(); a != nil {
			wanted[n] = a.around(hits, values(), width, len(text))
		} else {
			wanted[n] = hits.around(width, len(text))
		}
		if s.near != nil {
			wanted[n] = wanted[n].touching(s.near)
		}
	}
	return wanted
}

// order is smaller for what is certain.
func order(m Match) int {
	if m.Guess {
		return 1
	}
	return 0
}

// nearby is the number of bytes between two words of a rule that makes no difference.
const nearby = 64

// apply holds a rule against parts of a text.
func (d *Detector) apply(r *rule, s search, parts spans, found []Match) []Match {
	if r.excuses(s.path) {
		return found
	}
	if r.regex == nil {
		if m := (Match{Rule: r.id, Line: 1, Last: 1 + bytes.Count(s.text, newline), Guess: r.guess}); s.wants(m) {
			found = append(found, m)
		}
		return found
	}
	line, counted, looked := 1, 0, 0
	for _, part := range parts {
		for _, at := range r.regex().FindAllSubmatchIndex(s.text[part.from:part.to], -1) {
			for i := range at {
				if at[i] >= 0 {
					at[i] += part.from
				}
			}
			line, counted = line+bytes.Count(s.text[counted:at[0]], newline), at[0]
			m := Match{Rule: r.id, Line: line, Guess: r.guess}
			m.Last = line + bytes.Count(bytes.TrimRight(s.text[at[0]:at[1]], "\n"), newline)
			if !s.wants(m) {
				continue
			}
			if looked++; looked > excuseLimit { // what comes from here on is not known: that counts as a match
				m.Last = line + bytes.Count(s.text[at[0]:], newline)
				return append(found, m)
			}
			c := r.candidate(s.path, s.text, at)
			if r.entropy != 0 && entropy(c.secret) <= r.entropy || d.allowed.allows(c) || c.allowedBy(r.allowed) {
				continue
			}
			if found = append(found, m); len(found) == matchLimit {
				return found
			}
		}
	}
	return found
}

var newline = []byte("\n")

// excuses reports whether a rule has nothing to say of files with a path.
func (r *rule) excuses(path string) bool {
	if r.path != nil && !r.path().MatchString(path) {
		return true
	}
	return path != "" && slices.ContainsFunc(r.allowed, func(a *allowlist) bool { return !a.all && a.allowsPath(path) })
}

// candidate is what an expression matched.
type candidate struct {
	path                string
	secret, match, line []byte // the line around it, unless that is very long
}

// candidate takes the secret from a match: the group that the rule names, else the first that holds something,
// else all of it.
func (r *rule) candidate(path string, text []byte, at []int) candidate {
	start, end := at[0], at[1]
	c := candidate{path: path, match: bytes.Trim(text[start:end], "\n")}
	c.secret = c.match
	for g := 1; 2*g+1 < len(at); g++ {
		if at[2*g] >= 0 && (g == r.group || r.group == 0 && at[2*g] < at[2*g+1]) {
			c.secret = text[at[2*g]:at[2*g+1]]
			break
		}
	}
	from, to := max(0, start-lineLimit), min(len(text), end+lineLimit)
	from += bytes.LastIndexByte(text[from:start], '\n') + 1
	if i := bytes.IndexByte(text[end:to], '\n'); i >= 0 {
		to = end + i
	}
	c.line = text[from:to]
	return c
}

func (c candidate) allowedBy(lists []*allowlist) bool {
	for _, a := range lists {
		if a.allows(c) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a character.
func entropy(text []byte) float64 {
	counts := map[rune]int{}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		counts[r]++
		i += n
	}
	sum := 0.0
	for _, n := range counts {
		f := float64(n) / float64(len(text))
		sum -= f * math.Log2(f)
	}
	return sum
}
