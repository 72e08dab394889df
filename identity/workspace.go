package identity

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const workspaceIDs = 1 << 16 // an id has four hexadecimal digits

// errNoID reports that all 65,536 workspace ids are taken.
var errNoID = errors.New("every workspace id is taken")

// WorkspaceName invents the name of a workspace's folder, as in ".cedar-7f3a", and returns it with its id, "7f3a". taken reports whether
// an id is in use; nil means that all are free. WorkspaceName fails only if all ids are in use.
func WorkspaceName(taken func(id string) bool) (name, id string, err error) {
	// Unlike random tries, this always ends, and finds the last free id.
	start := random(workspaceIDs)
	for i := range workspaceIDs {
		id = fmt.Sprintf("%04x", (start+i)%workspaceIDs)
		if taken == nil || !taken(id) {
			return "." + one(workspaceWords) + "-" + id, id, nil
		}
	}
	return "", "", errNoID
}

// ParseWorkspaceName returns the id in the name of a workspace's folder. It accepts any word. ok is false if [WorkspaceName] cannot have
// made such a name.
func ParseWorkspaceName(name string) (id string, ok bool) {
	word, id, _ := strings.Cut(name, "-")
	word, dotted := strings.CutPrefix(word, ".")
	if !dotted || word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" ||
		len(id) != 4 || strings.Trim(id, "0123456789abcdef") != "" {
		return "", false
	}
	return id, true
}

// SessionID returns the name of the airlock that began at now in the workspace with the id, as in "20261120T201501Z-7f3a". The time is in
// UTC, to the second.
func SessionID(now time.Time, id string) string {
	return now.UTC().Format(sessionTime) + "-" + id
}

const sessionTime = "20060102T150405Z"

// SessionBegan returns the start time of a session, or the zero time if session is not a session id.
func SessionBegan(session string) time.Time {
	text, _, _ := strings.Cut(session, "-")
	began, _ := time.Parse(sessionTime, text)
	return began
}
