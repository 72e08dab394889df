package policy

import (
	"context"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
)

// rule looks for one kind of harm.
type rule interface {
	describe() Description
	// change looks at one changed path.
	change(context.Context, *inspection, gitops.Change, *report) error
	// commit looks at the commit as a whole, after all changes.
	commit(context.Context, *inspection, *report) error
}

// Description is what a user should know of a rule.
type Description struct {
	ID      string
	Default Action
	Key     string // of its setting; empty if it has none
	Doc     string // one line
}

// documented says what a rule with a setting is about.
func documented(id string, action Action, doc string) Description {
	return Description{ID: id, Default: action, Key: keyPrefix + id, Doc: doc}
}

// newRules makes the rules, in the order in which they are shown.
func newRules(s Settings, f Facts) []rule {
	return []rule{
		gitPath{},
		newSymlinkEscape(f),
		workspaceExposed{f.Workspace, f.Scratch},
		submodule{},
		newUserDriver(f),
		embeddedRepo{},
		oddPath{},
		caseCollision{},
		secret{},
		largeFile{s.MaxFileSize(), s.sizeFrom},
		agentConfig{},
		hostExec{},
		hiddenText{},
		newRecipe(f),
		newGhostLeak(f.Ghost),
		protectedPath{s.protected},
		ignoredPath{f.Ignores},
		budget{},
	}
}

// Rules describes every rule by default.
func Rules() []Description { return Settings{}.Rules() }

// Rules describes every rule as it is set.
func (s Settings) Rules() []Description {
	var all []Description
	for _, r := range newRules(s, Facts{}) {
		all = append(all, r.describe())
	}
	return all
}

var described = sync.OnceValue(func() map[string]Description {
	all := map[string]Description{}
	for _, d := range Rules() {
		all[d.ID] = d
	}
	return all
})

func describe(id string) (Description, bool) {
	d, known := described()[id]
	return d, known
}

func ruleIDs() []string {
	var ids []string
	for _, d := range Rules() {
		ids = append(ids, d.ID)
	}
	return ids
}

// changesOnly is for rules that look at changes one by one.
type changesOnly struct{}

func (changesOnly) commit(context.Context, *inspection, *report) error { return nil }

// commitOnly is for rules that look at commits as a whole.
type commitOnly struct{}

func (commitOnly) change(context.Context, *inspection, gitops.Change, *report) error { return nil }
