package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
)

// Commit is what a rule looks at. All of it was written by an agent.
type Commit struct {
	ID         gitops.OID
	Tree       gitops.OID
	ParentTree gitops.OID // the first parent's; empty for none
	Message    []byte
	Encoding   string          // that the message says it has; empty for UTF-8
	Changes    []gitops.Change // against the first parent, in git's order
	Accepted   []Acceptance    // what the user lets through of this commit
}

func (c Commit) accepts(rule, path string) bool {
	return slices.ContainsFunc(c.Accepted, func(a Acceptance) bool { return a.covers(rule, path) })
}

// Facts are what rules have to know of the user's side.
type Facts struct {
	Workspace string         // name of the workspace's folder at the top of the work tree; empty if it is elsewhere
	Ghost     identity.Ghost // the agent's invented author
	Top       string         // the work tree, as an absolute path
	Config    gitops.Config  // the user's configuration, for what it executes
	Scratch   string         // a folder of the host's in which git is asked about files; empty for the system's
	Recipe    []string       // paths that the recipe names, beside its own
	Ignores   Ignores        // nil if nobody can be asked
	Host      HostFiles      // from where git takes the configuration
}

// Objects is what a gate reads of git's objects; *[gitops.Inspector] is one.
type Objects interface {
	// Blob reads the first limit bytes of a blob; size is what the whole has.
	Blob(ctx context.Context, id gitops.OID, limit int64) (head []byte, size int64, err error)
	// Tree reads the entries of one tree object.
	Tree(ctx context.Context, id gitops.OID) ([]gitops.TreeEntry, error)
}

// Gate looks at commits, one after the other. It is not for use by several goroutines.
type Gate struct {
	settings Settings
	rules    []rule
	objects  Objects
	spent    int64 // work for all commits so far
}

// New returns a gate.
func New(s Settings, f Facts, objects Objects) *Gate {
	g := &Gate{settings: s, objects: objects}
	for _, r := range newRules(s, f) {
		if s.Action(r.describe().ID) != Off {
			g.rules = append(g.rules, r)
		}
	}
	return g
}

// Check looks at a commit and returns what the rules find, in the order of [Rules]. A *[gitops.Invalid] says that
// no commit may look like this.
func (g *Gate) Check(ctx context.Context, c Commit) ([]Finding, error) {
	m := &meter{left: g.settings.Work()}
	in := newInspection(c, metered{g.objects, m})
	in.meter = m
	reports := make([]*report, len(g.rules))
	for n, r := range g.rules {
		id := r.describe().ID
		reports[n] = &report{rule: id, action: g.settings.Action(id), accepted: c.accepts}
	}
	rule, path, err := g.look(ctx, in, reports)
	g.spent += g.settings.Work() - m.left
	over := errors.Is(err, errSpent)
	if err != nil && !over {
		return nil, err
	}
	var found []Finding
	for _, r := range reports {
		found = append(found, r.findings()...)
	}
	if over {
		found = append(found, g.over(c, rule, path, fmt.Sprintf("checking it takes more work than %s allows (%s)", workKey, SizeText(g.settings.Work()))))
	}
	return found, nil
}

// look lets the rules look at a commit. With an error it returns the rule and the path at which it stopped.
func (g *Gate) look(ctx context.Context, in *inspection, reports []*report) (rule, path string, err error) {
	// Change by change, not rule by rule: what the rules read of a file is read once and let go.
	for _, change := range in.Changes {
		err := errors.Join(ctx.Err(), in.meter.spend(changeCost+int64(len(change.Path))))
		for n := 0; n < len(g.rules) && err == nil; n++ {
			rule = reports[n].rule
			err = g.rules[n].change(ctx, in, change, reports[n])
		}
		if err != nil {
			return rule, change.Path, fmt.Errorf("check commit %s: %s: %w", in.ID, rule, err)
		}
	}
	for n, r := range g.rules {
		if err := r.commit(ctx, in, reports[n]); err != nil {
			return reports[n].rule, "", fmt.Errorf("check commit %s: %s: %w", in.ID, reports[n].rule, err)
		}
	}
	return "", "", nil
}
