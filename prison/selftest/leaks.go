package selftest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/prison"
)

// Meter is the result of the leak meter: the words that can be read inside, and where.
type Meter struct {
	Words   int    `json:"words"`   // number of words that were searched for
	Sources int    `json:"sources"` // number of sources that were searched
	Bytes   int    `json:"bytes"`   // bytes of the searched text
	Found   []Leak `json:"found"`
	Known   []Leak `json:"known"` // leaks that are already reported as a weakness of the prison
}

// Leak is a place where a word can be read.
type Leak struct {
	Kind  string `json:"kind"`  // the kind of the word
	Where string `json:"where"` // the name of the source
	Seen  string `json:"seen"`  // partly written by the agent: escape it
}

// source is a source of text inside. The system's own texts (names of files and users) may contain short words by chance, so only long
// words are searched for in them.
type source struct {
	name, script string
	system       bool // the text is the system's own
}

var sources = []source{
	{"environment of processes", `cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'; env`, false},
	{"process list", `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' '; cat /proc/[0-9]*/comm /proc/[0-9]*/task/*/comm 2>/dev/null; true`, false},
	{"links of processes", `printf '%s\n' /proc/[0-9]*/exe /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd/* | xargs readlink 2>/dev/null; cat /proc/[0-9]*/maps 2>/dev/null | grep -o '/.*'; true`, false},
	{"mounts", "cat /proc/self/mountinfo /proc/self/mounts", false},
	{"control groups", "cat /proc/[0-9]*/cgroup 2>/dev/null; true", false},
	{"host name", "uname -a; cat /etc/hostname /etc/hosts /etc/resolv.conf /proc/sys/kernel/hostname /proc/sys/kernel/domainname 2>/dev/null; true", false},
	{"users", "cat /etc/passwd /etc/group /etc/subuid /etc/subgid /proc/self/uid_map 2>/dev/null; true", false},
	{"time zone", "date; readlink /etc/localtime; cat /etc/timezone 2>/dev/null; true", false},
	{"git settings", "git config --list --show-origin 2>/dev/null; git var GIT_AUTHOR_IDENT 2>/dev/null; true", false},
	{"commits", "git log --all --reflog --format='%an %ae %ad%n%cn %ce %cd%n%GS' 2>/dev/null; true", false},
	{"repository's own files", `find .git -type f ! -path '*/objects/*' ! -name index -size -64 -print -exec cat {} + 2>/dev/null; true`, false},
	{"home and scratch folders", `find ~ /tmp /run /var /dev/shm -xdev -type f -size -64 -print -exec cat {} + 2>/dev/null; true`, false},
	{"other terminals", "ls -l /dev/pts /dev/shm 2>/dev/null; true", false},
	{"system settings", "find /etc -xdev -type f -size -64 -exec cat {} + 2>/dev/null; true", true},
	// In another locale, find converts each of the 150,000 names before it compares the name with the patterns.
	{"names of files", "LC_ALL=C find / -path /proc -prune -o -path /sys -prune -o -path /workspace -prune -o -print 2>/dev/null; true", true},
}

// measure reads all sources inside and searches for the words on the host. A search inside would reveal the words to the agent.
func measure(ctx context.Context, s Subject) (Meter, error) {
	words := searchable(s.Words)
	m := Meter{Words: len(words), Found: []Leak{}, Known: []Leak{}}
	for _, from := range sources {
		text, err := s.read(ctx, from.script)
		if err, ok := err.(*untriedError); ok { //nolint:errorlint // read does not wrap this error
			m.Found = append(m.Found, Leak{"unknown", from.name, shorten(err.Error())})
			continue
		}
		if err != nil {
			return m, fmt.Errorf("read %s: %w", from.name, err)
		}
		m.Sources, m.Bytes = m.Sources+1, m.Bytes+len(text)
		folded := strings.ToLower(text)
		for _, w := range words {
			if from.system && !w.rare || !strings.Contains(folded, strings.ToLower(w.Text)) {
				continue
			}
			at := w.pattern.FindStringIndex(text)
			if at == nil {
				continue
			}
			leak := Leak{w.Kind, from.name, shorten(lineOf(text, at))}
			if from.name == "mounts" && s.Isolation.Lacks(prison.HostPath) {
				m.Known = append(m.Known, leak)
			} else {
				m.Found = append(m.Found, leak)
			}
		}
	}
	return m, nil
}

// searchWord is a word with the expression that finds it.
type searchWord struct {
	Word
	pattern *regexp.Regexp
	rare    bool // too long to occur by chance
}

// searchable returns the words to search for. It leaves out words that are too short, and names that every system has.
func searchable(words []Word) (found []searchWord) {
	everywhere := []string{"root", "localhost", "(none)", "user", "home", "/root", "/home", "/"}
	for _, w := range words {
		if len(w.Text) < 3 || slices.Contains(everywhere, w.Text) {
			continue
		}
		// The characters on both sides must not be letters or digits. Case does not matter.
		pattern := regexp.MustCompile(`(?i)(^|[^\pL\pN])` + regexp.QuoteMeta(w.Text) + `($|[^\pL\pN])`)
		rare := len(w.Text) >= 7 || strings.ContainsAny(w.Text, "/@ ")
		found = append(found, searchWord{w, pattern, rare})
	}
	return found
}

// Mentioned returns the words that a text contains, as the leak meter finds them.
func Mentioned(words []Word, text string) (found []Word) {
	for _, w := range searchable(words) {
		if w.pattern.MatchString(text) {
			found = append(found, w.Word)
		}
	}
	return found
}

// lineOf returns the line that contains a part of a text, or what is near that part in a long line.
func lineOf(text string, at []int) string {
	from := max(strings.LastIndexByte(text[:at[0]], '\n')+1, at[0]-80)
	to := min(at[1]+80, len(text))
	if end := strings.IndexByte(text[at[1]-1:], '\n'); end >= 0 {
		to = min(to, at[1]-1+end)
	}
	return strings.ToValidUTF8(text[from:max(from, to)], "?")
}
