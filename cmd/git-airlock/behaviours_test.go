package main_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// behaviours is the index of DESIGN.md, "Where to find what", in another form: each folder that it names, with the declarations that
// make its answer true. A declaration that moves to another folder takes its row along.
var behaviours = map[string][]string{
	"promote":                  {"Engine.pipeline"},                                                 // what happens to a commit, stage by stage
	"promote/history":          {"New", "Plan.supersede"},                                           // which commits are built, after a rewrite
	"promote/build":            {"Commits"},                                                         // merges, dropped commits, excluded files
	"promote/policy":           {"Gate", "Rules"},                                                   // why a commit is held
	"promote/policy/secrets":   {"Detector"},                                                        // keys in a commit
	"snapshot/scan":            {"Scanner"},                                                         // keys in a snapshot
	"snapshot/checkpoint":      {"Store.Take", "Store.Restore"},                                     // states of a workspace
	"promote/ledger":           {"Ledger", "Hold"},                                                  // the state files of an airlock
	"promote/airlock":          {"Record", "Store"},                                                 // its record
	"promote/evidence":         {"Statement", "Verifier.Verify"},                                    // statements about landed commits
	"promote/attest":           {"Attester.Landed", "Attester.Close"},                               // when and from what they are made
	"promote/record/report":    {"Of", "View.HTML"},                                                 // the report of a run
	"promote/events":           {"Append", "Read"},                                                  // its event log
	"promote/checks":           {"Of", "Here", "Choose"},                                            // settings and results of airlock.check
	"promote/outgoing":         {"Find", "RangeOf"},                                                 // what may not be pushed
	"promote/exchange":         {"Offer", "Fetch"},                                                  // notes of a remote, merged
	"promote/verdict":          {"Record", "List"},                                                  // a reviewer's verdicts, the list of review
	"promote/proposal":         {"Proposal.Title", "Proposal.Body"},                                 // the text of a pull request
	"gitops/userhook":          {"Place.Install"},                                                   // the line in a hook
	"prison/watch/execs":       {"Record", "Read"},                                                  // the record of programs
	"prison/watch/containers":  {"Start", "Follow"},                                                 // what starts a container's record of programs
	"prison/native/usernet":    {"MakeInterface"},                                                   // a prison's network interface
	"prison/docker/dialect":    {"Connect"},                                                         // what differs on Podman
	"prison/egress/credential": {"Credential.Apply"},                                                // keys in requests
	"snapshot":                 {"Take", "Snapshot.Fill"},                                           // submodules and git-lfs in a snapshot
	inboundRoom:                {"Sync"},                                                            // the workflow of sync
	terminalRoom:               {"Text"},                                                            // what a terminal would show
	"promote/record/store":     {"Place.Put", "Verify"},                                             // records in the repository
	"promote/record/replay":    {"Run", "workshop.Make"},                                            // its commits made again
	runsRoom:                   {"Keeper.Begin", "Active.End", "Keeper.FinishOver"},                 // records of runs
	"promote/record":           {"Manifest", "Run"},                                                 // the record of a run
	"promote/daemon":           {"Run", "Stop"},                                                     // when a cycle is made, how the daemon stops
	"prison/passed":            {"Values.Find", "Forms"},                                            // values of variables in records
	"prison/watch":             {"Guard"},                                                           // a disk that fills
	"prison/native/walls":      {"Landlock", "PlanLimits"},                                          // filters and limits
	"prison/native/inside":     {"Build"},                                                           // mounts and init
	"prison/docker":            {"planner"},                                                         // a container's plan
	"prison/recipe":            {"Parse"},                                                           // what the recipe may ask for
	"prison/selftest":          {"Run"},                                                             // checks from inside
	"prison/egress":            {"Policy.Decide", "Engine.reach"},                                   // what a prison may connect to
	"prison/egress/control":    {"Rules", "State", "Record"},                                        // rules, state and records
	"gitops/hostenv":           {"Enter", "Program"},                                                // PATH and variables of programs on the host
	"identity":                 {"NewGhost", "NewPhantom"},                                          // the invented author, the phantom's number
	sessionRoom:                {"Session.Start", "Session.Stop", "Session.Clear"},                  // the workflow
	prisonsRoom:                {"Prisons.Backend", "Prisons.Spec", "Prisons.OpenExporter"},         // an airlock's prison
	environmentRoom:            {"Builder.Agree", "Check", "Builder.Include", "Builder.runStartup"}, // consent, missing tools, files, startup
	uiRoom:                     {"Reporter", "Document.Print"},                                      // messages, the text of status
	manualRoom:                 {"Book.Pages", "Complete"},                                          // manual pages, completion
	requestRoom:                {"Of", "Flags"},                                                     // options and settings of start
	cmdlineRoom:                {"Command", "ExitStatus"},                                           // usage errors, exit statuses
	commandsRoom:               nil,                                                                 // a command
	"scripts/redteam.d":        nil,                                                                 // attacks
}

// TestBehaviours compares the index of DESIGN.md with [behaviours]: both must name the same folders, and each folder
// must have its declarations. A row has one answer.
func TestBehaviours(t *testing.T) {
	design, err := os.ReadFile("../../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, index, _ := strings.Cut(string(design), "| behaviour | folder |\n")
	index, _, _ = strings.Cut(index, "\n\n")
	declared := map[string][]string{}
	for _, f := range sources(t) {
		if !f.test() {
			declared[f.folder()] = append(declared[f.folder()], declarations(f)...)
		}
	}
	named := map[string]bool{}
	for row := range strings.Lines(index) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], "-") {
			continue
		}
		if strings.Contains(cells[2], ";") {
			t.Errorf("DESIGN.md:%s has more than one answer", cells[1])
		}
		found := false
		for _, m := range regexp.MustCompile("`([a-z./-]+)`").FindAllStringSubmatch(cells[2], -1) {
			if _, known := behaviours[m[1]]; known {
				named[m[1]], found = true, true
			}
		}
		if !found {
			t.Errorf("DESIGN.md:%s names no folder that there is an entry for here", cells[1])
		}
	}
	for folder, symbols := range behaviours {
		if !named[folder] {
			t.Errorf("DESIGN.md: the index does not name %s", folder)
		}
		if info, err := os.Stat("../../" + folder); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", folder, err)
		}
		for _, s := range symbols {
			if !slices.Contains(declared[folder], s) {
				t.Errorf("%s does not declare %s", folder, s)
			}
		}
	}
}

// declarations returns the names of functions and types, and of methods as Type.Method.
func declarations(f source) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if id, ok := of.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}
