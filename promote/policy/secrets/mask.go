package secrets

import (
	"cmp"
	"slices"
	"strings"
)

// masked replaces a secret.
const masked = "***"

// Mask returns the words of a command line with every secret in them replaced by three stars. It searches the words as one text, because a rule
// may need the word before a secret, such as the name of an option. It searches a second time with the sign "=" between each option and its
// value, since many rules look for an assignment. If there are more secrets than a search lists, all words are replaced.
func (d *Detector) Mask(words []string) []string {
	text := []byte(strings.Join(words, " "))
	if !d.suspects(text) {
		return words
	}
	var at spans
	found := len(d.everywhere(search{text: text, guesses: true, at: &at}))
	if assigned := assignments(words); assigned != nil {
		found = max(found, len(d.everywhere(search{text: assigned, guesses: true, at: &at})))
	}
	switch {
	case found == 0:
		return words
	case found >= matchLimit:
		at = spans{{0, len(text)}}
	}
	slices.SortFunc(at, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := make([]string, len(words))
	from := 0
	for i, w := range words {
		out[i] = cover(w, at, from)
		from += len(w) + 1
	}
	return out
}

// assignments returns the words as one text with the sign "=" between options and their values, or nil if there are none. Each word
// begins where it does with spaces between the words.
func assignments(words []string) (text []byte) {
	some := false
	for i, w := range words {
		if i > 0 {
			separator := byte(' ')
			if option := words[i-1]; len(option) > 1 && option[0] == '-' && !strings.Contains(option, "=") && !strings.HasPrefix(w, "-") {
				separator, some = '=', true
			}
			text = append(text, separator)
		}
		text = append(text, w...)
	}
	if !some {
		return nil
	}
	return text
}

// cover replaces the parts of a word that are in sorted spans of a text. The word begins at an offset of that text.
func cover(word string, at spans, offset int) string {
	var b strings.Builder
	next := 0 // the first byte that was not copied
	for _, s := range at {
		from, to := max(s.from-offset, next), min(s.to-offset, len(word))
		if from >= to {
			continue
		}
		b.WriteString(word[next:from])
		if from > next || next == 0 {
			b.WriteString(masked)
		}
		next = to
	}
	if next == 0 {
		return word
	}
	return b.String() + word[next:]
}

// suspects reports whether a text can contain a secret. Most command lines cannot, and a search takes ten times as long.
func (d *Detector) suspects(text []byte) bool {
	for _, n := range d.always {
		if d.rules[n].regex != nil {
			return true
		}
	}
	for range literals(text, nil) {
		return true
	}
	return d.keywords.any(text)
}
