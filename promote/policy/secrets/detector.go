package secrets

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
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

// Match is a place that looks like a secret. It does not contain the secret itself, so that it can be shown.
type Match struct {
	Rule  string // gitleaks' id, as in "github-pat"
	Line  int    // counted from 1
	Last  int    // the line in which the match ends
	Guess bool   // the rule matches the words around the secret, not its form
	// Encoded reports that the secret is in Base64 that begins on the line.
	Encoded bool
}

const (
	// matchLimit bounds the matches of one text.
	matchLimit = 100
	// excuseLimit bounds the matches of one rule that are compared with allowlists, which takes longer than to find
	// them.
	excuseLimit = 1 << 14
	// lineLimit bounds the part of a line on each side of a match that is compared with allowlists.
	lineLimit = 1 << 10
)

// Detector applies a set of rules.
type Detector struct {
	rules    []*rule
	allowed  *allowlist
	keywords *words
	far      *words // the keywords of the rules in acrossLines
	always   []int  // rules without keywords
}

// rule is one of the file's rules. It is compiled when it is first needed, and most rules never are.
type rule struct {
	id      string
	regex   func() expression // nil if the path alone decides
	width   func() int        // how far a match can reach from one of the rule's keywords
	path    func() *regexp.Regexp
	begin   func() *matchStart // nil if the beginning of a match is not known
	value   func() *assigned   // nil if the rule does not match an assigned value
	group   int
	entropy float64
	allowed []*allowlist
	guess   bool
}

// Default returns the detector with the published rules and our own rules. They are parsed once.
var Default = sync.OnceValue(func() *Detector {
	d, err := parse(published, own)
	if err != nil {
		panic("secrets: " + err.Error()) // the rules are part of the program, and tested
	}
	return d
})

// file is the format of gitleaks.toml.
type file struct {
	Allowlist listFile
	Rules     []ruleFile
}

// ruleFile is a rule in the rule file.
type ruleFile struct {
	ID          string
	Regex, Path string
	SecretGroup int
	Entropy     float64
	Keywords    []string
	Allowlists  []listFile
}

// parse reads rules. The rules of further files come after those of the first file, and their allowed expressions are
// added to its list.
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
	keywords, far := newWordsBuilder(), newWordsBuilder()
	for n, r := range f.Rules {
		if r.ID == "" || r.Regex == "" && r.Path == "" {
			return nil, fmt.Errorf("rule %d (%q) has neither an expression nor a path", n, r.ID)
		}
		made := &rule{id: r.ID, regex: compile(r.Regex), path: lazily(r.Path), group: r.SecretGroup, entropy: r.Entropy, guess: guesses(r.ID, r.Regex)}
		made.width = reach(r.Regex, made.guess)
		made.begin = sync.OnceValue(func() *matchStart { return matchStartOf(r.Regex, r.Keywords) })
		made.value = sync.OnceValue(func() *assigned { return assignedOf(r) })
		for _, a := range r.Allowlists {
			made.allowed = append(made.allowed, newAllowlist(a))
		}
		d.rules = append(d.rules, made)
		if len(r.Keywords) == 0 {
			d.always = append(d.always, n)
		}
		for _, k := range r.Keywords {
			keywords.add(k, n)
			if acrossLines[r.ID] {
				far.add(k, n)
			}
		}
	}
	d.keywords, d.far = keywords.build(), far.build()
	return d, nil
}

// lazily compiles an expression when it is first used. An empty expression gives nil.
func lazily(expression string) func() *regexp.Regexp {
	if expression == "" {
		return nil
	}
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// reach computes [widest] of an expression when it is first used.
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

// guessPrefix begins the expressions that gitleaks' generator makes for a name, an assignment and a value.
const guessPrefix = `[\w.-]{0,50}?`

// guessing lists rules of the same kind with other expressions.
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

// search describes a search in a text.
type search struct {
	path    string
	text    []byte
	guesses bool             // include the rules that guess
	counts  func(Match) bool // reports whether a match counts; nil means that all do
	near    []Part           // parts, in order, that a match must touch to count; nil means the whole text
	at      *spans           // receives the place of each secret; nil if nobody needs them
}

// note records the place of a secret.
func (s search) note(from, to int) {
	if s.at != nil {
		*s.at = append(*s.at, span{from, to})
	}
}

// Part is a part of a text: the offsets of its first byte and of the byte after its last.
type Part struct{ From, To int }

// wants reports whether a match counts. The limit on matches applies only to those that count.
func (s search) wants(m Match) bool { return s.counts == nil || s.counts(m) }

// Find looks for secrets in text. path is the file of the text, for rules that depend on it. It is empty for a text
// that is not a file.
func (d *Detector) Find(path string, text []byte) []Match { return d.FindNear(path, text, nil, nil) }

// FindNear is like Find, but only for matches for which counts returns true and that have a line in one of the parts near. The limit on matches
// applies only to these. The parts consist of whole lines and are in order. Expressions are matched only near the parts. Without parts, the
// whole text is searched.
func (d *Detector) FindNear(path string, text []byte, near []Part, counts func(Match) bool) []Match {
	return d.everywhere(search{path: path, text: text, guesses: true, counts: counts, near: near})
}

// Certain is like Find without the rules that guess, which take most of the time.
func (d *Detector) Certain(path string, text []byte) []Match {
	return d.everywhere(search{path: path, text: text})
}

func (d *Detector) everywhere(s search) []Match {
	found := append(d.find(s), d.encoded(s)...)
	if len(found) > matchLimit { // prefer the certain ones
		slices.SortStableFunc(found, func(a, b Match) int { return cmp.Compare(order(a), order(b)) })
		found = found[:matchLimit]
	}
	return found
}

func (d *Detector) find(s search) []Match {
	wanted := d.places(s)
	// Guesses have their own limit, so that they cannot displace certain matches. Rules apply in the file's order, so
	// that equal texts give equal results.
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
		return nil // checked last, because most texts have no match
	}
	return found
}

// places returns the parts of a text in which each rule can match, or nil for a rule that cannot match.
func (d *Detector) places(s search) []spans {
	text := s.text
	wanted := make([]spans, len(d.rules))
	for _, n := range d.always {
		wanted[n] = spans{{0, len(text)}}
	}
	hit := func(n, end int) {
		if d.rules[n].guess && !s.guesses {
			return
		}
		if b := d.rules[n].begin(); b != nil {
			if end = b.matchBefore(text, end); end < 0 {
				return
			}
		}
		wanted[n] = wanted[n].add(span{end, end}, nearby)
	}
	where := s.reached()
	if s.near != nil {
		d.far.each(text, hit)
	}
	for _, part := range where {
		d.keywords.each(text[part.from:part.to], func(n, end int) {
			if s.near == nil || !acrossLines[d.rules[n].id] {
				hit(n, part.from+end)
			}
		})
	}
	values := sync.OnceValue(func() []value { return valuesIn(text, where) })
	for n, hits := range wanted {
		if hits == nil {
			continue
		}
		width := d.rules[n].width() + utf8.UTFMax
		if a := d.rules[n].value(); a != nil {
			wanted[n] = a.candidates(text, hits, values(), width)
		} else {
			wanted[n] = hits.widened(width, len(text))
		}
		if s.near != nil {
			wanted[n] = wanted[n].touching(s.near)
		}
	}
	return wanted
}

// acrossLines are the rules whose matches have several lines and no bound. A match of any other rule that reaches
// into a line is in that line, or begins at most lineReach bytes before it.
var acrossLines = map[string]bool{"private-key": true, "freemius-secret-key": true, "jwt-base64": true}

// lineReach is more than the length of two consecutive matches of a rule that guesses.
const lineReach = 4 * longestGuess

// reached returns the parts of the text in which a match that counts can be, except for the rules in acrossLines.
func (s search) reached() spans {
	if s.near == nil {
		return spans{{0, len(s.text)}}
	}
	var reached spans
	for _, p := range s.near {
		reached = reached.add(span{max(0, p.From-lineReach), min(len(s.text), p.To+lineReach)}, 0)
	}
	return reached
}

// order sorts certain matches before guesses.
func order(m Match) int {
	if m.Guess {
		return 1
	}
	return 0
}

// nearby is the number of bytes between two keywords below which their parts are joined.
const nearby = 64

// apply matches a rule against parts of a text.
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
		for _, at := range r.regex().all(s.text[part.from:part.to]) {
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
			if looked++; looked > excuseLimit { // too many to compare with allowlists: the rest of the text counts as one match
				m.Last = line + bytes.Count(s.text[at[0]:], newline)
				s.note(at[0], len(s.text))
				return append(found, m)
			}
			c := r.candidate(s.path, s.text, at)
			if r.entropy != 0 && entropy(c.secret) <= r.entropy || d.allowed.allows(c) || slices.ContainsFunc(r.allowed, func(a *allowlist) bool { return a.allows(c) }) {
				continue
			}
			s.note(c.from, c.from+len(c.secret))
			if found = append(found, m); len(found) == matchLimit {
				return found
			}
		}
	}
	return found
}

var newline = []byte("\n")

// excuses reports whether a rule does not apply to files with a path.
func (r *rule) excuses(path string) bool {
	if r.path != nil && !r.path().MatchString(path) {
		return true
	}
	return path != "" && slices.ContainsFunc(r.allowed, func(a *allowlist) bool { return !a.all && a.allowsPath(path) })
}

// candidate is the match of an expression.
type candidate struct {
	path                string
	secret, match, line []byte // line is the line around the match, or a part of it if the line is very long
	from                int    // the offset of the secret in the text
}

// candidate extracts the secret from a match: the group that the rule names, or the first group that is not empty, or
// the whole match.
func (r *rule) candidate(path string, text []byte, at []int) candidate {
	start, end := at[0], at[1]
	c := candidate{path: path, match: bytes.Trim(text[start:end], "\n")}
	c.secret, c.from = c.match, end-len(bytes.TrimLeft(text[start:end], "\n"))
	for g := 1; 2*g+1 < len(at); g++ {
		if at[2*g] >= 0 && (g == r.group || r.group == 0 && at[2*g] < at[2*g+1]) {
			c.secret, c.from = text[at[2*g]:at[2*g+1]], at[2*g]
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

// entropy returns Shannon's entropy in bits a character.
func entropy(text []byte) float64 {
	var counts [utf8.RuneSelf]int
	var others map[rune]int
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if i += n; r < utf8.RuneSelf {
			counts[r]++
			continue
		}
		if others == nil {
			others = map[rune]int{}
		}
		others[r]++
	}
	sum := 0.0
	add := func(n int) {
		if f := float64(n) / float64(len(text)); f > 0 {
			sum -= f * math.Log2(f)
		}
	}
	for _, n := range counts {
		add(n)
	}
	for _, n := range slices.Sorted(maps.Values(others)) { // the order changes the last digits
		add(n)
	}
	return sum
}
