package scan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/gitops/ignore"
	"github.com/git-airlock/git-airlock/gitops/inner"
)

// textLimit is how many bytes of one file are searched at most.
const textLimit = 4 << 20

// Match is a place in a text that a [Detector] found.
type Match struct {
	Rule  string // name of the rule
	Line  int    // counted from 1
	Last  int    // the line in which the match ends
	Guess bool   // the words around the value indicate a secret, not the form of the value
	// Encoded reports that the secret is inside Base64 that begins on the line.
	Encoded bool
}

// Detector finds secrets in the text of a file. Several goroutines call it at the same time.
type Detector func(path string, text []byte) []Match

// Severity ranks findings.
type Severity int

// The severities. A user should look at each high finding before a start.
const (
	Low Severity = iota
	Medium
	High
)

var severities = []string{"low", "medium", "high"}

func (s Severity) String() string { return severities[s] }

// MarshalText writes a severity as a word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// lowered returns the severity one step below.
func (s Severity) lowered() Severity { return max(s-1, Low) }

// Finding is one place that may hold a secret.
type Finding struct {
	Path     string
	Line     int    // 0 means the whole file
	Rule     string // name of the rule
	Severity Severity
	Reason   string // why it may be a secret, in words
	Ignored  bool   // an ignore file names the path, so somebody did not mean to commit the file
	Loose    bool   // the file is not committed, and goes into the prison because the user wants it
	Allowed  string // the user's reason to allow it; empty if it is not allowed
	guess    bool   // as in [Match]
}

// Report is the result of a search.
type Report struct {
	Files    int       // files that were searched
	Excluded int       // files that the snapshot leaves out
	Bytes    int64     // bytes of their different contents
	Findings []Finding // the worst first
	Partial  []string  // paths of files of which only the first part was searched
	Archives []string  // paths of archives, which are not searched
	// Cursory reports that the guessing rules were not applied to all files.
	Cursory bool
}

// Count counts the findings of a severity that are not allowed.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s && f.Allowed == "" {
			n++
		}
	}
	return n
}

// Allowed counts the findings that the user allows.
func (r Report) Allowed() int {
	n := 0
	for _, f := range r.Findings {
		if f.Allowed != "" {
			n++
		}
	}
	return n
}

// Scanner searches trees of a repository.
type Scanner struct {
	Repo     *gitops.Repository
	Objects  *gitops.Git // where the contents are read; nil means Repo
	Detect   Detector
	Settings Settings
	Exclude  ignore.Patterns     // files that the snapshot leaves out
	Include  []inner.UserFile    // files that are not committed and go into the prison as well
	Only     map[string]bool     // the paths to search; nil means all
	Progress func(done, all int) // may be nil
	// Certain is a Detector without the guessing rules, which is faster. It replaces Detect after the first Guessing bytes of text. If it
	// is nil, Detect searches all text.
	Certain  Detector
	Guessing int64
}

// Tree searches the files of a tree.
func (s Scanner) Tree(ctx context.Context, tree gitops.OID) (Report, error) {
	all, err := s.Repo.Files(ctx, tree)
	if err != nil {
		return Report{}, err
	}
	files := slices.DeleteFunc(slices.Clone(all), func(f gitops.File) bool { return s.Exclude.Within(f.Path) })
	excluded := len(all) - len(files)
	files = slices.DeleteFunc(files, func(f gitops.File) bool { return !f.Regular() || s.Only != nil && !s.Only[f.Path] })
	search := &search{scanner: s, report: Report{Files: len(files) + len(s.Include), Excluded: excluded}, jobs: make(chan job, 4*runtime.GOMAXPROCS(0))}
	if err := search.run(ctx, files); err != nil {
		return Report{}, err
	}
	r := &search.report
	r.Cursory = s.Certain != nil && search.searched.Load() > s.Guessing
	if err := s.rateIgnored(ctx, r); err != nil {
		return Report{}, err
	}
	slices.Sort(r.Partial)
	slices.Sort(r.Archives)
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return *r, nil
}

// rateIgnored marks the findings in files that an ignore file names, and raises their severity.
func (s Scanner) rateIgnored(ctx context.Context, r *Report) error {
	var paths []string
	for _, f := range r.Findings {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	ignored, err := ignore.Named(ctx, s.Repo, slices.Compact(paths))
	if err != nil {
		return err
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Ignored = ignored[f.Path] && !f.Loose; f.Ignored && !f.guess {
			f.Severity = min(f.Severity+1, High)
		}
	}
	return nil
}

// job is one content to search, with the paths of the files that have it.
type job struct {
	paths []string
	text  []byte // the first part of the content
	size  int64  // bytes of the whole content
	loose bool   // as in [Finding]
}

// search is the state of one search through files.
type search struct {
	scanner Scanner
	jobs    chan job
	lock    sync.Mutex
	report  Report
	done    int // files that were searched

	searched atomic.Int64 // bytes of text
}

// run reads contents in one goroutine and searches them in several, because searching takes most of the time.
func (s *search) run(ctx context.Context, files []gitops.File) error {
	var ids []gitops.OID
	paths := map[gitops.OID][]string{}
	for _, f := range files {
		if paths[f.OID] == nil {
			ids = append(ids, f.OID)
		}
		paths[f.OID] = append(paths[f.OID], f.Path)
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range s.jobs {
				s.searchContent(j)
			}
		})
	}
	err := cmp.Or(s.scanner.Objects, s.scanner.Repo.Git).Blobs(ctx, ids, textLimit, func(n int, head []byte, size int64) error {
		s.jobs <- job{paths[ids[n]], head, size, false}
		return nil
	})
	for _, f := range s.scanner.Include {
		s.jobs <- job{[]string{f.Path}, f.Content[:min(len(f.Content), textLimit)], int64(len(f.Content)), true}
	}
	close(s.jobs)
	workers.Wait()
	return err
}

// searchContent searches one content for each of its paths, because the severity depends on the path.
func (s *search) searchContent(j job) {
	var found []Finding
	text := asText(j.text)
	scanner := s.scanner
	if scanner.Certain != nil && s.searched.Add(int64(len(text))) > scanner.Guessing {
		scanner.Detect = scanner.Certain
	}
	for _, path := range j.paths {
		found = append(found, scanner.file(path, text)...)
	}
	for i := range found {
		if found[i].Loose = j.loose; j.loose { // a user has chosen this file
			found[i].Severity = found[i].Severity.lowered()
			found[i].Reason += ", not committed"
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.report.Findings = append(s.report.Findings, found...)
	s.report.Bytes += j.size
	if text != nil && j.size > int64(len(j.text)) {
		s.report.Partial = append(s.report.Partial, j.paths...)
	}
	if isArchive(j.text) {
		s.report.Archives = append(s.report.Archives, j.paths...)
	}
	if s.done += len(j.paths); s.scanner.Progress != nil {
		s.scanner.Progress(s.done, s.report.Files)
	}
}

// file searches one file: its name, and its text, which is nil for a binary file. Of the findings in one line, it returns the one that
// counts, see worstOf.
func (s Scanner) file(path string, text []byte) []Finding {
	as := roleOf(path)
	var found []Finding
	for _, m := range s.Detect(path, text) {
		found = append(found, Finding{Path: path, Line: m.Line, Rule: m.Rule, Severity: as.severity(m.Guess), Reason: as.reason(m), guess: m.Guess})
	}
	found = append(found, passwordsInURLs(path, as, text)...)
	found = append(found, s.Settings.custom(path, text)...)
	if f, ok := rateName(path, as, text, len(found) > 0); ok {
		if text == nil { // guesses would only repeat the finding by name
			found = slices.DeleteFunc(found, func(f Finding) bool { return f.guess })
		}
		found = append(found, f)
	}
	for i := range found {
		found[i].Allowed = s.Settings.allowed(found[i])
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), -cmp.Compare(a.Severity, b.Severity))
	})
	worst := found[:0]
	for i := 0; i < len(found); {
		n := 1
		for i+n < len(found) && found[i+n].Line == found[i].Line {
			n++
		}
		worst = append(worst, worstOf(found[i:i+n]))
		i += n
	}
	return worst
}

// worstOf returns the finding of a line that counts: the worst that the user does not allow. line begins with the worst. A guess beside
// an allowed finding does not count, since it is about the same value.
func worstOf(line []Finding) Finding {
	allowed := slices.ContainsFunc(line, func(f Finding) bool { return f.Allowed != "" })
	for _, f := range line {
		if f.Allowed == "" && (!allowed || !f.guess) {
			return f
		}
	}
	return line[0]
}

// asText returns the text of a content, or nil for a binary file. Editors on Windows also write UTF-16.
func asText(content []byte) []byte {
	if text, ok := fromUTF16(content); ok {
		return text
	}
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
		return nil
	}
	return content
}

// archive is the signature of an archive format.
type archive struct {
	at    int // offset of magic
	magic string
}

// archives are common formats. Archives are not unpacked: this search runs before anything is trusted, and must not
// run decompressors on a stranger's bytes.
var archives = []archive{
	{0, "PK\x03\x04"}, {0, "PK\x05\x06"}, // zip, and so jar, whl, docx
	{0, "\x1f\x8b\x08"}, {4, "1AY&SY"}, {0, "\xfd7zXZ\x00"}, {0, "\x28\xb5\x2f\xfd"}, {0, "\x04\x22\x4d\x18"}, // gzip, bzip2, xz, zstd, lz4
	{0, "7z\xbc\xaf\x27\x1c"}, {0, "Rar!\x1a\x07"}, {0, "!<arch>\n"}, {0, "MSCF\x00"},
	{257, "ustar"},
}

// isArchive reports whether a file is an archive.
func isArchive(content []byte) bool {
	return slices.ContainsFunc(archives, func(a archive) bool { return len(content) > a.at && bytes.HasPrefix(content[a.at:], []byte(a.magic)) })
}

// fromUTF16 decodes a content that begins with a byte order mark of UTF-16.
func fromUTF16(content []byte) ([]byte, bool) {
	if len(content) < 2 {
		return nil, false
	}
	var order binary.ByteOrder
	switch [2]byte(content) {
	case [2]byte{0xff, 0xfe}:
		order = binary.LittleEndian
	case [2]byte{0xfe, 0xff}:
		order = binary.BigEndian
	default:
		return nil, false
	}
	text := make([]byte, 0, len(content)/2)
	for i := 2; i+1 < len(content); i += 2 {
		r := rune(order.Uint16(content[i:]))
		if utf16.IsSurrogate(r) && i+3 < len(content) {
			r = utf16.DecodeRune(r, rune(order.Uint16(content[i+2:])))
			i += 2
		}
		text = utf8.AppendRune(text, r)
	}
	return text, true
}
