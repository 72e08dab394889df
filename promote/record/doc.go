// Package record describes the record of a run, and reads and writes it.
//
// A run is one command in a prison, from its start to its end: a launched command, or a command of "git airlock run". Its
// record is a commit without parents in the user's repository, which the ref [Ref] names. The tree of the commit has only
// files, with the names in [Names]. Files that a record does not have are named in its [Manifest], with the reason. The file
// [SumsName] has the SHA-256 of all other files, so that sha256sum(1) can check them.
//
// The commits of a session form a chain: each message names the commit of the run before it. No commit is the parent of
// another, so that one record can be fetched without the others.
//
// A [Run] holds the content of all files, and its methods decode them. A record may come from another machine, and most of
// its content was written by an agent: all reads are bounded, and texts must be escaped before they are shown.
//
// Unknown JSON fields are ignored, so that later versions can add some.
package record

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
)

// Names of the files of a record.
const (
	ManifestName   = "manifest.json" // [Manifest]
	EventsName     = "events.jsonl"  // one [Event] a line
	ExecName       = "exec.jsonl"    // one [Exec] a line
	EgressName     = "egress.jsonl"  // one [Egress] a line
	ResourcesName  = "resources.csv" // [resourcesHeader], then one [Sample] a line
	TerminalName   = "terminal.cast" // asciicast, version 2: a [CastHeader], then one [CastEvent] a line
	StdoutName     = "stdout.log"    // standard output, with secrets masked
	StderrName     = "stderr.log"    // standard error, with secrets masked
	ChangesName    = "changes.patch" // the run's commits, as git format-patch --stdout writes them
	CommitsName    = "commits.txt"   // one [Commit] a line
	ReportJSONName = "report.json"   // what the report was drawn from
	ReportHTMLName = "report.html"   // the report
	SumsName       = "SHA256SUMS"    // SHA-256 of all other files, as sha256sum(1) writes it
)

// Names returns the names of all files that a record can have.
func Names() []string {
	return []string{ManifestName, EventsName, ExecName, EgressName, ResourcesName, TerminalName, StdoutName, StderrName,
		ChangesName, CommitsName, ReportJSONName, ReportHTMLName, SumsName}
}

const (
	// MaxFile bounds each file of a record in bytes.
	MaxFile = 8 << 20
	// DefaultMax is the default of airlock.runs.maxBytes, which bounds all files of a record together.
	DefaultMax = 16 << 20
	// MaxTotal bounds the bytes of a record that is read, whatever the setting was when it was made.
	MaxTotal = 128 << 20
	// maxLine bounds a line in the files of a record.
	maxLine = 256 << 10
)

// RefPrefix is the beginning of the refs of all records.
const RefPrefix = "refs/airlock/runs/"

// Ref returns the full name of the ref of a session's nth run, which counts from 1.
func Ref(session string, n int) string { return fmt.Sprintf("%s%s/%d", RefPrefix, session, n) }

var refForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^refs/airlock/runs/([0-9]{8}T[0-9]{6}Z-[0-9a-f]{4})/([1-9][0-9]{0,8})$`)
})

// ParseRef returns the session and the number of a ref, and false for any other ref.
func ParseRef(ref string) (session string, n int, ok bool) {
	m := refForm().FindStringSubmatch(ref)
	if m == nil {
		return "", 0, false
	}
	n, err := strconv.Atoi(m[2])
	return m[1], n, err == nil
}
