package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-airlock/git-airlock/gitops"
)

const (
	// pathLimit bounds the paths that one finding names, and pathBytes what they have together.
	pathLimit = 100
	pathBytes = 16 << 10
	// detailLimit bounds the reasons that one finding gives, and their length.
	detailLimit = 5
	detailBytes = 500
)

// Finding is what one rule found in one commit.
type Finding struct {
	Rule   string `json:"rule"`
	Action Action `json:"action"` // Hold or Flag
	// Paths are some of those concerned, escaped; none if it is the commit's message.
	Paths []string `json:"paths"`
	More  bool     `json:"more,omitempty"` // not all of them
	// Detail says what was found, escaped.
	Detail string `json:"detail"`
	// Accepted tells that the rule would have held this, had the user not let it through.
	Accepted bool `json:"accepted,omitempty"`
}

// Covers reports whether a path of the finding is accepted, or may be since not all are known.
func (f Finding) Covers(a Acceptance) bool {
	if a.Rule != f.Rule {
		return false
	}
	return a.Path == "" || f.More || slices.ContainsFunc(f.Paths, func(p string) bool { return a.covers(f.Rule, p) })
}

// report takes what one rule finds in one commit.
type report struct {
	rule     string
	action   Action
	accepted func(rule, path string) bool
	heaps    [3]heap // what holds, what is flagged, what was accepted
}

const (
	holding = iota
	flagging
	accepting
)

// heap is what becomes one finding.
type heap struct {
	hits    int
	paths   []string
	bytes   int // of paths
	more    bool
	details []string
}

// at reports a path; an empty one stands for the message. The reason follows fmt.Sprintf.
func (r *report) at(path, reason string, args ...any) { r.add(r.action, path, reason, args...) }

// mention reports what is never worse than a flag.
func (r *report) mention(path, reason string, args ...any) {
	r.add(atMost(r.action, Flag), path, reason, args...)
}

func (r *report) add(action Action, path, reason string, args ...any) {
	kind := flagging
	switch {
	case action == Off:
		return
	case action == Hold && r.accepted(r.rule, path):
		kind = accepting
	case action == Hold:
		kind = holding
	}
	h := &r.heaps[kind]
	h.hits++
	if path != "" {
		h.name(gitops.Escape(path))
	}
	if len(h.details) < detailLimit {
		text := gitops.Escape(fmt.Sprintf(reason, args...))
		if path != "" {
			text = gitops.Escape(path) + ": " + text
		}
		h.details = append(h.details, text)
	}
}

// findings are what was reported, what holds first.
func (r *report) findings() []Finding {
	var found []Finding
	for kind, h := range r.heaps {
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

// name adds a path, if there is room for it.
func (h *heap) name(path string) {
	switch n := len(h.paths); {
	case n > 0 && h.paths[n-1] == path:
	case n == pathLimit || h.bytes+len(path) > pathBytes:
		h.more = true
	default:
		h.paths = append(h.paths, path)
		h.bytes += len(path)
	}
}

func (h heap) detail() string {
	text := strings.Join(h.details, "; ")
	if len(text) > detailBytes {
		text = strings.ToValidUTF8(text[:detailBytes], "") + "..."
	}
	if more := h.hits - len(h.details); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
