package report

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/record"
)

// patch is a commit in changes.patch.
type patch struct {
	found    bool
	whole    bool // its changes could be read
	authored time.Time
	body     []string // the message without its subject
	files    []filePatch
}

type filePatch struct {
	path, what     string
	added, removed int
	lines          []Line
}

// patchesOf returns the patches of commits, in their order. A message may contain anything, also what looks like a patch: it may
// name the id of an older commit, but not its own or that of a newer one. Therefore the beginning of a commit is the first line
// that names its id, if this line is before those of all newer commits.
func patchesOf(commits []record.Commit, changes []byte) []patch {
	text := "\n" + string(changes)
	begins := beginnings(commits, text)
	patches := make([]patch, len(commits))
	end := len(text)
	for i := len(commits) - 1; i >= 0; i-- {
		at := -1
		for _, id := range []gitops.OID{commits[i].Outer, commits[i].Inner} {
			if found, ok := begins[id]; ok && (at < 0 || found < at) {
				at = found
			}
		}
		if at >= 0 && at < end {
			patches[i] = patchOf(text[at+1 : end])
			end = at
		}
	}
	return patches
}

// beginnings returns for each commit's id the place before the first line that names it as the beginning of a mail. It reads the
// text once, since a fetched record can have many commits and a long text.
func beginnings(commits []record.Commit, text string) map[gitops.OID]int {
	begins := make(map[gitops.OID]int, 2*len(commits))
	for _, c := range commits {
		begins[c.Outer], begins[c.Inner] = -1, -1
	}
	const from = "\nFrom "
	for at := 0; ; at++ {
		found := strings.Index(text[at:], from)
		if found < 0 {
			break
		}
		at += found
		id, _, whole := strings.Cut(text[at+len(from):min(at+len(from)+maxID+1, len(text))], " ")
		if place, wanted := begins[gitops.OID(id)]; whole && wanted && place < 0 {
			begins[gitops.OID(id)] = at
		}
	}
	maps.DeleteFunc(begins, func(id gitops.OID, at int) bool { return id == "" || at < 0 })
	return begins
}

// maxID is the length of the longest commit id, which is a SHA-256.
const maxID = 64

// patchOf reads one mail of git format-patch.
func patchOf(mail string) patch {
	p := patch{found: true}
	header, rest, _ := strings.Cut(mail, "\n\n")
	for line := range strings.Lines(header) {
		if date, ok := strings.CutPrefix(line, "Date: "); ok {
			p.authored, _ = time.Parse("Mon, _2 Jan 2006 15:04:05 -0700", strings.TrimSpace(date))
		}
	}
	lines := strings.Split(rest, "\n")
	for i, line := range lines {
		if line != "---" {
			continue
		}
		// A message may contain a line like this, with changes after it. Changes are therefore read strictly, up to the end.
		if files, ok := changesOf(lines[i+1:]); ok {
			p.body, p.files, p.whole = trimmed(lines[:i]), files, true
			return p
		}
	}
	message, _, dashes := strings.Cut(rest, "\n---\n")
	p.body = trimmed(strings.Split(message, "\n"))
	p.whole = !dashes && !strings.Contains(message, "diff --git ") // a commit that changes nothing
	return p
}

// trimmed returns lines without empty ones at both ends.
func trimmed(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// changesOf reads what follows the message: an overview, which is left out, an empty line, changes of files and git's version. It
// returns false unless every line has its place.
func changesOf(lines []string) (files []filePatch, ok bool) {
	for len(lines) > 0 && strings.HasPrefix(lines[0], " ") {
		lines = lines[1:]
	}
	if len(lines) == 0 || lines[0] != "" {
		return nil, false
	}
	lines = lines[1:]
	for len(lines) > 0 && strings.HasPrefix(lines[0], "diff --git ") {
		var f filePatch
		if f, lines, ok = fileOf(lines); !ok {
			return nil, false
		}
		files = append(files, f)
	}
	if len(lines) > 1 && lines[0] == "-- " {
		lines = lines[2:]
	}
	return files, len(trimmed(lines)) == 0
}

// fileOf reads the change of the first file.
func fileOf(lines []string) (f filePatch, rest []string, ok bool) {
	f = filePatch{path: pathIn(lines[0]), what: "changed"}
	lines = lines[1:]
	for len(lines) > 0 && f.header(lines[0]) {
		lines = lines[1:]
	}
	if len(lines) > 0 && lines[0] == "GIT binary patch" {
		lines, ok = afterBinary(lines[1:])
		f.lines = append(f.lines, Line{"@", "binary"})
		return f, lines, ok
	}
	for len(lines) > 0 && strings.HasPrefix(lines[0], "@@ ") {
		if lines, ok = f.hunk(lines); !ok {
			return f, nil, false
		}
	}
	return f, lines, true
}

// header reads a line between the name of a file and its changes. It returns false for any other line.
func (f *filePatch) header(line string) bool {
	key, value, _ := strings.Cut(line, " ")
	switch key {
	case "new":
		f.what = "added"
	case "deleted":
		f.what = "removed"
	case "rename", "copy":
		f.what = "renamed"
		if to, ok := strings.CutPrefix(value, "to "); ok {
			f.path = unquoted(to)
		}
	case "Binary":
		f.lines = append(f.lines, Line{"@", "binary"})
	case "+++":
		if name := unquoted(strings.TrimSuffix(value, "\t")); strings.HasPrefix(name, "b/") {
			f.path = name[2:]
		}
	case "---", "index", "old", "similarity", "dissimilarity":
	default:
		return false
	}
	return true
}

var hunkForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -[0-9]+(?:,([0-9]+))? \+[0-9]+(?:,([0-9]+))? @@`)
})

// hunk reads the first group of changed lines.
func (f *filePatch) hunk(lines []string) (rest []string, ok bool) {
	sizes := hunkForm().FindStringSubmatch(lines[0])
	if sizes == nil {
		return nil, false
	}
	f.lines = append(f.lines, Line{"@", Text(lines[0])})
	old, fresh := lineCount(sizes[1]), lineCount(sizes[2])
	for lines = lines[1:]; len(lines) > 0; lines = lines[1:] {
		if old <= 0 && fresh <= 0 && !strings.HasPrefix(lines[0], `\`) {
			return lines, true
		}
		if lines[0] == "" {
			return nil, false
		}
		kind := lines[0][:1]
		switch kind {
		case "+":
			fresh, f.added = fresh-1, f.added+1
		case "-":
			old, f.removed = old-1, f.removed+1
		case " ":
			old, fresh = old-1, fresh-1
		case `\`:
			kind = "@"
		default:
			return nil, false
		}
		f.lines = append(f.lines, Line{kind, Text(lines[0][1:])})
	}
	return nil, old <= 0 && fresh <= 0
}

func lineCount(text string) int {
	if text == "" {
		return 1
	}
	n, _ := strconv.Atoi(text)
	return n
}

var (
	binarySize = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(literal|delta) [0-9]+$`) })
	binaryLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+$") })
)

// afterBinary returns the lines after a binary change, which has one or two parts.
func afterBinary(lines []string) (rest []string, ok bool) {
	for part := 0; part < 2 && len(lines) > 0 && binarySize().MatchString(lines[0]); part++ {
		lines = lines[1:]
		for len(lines) > 0 && binaryLine().MatchString(lines[0]) {
			lines = lines[1:]
		}
		if len(lines) == 0 || lines[0] != "" {
			return nil, false
		}
		lines, ok = lines[1:], true
	}
	return lines, ok
}

// pathIn returns the path in a line "diff --git a/PATH b/PATH", which has the same path twice unless other lines name it.
func pathIn(line string) string {
	line = strings.TrimPrefix(line, "diff --git ")
	if strings.HasPrefix(line, `"`) {
		if i := strings.LastIndex(line, ` "b/`); i >= 0 {
			return strings.TrimPrefix(unquoted(line[i+1:]), "b/")
		}
	}
	return strings.TrimPrefix(line[len(line)-len(line)/2:], "b/")
}

// unquoted returns a path that git has quoted.
func unquoted(path string) string {
	if strings.HasPrefix(path, `"`) {
		if plain, err := strconv.Unquote(path); err == nil {
			return plain
		}
	}
	return path
}
