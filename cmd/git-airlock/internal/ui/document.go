package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/words"
)

// DocumentVersion is the version of all documents that commands print as JSON.
const DocumentVersion = 1

// Document is version 1 of what status --json prints.
type Document struct {
	Version       int        `json:"version"`
	Session       string     `json:"session"`
	Branch        string     `json:"branch"`
	State         string     `json:"state"`
	Backend       string     `json:"backend"`
	BackendReason string     `json:"backend_reason"`
	Image         string     `json:"image"`    // as it was requested; empty without an image
	ImageID       string     `json:"image_id"` // of the image from which the prison was made last
	ID            string     `json:"id"`
	Workspace     string     `json:"workspace"`
	UID           int        `json:"uid"`
	Base          gitops.OID `json:"base"`
	Promoted      gitops.OID `json:"promoted"`
	InnerTip      gitops.OID `json:"inner_tip"`
	Daemon        Daemon     `json:"daemon"`
	Command       *Command   `json:"command"`
	Hold          *Hold      `json:"hold"`
	Holds         []Hold     `json:"holds"`
	Review        Review     `json:"review"`
	Pending       int        `json:"pending"`
	Uncommitted   int        `json:"uncommitted"`
	Places        []Place    `json:"places"`
	Waiting       []Waiting  `json:"waiting"`
	Landed        int        `json:"landed"`
	Flagged       []Flagged  `json:"flagged"`
	Rebased       []Rebased  `json:"rebased"`
	LastLandedAt  *time.Time `json:"last_landed_at"`
	LandingSince  *time.Time `json:"landing_since,omitempty"`
	Failure       string     `json:"failure,omitempty"`
	Ended         string     `json:"ended,omitempty"`         // why the disk watchdog stopped the prison, if it is broken
	SetupFailure  string     `json:"setup_failure,omitempty"` // message of the service or startup command that failed last
	Syncing       bool       `json:"syncing"`
	SyncWaits     bool       `json:"sync_waits"`
	Isolation     Isolation  `json:"isolation"`
	Refusals      []Refused  `json:"refusals"`
	MoreRefusals  int        `json:"more_refusals"` // further refused hosts

	// RefusedCredentials are those whose value a server refused last, or whose server failed or answered nothing last, or that the network has lost.
	RefusedCredentials []NetworkCredential `json:"refused_credentials"`
	// FailingProxy is the proxy of the network, if the last connection through it failed.
	FailingProxy *FailingProxy `json:"failing_proxy"`
	// RefusedCertificate is the last connection whose program did not accept the network's certificate, if none to that host has worked since.
	RefusedCertificate *RefusedCertificate `json:"refused_certificate"`

	Works  []string   `json:"-"` // the work in Places, in words
	Mend   []string   `json:"-"` // commands after a failure
	Named  int        `json:"-"` // commits that the ref pending names
	Newest gitops.OID `json:"-"` // inner commit that the ref pending or the branch has last

	Began   time.Time `json:"-"` // when the airlock was created
	Filters []string  `json:"-"` // the user's filters, and whether they can use the network during a landing
	LeftOut []string  `json:"-"` // parts of the environment that are not passed to programs on the host
	Lost    string    `json:"-"` // the workspace, if it was removed
}

// Commands are commands that can be pasted into a shell. A comment may follow each of them, which text shows on a line of its own, and JSON does
// not have.
type Commands []string

// cutComments takes the comments off.
func (c Commands) cutComments() {
	for i, line := range c {
		c[i], _ = words.CutComment(line)
	}
}

// Hold is one reason why commits do not land.
type Hold struct {
	Reason  string    `json:"reason"`
	Paths   []string  `json:"paths"`
	Message string    `json:"message"`
	Next    Commands  `json:"next"`
	Since   time.Time `json:"since"`
}

// Review has the mode of the review, and the numbers of commits in each state of it.
type Review struct {
	Mode     string `json:"mode"`
	Waiting  int    `json:"waiting"`
	Approved int    `json:"approved"`
	Asked    int    `json:"asked"`
	Rejected int    `json:"rejected"`
	Undone   int    `json:"undone"`
	Blocked  int    `json:"blocked"`
}

// Place is another worktree of the agent, or a repository of its own in the workspace, with work that is not committed or does not land, or a file or
// folder that may hide such work.
type Place struct {
	Path        string `json:"path"` // escaped; in the workspace, or absolute
	Repository  bool   `json:"repository"`
	Uncommitted int    `json:"uncommitted"`
	Commits     int    `json:"commits"`
	Unread      bool   `json:"unread"` // the work cannot be counted
	Hidden      string `json:"hidden"` // what is at Path if it is not a work tree: "closed", "autostash" or "submodule"
	Next        string `json:"-"`      // the command that shows the work
}

// Waiting is an inner ref with commits that do not land by themselves.
type Waiting struct {
	Ref     string `json:"ref"` // escaped; "other refs" beyond the number of refs that are listed
	Commits int    `json:"commits"`
	// Operation is the one that the agent's git is in the middle of, such as "rebase", or empty.
	Operation string `json:"-"`
	Worked    bool   `json:"-"` // a command works on the ref
	Next      string `json:"-"` // the command that merges them into main, or shows the operation; empty while a command works on another ref than main
}

// Flagged is a landed commit that rules flagged.
type Flagged struct {
	Commit gitops.OID `json:"commit"`
	Rules  []string   `json:"rules"`
}

// Rebased is a commit that the agent has rebased after it landed, so that nothing of it lands again.
type Rebased struct {
	Inner   gitops.OID `json:"inner"`
	Commit  gitops.OID `json:"commit"`  // the landed commit
	Subject string     `json:"subject"` // escaped
}

// Daemon is the state of the daemon.
type Daemon struct {
	Running bool `json:"running"`
	PID     int  `json:"pid"`
}

// Command is the state of the launched command.
type Command struct {
	Argv  []string `json:"argv"`
	State string   `json:"state"`
	Exit  *int     `json:"exit"`
	Again string   `json:"again,omitempty"` // the command line that launches it again, once it has exited
}

// Isolation is the isolation of the prison.
type Isolation struct {
	Network string   `json:"network"`
	Runtime string   `json:"runtime"`
	Limits  Limits   `json:"limits"`
	Weaker  []string `json:"weaker"`

	Lockdown bool `json:"lockdown"` // no connection is allowed, see git airlock net lockdown
}

// Limits are the limits on the prison's resources.
type Limits struct {
	Memory string `json:"memory"`
	CPUs   string `json:"cpus"`
	PIDs   int    `json:"pids"`
}

// PrintJSON prints one document, with the version first and no null in the place of a list. Characters that a terminal obeys or does not show are escaped, which leaves the value as it is.
func PrintJSON(w io.Writer, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(shaped(document)); err != nil {
		return err
	}
	_, err := w.Write(escapeHidden(text.Bytes()))
	return err
}

// escapeHidden escapes hidden characters of a JSON text. Outside of its strings it has none but line breaks.
func escapeHidden(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '\n' || !gitops.Hidden(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
