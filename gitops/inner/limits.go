package inner

import (
	"fmt"
	"strings"
	"time"
)

// Limits are the limits of what the quarantine accepts.
type Limits struct {
	Pack      int64         // bytes of one export, and of the files in it when they are unpacked
	Path      int64         // bytes of a path
	Component int64         // bytes of a component of a path
	Commit    int64         // bytes of one commit object
	Blob      int64         // bytes of one file; the policy gate decides what is too large for a repository
	Time      time.Duration // for one export; processor time for one merge
	Paths     int64         // changed paths of one commit
	Depth     int64         // of a tree
	Entries   int64         // files in the tree of a commit; 0: trees are not checked
	Memory    int64         // bytes that git may allocate to read an export
}

// DefaultLimits are those of the contract, except Blob: the rule large-file holds a file above 50 MB, so that plain
// git can show it.
var DefaultLimits = Limits{Pack: 2 << 30, Commit: 1 << 20, Blob: 512 << 20, Time: 60 * time.Second,
	Path: 4096, Component: 255, Paths: 200_000, Depth: 128, Entries: 1_000_000, Memory: 1 << 30}

// Invalid means that data from a workspace was refused. It names the object or ref, and the reason.
type Invalid struct {
	Reason string
	// Limit reports that a limit was exceeded, so that retrying will not help.
	Limit bool
	// Stalled reports that git in the workspace waited for something that may never come, as it will again.
	Stalled bool
	// For is the path in the workspace for which git waited, empty if it is unknown.
	For string
	// Setting is the setting of the inner repository without which git there would find what it needs, empty if there is none.
	Setting string
}

func (e *Invalid) Error() string { return e.Reason }

// In returns the same error with the place where it occurred.
func (e *Invalid) In(place string) *Invalid {
	in := *e
	if !strings.Contains(in.Reason, place) {
		in.Reason = place + ": " + in.Reason
	}
	return &in
}

// Beyondf returns an [Invalid] for an exceeded limit.
func Beyondf(format string, args ...any) error {
	return &Invalid{Limit: true, Reason: fmt.Sprintf(format, args...)}
}

// Invalidf returns an [Invalid] for another reason than a limit.
func Invalidf(format string, args ...any) error {
	return &Invalid{Reason: fmt.Sprintf(format, args...)}
}

// TookTooLong returns the error for an export that did not end in time.
func TookTooLong(limits Limits) error {
	return Beyondf("taking out the new commits and files takes longer than airlock.limit.time allows (%s)", limits.Time)
}
