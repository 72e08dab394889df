package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/promote/policy/pathname"
	"github.com/git-airlock/git-airlock/words"
)

const (
	// pathLimit bounds the number of paths of one finding, and pathBytes their total length.
	pathLimit = 100
	pathBytes = 16 << 10
	// detailLimit bounds the number of reasons of one finding, and detailBytes their length.
	detailLimit = 5
	detailBytes = 500
)

// Finding is the result of one rule for one commit.
type Finding struct {
	Rule   string `json:"rule"`
	Action Action `json:"action"` // Hold or Flag
	// Paths lists some of the paths concerned, see [pathname.Shown]. It is empty if the finding is about the commit's message.
	Paths []string `json:"paths"`
	More  bool     `json:"more,omitempty"` // there are more paths
	// Detail describes the finding, escaped.
	Detail string `json:"detail"`
	// Accepted reports that the rule would hold the commit if the user had not accepted the finding.
	Accepted bool `json:"accepted,omitempty"`
}

// Covers reports whether an acceptance covers a path of the finding, or may cover one that is not listed.
func (f Finding) Covers(a Acceptance) bool {
	if a.Rule != f.Rule {
		return false
	}
	return a.Path == "" || f.More || slices.ContainsFunc(f.Paths, func(p string) bool { return a.covers(f.Rule, pathname.Meant(p)) })
}

// report collects the findings of one rule in one commit.
type report struct {
	rule     string
	action   Action
	accepted func(rule, path string) bool
	results  [3]resultSet // by kind: holding, flagging, accepting
	other    *otherName   // the name under which a change is checked; nil for its own
}

// otherName is a name of a changed path through links.
type otherName struct{ path, name string }

const (
	holding = iota
	flagging
	accepting
)

// resultSet collects the hits that become one finding.
type resultSet struct {
	hits    int
	last    string // the path of the last hit
	paths   []string
	bytes   int // total length of paths
	more    bool
	details []string
}

// at reports a path. An empty path stands for the message. reason and args are a format of fmt.Sprintf.
func (r *report) at(path, reason string, args ...any) { r.add(r.action, path, reason, args...) }

// mention reports a hit that is at most flagged.
func (r *report) mention(path, reason string, args ...any) {
	r.add(max(r.action, Flag), path, reason, args...)
}

func (r *report) add(action Action, path, reason string, args ...any) {
	if r.other != nil {
		path, reason, args = r.other.path, "as %q, through a link: "+reason, append([]any{r.other.name}, args...)
	}
	kind := flagging
	switch {
	case action == Off:
		return
	case action == Hold && r.accepted(r.rule, path):
		kind = accepting
	case action == Hold:
		kind = holding
	}
	h := &r.results[kind]
	if r.other != nil && (h.last == path || r.results[holding].last == path) {
		return // one name is enough
	}
	h.hits, h.last = h.hits+1, path
	if path != "" {
		h.name(pathname.Shown(path))
	}
	if len(h.details) < detailLimit {
		text := gitops.Text(fmt.Sprintf(reason, args...)).String()
		if path != "" {
			text = gitops.Text(path).String() + ": " + text
		}
		h.details = append(h.details, text)
	}
}

// findings returns the findings, the holding one first.
func (r *report) findings() []Finding {
	var found []Finding
	for kind, h := range r.results {
		if h.hits == 0 {
			continue
		}
		f := Finding{Rule: r.rule, Action: Flag, Paths: append([]string{}, h.paths...), Detail: h.detail(), More: h.more, Accepted: kind == accepting}
		if kind == holding {
			f.Action = Hold
		}
		found = append(found, f)
	}
	return found
}

// name adds a path if there is room for it.
func (h *resultSet) name(path string) {
	switch n := len(h.paths); {
	case n > 0 && h.paths[n-1] == path:
	case n == pathLimit || h.bytes+len(path) > pathBytes:
		h.more = true
	default:
		h.paths = append(h.paths, path)
		h.bytes += len(path)
	}
}

func (h resultSet) detail() string {
	text := words.Clip(strings.Join(h.details, "; "), detailBytes)
	if more := h.hits - len(h.details); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Acceptance accepts the findings of a rule: everywhere, at one path, or below a folder if the path ends in a slash.
type Acceptance struct {
	Rule string `json:"rule"`
	Path string `json:"path,omitempty"`
}

// ParseAcceptance reads "<rule>" or "<rule>:<path>".
func ParseAcceptance(text string) (Acceptance, error) {
	id, path, pathed := strings.Cut(text, ":")
	a := Acceptance{Rule: id, Path: path}
	switch d, known := described()[id]; {
	case !known:
		return a, fmt.Errorf("%q is not a rule; the rules are %s", gitops.Text(id), strings.Join(ruleIDs(), ", "))
	case d.Key == "":
		return a, fmt.Errorf("findings of %s cannot be accepted", id)
	case pathed && path == "":
		return a, fmt.Errorf("%q names no path after the colon", gitops.Text(text))
	}
	return a, nil
}

func (a Acceptance) String() string {
	if a.Path == "" {
		return a.Rule
	}
	return a.Rule + ":" + a.Path
}

// covers reports whether a path of a rule's finding is accepted. The user types a path as it is, or in the form in which
// it was shown.
func (a Acceptance) covers(rule, path string) bool {
	named := pathname.Meant(a.Path)
	switch {
	case a.Rule != rule:
		return false
	case a.Path == "":
		return true
	case path == "": // the finding is in the message
		return false
	case strings.HasSuffix(named, "/"):
		return strings.HasPrefix(path, named)
	}
	return path == named
}
