package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/git-airlock/git-airlock/gitops"
	"github.com/git-airlock/git-airlock/identity"
	"github.com/git-airlock/git-airlock/promote/policy/cost"
	"github.com/git-airlock/git-airlock/promote/policy/hostgit"
	"github.com/git-airlock/git-airlock/promote/policy/treelink"
)

// Commit is the input of a rule. An agent wrote all of it.
type Commit struct {
	ID         gitops.OID
	Tree       gitops.OID
	ParentTree gitops.OID // the tree of the first parent; empty if there is none
	Message    []byte
	Encoding   string          // the encoding in the commit's header; empty for UTF-8
	Changes    []gitops.Change // against the first parent, in git's order
	Accepted   []Acceptance    // the user's acceptances for this commit
	Fetched    []string        // the hosts from which the prison fetched something before the commit, for the rule [Fetched]
}

func (c Commit) accepts(rule, path string) bool {
	return slices.ContainsFunc(c.Accepted, func(a Acceptance) bool { return a.covers(rule, path) })
}

// Facts are the user's data that rules need.
type Facts struct {
	Workspace    string         // name of the workspace's folder at the top of the work tree; empty if it is elsewhere
	Ghost        identity.Ghost // the agent's invented author
	Placeholders []string       // the texts that programs inside have in place of keys
	Top          string         // the work tree, as an absolute path
	Config       gitops.Config  // the user's configuration, which names programs
	Scratch      string         // a folder of the host for git's temporary files; empty for the system's default
	Recipe       []string       // paths that the recipe names, in addition to its own
	Ignores      Ignores        // nil if ignore rules cannot be read
	Host         hostgit.Files  // the sources of the configuration
	// Programs returns the files that the configuration makes git execute. The function reads them once for several gates. If it is nil, each
	// gate reads them itself.
	Programs func() hostgit.Programs
	// Links keeps the links of trees for later gates. If it is nil, each gate reads them itself.
	Links *treelink.Trees
}

// Objects is the gate's access to git's objects. *[quarantine.Inspector] implements it.
type Objects = treelink.Objects

// Gate checks commits one after the other. It must not be used by several goroutines.
type Gate struct {
	settings Settings
	rules    []rule
	objects  Objects
	host     hostgit.Programs
	links    treelink.Cache
	spent    int64 // work for all commits so far
}

// New returns a gate.
func New(s Settings, f Facts, objects Objects) *Gate {
	g := &Gate{settings: s, objects: objects, host: f.programs(), links: treelink.Cache{Trees: cmp.Or(f.Links, new(treelink.Trees))}}
	f.Programs = func() hostgit.Programs { return g.host }
	for _, r := range newRules(s, f) {
		if s.Action(r.ID) != Off {
			g.rules = append(g.rules, r)
		}
	}
	return g
}

// Check checks a commit and returns the findings, in the order of [Rules]. The error is an *[inner.Invalid] if no
// commit may have this content.
func (g *Gate) Check(ctx context.Context, c Commit) ([]Finding, error) {
	m := &meter{left: g.settings.Work()}
	in := newInspection(c, metered{g.objects, m})
	in.meter, in.host, in.links = m, g.host, &g.links
	reports := make([]*report, len(g.rules))
	for n, r := range g.rules {
		reports[n] = &report{rule: r.ID, action: g.settings.Action(r.ID), accepted: c.accepts}
	}
	rule, path, err := g.run(ctx, in, reports)
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

// run runs the rules on a commit. With an error, it returns the rule and the path at which it stopped.
func (g *Gate) run(ctx context.Context, in *inspection, reports []*report) (rule, path string, err error) {
	// All rules check one change before the next, so that each file is read once and then released.
	for _, change := range in.Changes {
		err := errors.Join(ctx.Err(), in.meter.spend(changeCost+int64(len(change.Path))))
		for n := 0; n < len(g.rules) && err == nil; n++ {
			rule = g.rules[n].ID
			if check := g.rules[n].change; check != nil {
				err = check(ctx, in, change, reports[n])
			}
		}
		if err == nil {
			rule, err = g.otherNames(ctx, in, change, reports)
		}
		if err != nil {
			return rule, change.Path, fmt.Errorf("check commit %s: %s: %w", in.ID, rule, err)
		}
	}
	for n, r := range g.rules {
		if r.commit != nil {
			err = r.commit(ctx, in, reports[n])
		}
		if err != nil {
			return r.ID, "", fmt.Errorf("check commit %s: %s: %w", in.ID, r.ID, err)
		}
	}
	return "", "", nil
}

// rule checks commits for one kind of harm. A nil function checks nothing.
type rule struct {
	Description
	change func(context.Context, *inspection, gitops.Change, *report) error // checks one changed path
	commit func(context.Context, *inspection, *report) error                // checks the commit as a whole, after all changes
}

// Description describes a rule for the user.
type Description struct {
	ID      string
	Default Action
	Key     string // the rule's setting; empty if it has none
	Doc     string // one line
}

// documented returns the description of a rule with a setting.
func documented(id string, action Action, doc string) Description {
	return Description{ID: id, Default: action, Key: keyPrefix + id, Doc: doc}
}

// newRules makes the rules, in the order in which they are shown.
func newRules(s Settings, f Facts) []rule {
	workspace, links := workspaceExposed{f.Workspace, f.Scratch}, symlinkEscape{f.Workspace}
	driver, environment := userDriver{f.programs()}, newRecipe(f)
	keys, phantom, large := secret{f.Placeholders}, keyPlaceholder{f.Placeholders}, largeFile{s.MaxFileSize(), s.sizeFrom}
	return []rule{
		{Description{ID: "git-path", Default: Hold, Doc: "a path that a file system can treat as .git, or that has a component \".\" or \"..\"; a submodule in a workspace; refused as inner-invalid"},
			gitPath, nil},
		{documented(symlinkEscapeID, Hold, "a link that leads out of the repository, into .git or into the workspace, or that cannot be created"), nil, links.commit},
		{documented("workspace-exposed", Hold, "an ignore or attribute file, or a path, that would make git look into the workspace"), workspace.change, converted(workspace.reads)},
		{documented("submodule", Hold, "a submodule added, moved or removed, or any change of a .gitmodules file"), submodule, converted(isModules)},
		{documented("user-driver", Hold, "a file that your git configuration executes or includes, or an attribute that applies one of your drivers to files"),
			driver.change, converted(driver.reads)},
		{documented("embedded-repo", Hold, "a folder that git or another version control system would treat as a repository, or the configuration or hooks of one"), embeddedRepo, nil},
		{documented("odd-path", Hold, "a name with control or invisible characters, a backslash or a wide space at an end, or that Windows reserves or treats as another name; a name that Windows refuses is flagged"),
			oddPath, nil},
		{documented("case-collision", Hold, "a name that differs from another name in its folder only in case or in the composition of accents"), caseCollision, nil},
		{documented("secret", Hold, "a private key or token in an added line or the message; a value that only looks like a password is flagged"), keys.change, keys.commit},
		{large.description(), large.change, nil},
		{documented("agent-config", Hold, "settings of coding agents that start programs (MCP servers, hooks, plugins); their instructions are flagged"), agentConfig, converted(startsAgents)},
		{documented("host-exec", Flag, "a file that editors, shells, package managers or git hooks run without asking; a new file that CI, builds or tests run"), hostExec, converted(runsOnHost)},
		{documented("hidden-text", Flag, "invisible or bidirectional control characters in an added line, a name or the message, and those by which a terminal hides text (escape sequences, backspaces, a carriage return within a line); a message in an uncommon encoding; attributes that hide the diff of text files, give a file other bytes on the disk (working-tree-encoding), give scripts a carriage return at the end of each line, or make git merge without conflicts (merge=union); a text that git replaces where the attribute ident is set; a text with NUL bytes, which git shows as binary; a .mailmap"),
			hiddenText, hiddenMessage},
		{documented("recipe", Hold, "a change of "+recipePath+" or of a file that it names"), environment.change, converted(environment.reads)},
		{documented("ghost-leak", Flag, "the agent's invented name or address in a message"), nil, newGhostLeak(f.Ghost).commit},
		{documented("phantom", Flag, "a placeholder that the prison has in place of a key, in an added line, a name or the message"), phantom.change, phantom.commit},
		{documented(protectedPathID, Hold, "a path that the team's policy ("+TeamRef+") protects"), protectedPath{s.protected}.change, nil},
		{documented(IgnoredPath, Hold, "a new file in a folder that your own ignore rules cover, such as .venv/ or node_modules/"), nil, ignoredPath{f.Ignores}.commit},
		{documented("slow-pattern", Hold, "an ignore or attribute file with patterns that git can take longer than a few seconds to match with one path, or than two minutes with all paths of the commit"), slowPattern, converted(hasPatterns)},
		{documented("git-resources", Hold, fmt.Sprintf("an attribute or .mailmap file with which git needs too much time or memory: conflict markers of more than %d characters, more than %d attributes, or %d in all files, more than %d addresses", cost.MarkerLimit, cost.NameLimit, cost.TotalNames, cost.MappedLimit)),
			gitResources, converted(takesResources)},
		{documented(Fetched, Off, "a commit made after something came from a host that no rule of the network names (airlock.network=open, airlock.networkLearn)"), nil, fetched},
		{documented(budgetID, Hold, "a commit whose check takes more work than "+workKey+" allows, or more time than "+timeKey+"; the rest of the commit is not checked"),
			nil, nil}, // [Gate.over] makes its findings
	}
}

// Rules describes every rule with its default.
func Rules() []Description { return Settings{}.Rules() }

// Rules describes every rule as it is set.
func (s Settings) Rules() []Description {
	var all []Description
	for _, r := range newRules(s, Facts{}) {
		all = append(all, r.Description)
	}
	return all
}

// described has the rules by their ids.
var described = sync.OnceValue(func() map[string]Description {
	all := map[string]Description{}
	for _, d := range Rules() {
		all[d.ID] = d
	}
	return all
})

func ruleIDs() []string {
	var ids []string
	for _, d := range Rules() {
		ids = append(ids, d.ID)
	}
	return ids
}
