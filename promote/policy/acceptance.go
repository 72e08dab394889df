package policy

import (
	"fmt"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

// Acceptance lets through what a rule found: everywhere, at one path, or, if the path ends in a slash,
// below a folder.
type Acceptance struct {
	Rule string `json:"rule"`
	Path string `json:"path,omitempty"`
}

// ParseAcceptance reads "<rule>" or "<rule>:<path>".
func ParseAcceptance(text string) (Acceptance, error) {
	id, path, pathed := strings.Cut(text, ":")
	a := Acceptance{Rule: id, Path: path}
	switch d, known := describe(id); {
	case !known:
		return a, fmt.Errorf("%q is no rule; the rules are %s", gitops.Escape(id), strings.Join(ruleIDs(), ", "))
	case d.Key == "":
		return a, fmt.Errorf("what %s finds cannot be accepted", id)
	case pathed && path == "":
		return a, fmt.Errorf("%q names no path after the colon", gitops.Escape(text))
	}
	return a, nil
}

func (a Acceptance) String() string {
	if a.Path == "" {
		return a.Rule
	}
	return a.Rule + ":" + a.Path
}

// covers reports whether a path of a rule's finding is accepted. A user can only type a path the way it was shown.
func (a Acceptance) covers(rule, path string) bool {
	if a.Rule != rule {
		return false
	}
	if a.Path == "" {
		return true
	}
	if path == "" {
		return false
	}
	shown := gitops.Escape(path)
	if strings.HasSuffix(a.Path, "/") {
		return strings.HasPrefix(path, a.Path) || strings.HasPrefix(shown, a.Path)
	}
	return path == a.Path || shown == a.Path
}
